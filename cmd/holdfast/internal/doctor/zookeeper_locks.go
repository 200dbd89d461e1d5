package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
)

// mostLocks is how many locks are looked at, of as many as there may be.
const mostLocks = 10000

// readers is how many requests are under way at a time where there are many.
const readers = 16

// A lockNode is the znode of a lock, whose children are its queue.
type lockNode struct {
	path     string
	stat     *zk.Stat
	children []string
}

// search returns the znode whose children are the locks to look at, and what
// tells them from its other children. It is to the prefix as in "ls".
func (e *ensemble) search() (parent string, matches func(child string) bool) {
	slash := strings.LastIndexByte(e.Prefix, '/')
	if strings.HasPrefix(e.Prefix, "/") {
		return e.Prefix[:max(slash, 1)], func(child string) bool { return strings.HasPrefix(child, e.Prefix[slash+1:]) }
	}
	return e.Options.Root, func(child string) bool {
		key, err := url.PathUnescape(child)
		return err == nil && strings.HasPrefix(key, e.Prefix)
	}
}

// locks are those that the main server shows, read once.
func (e *ensemble) locks(ctx context.Context) ([]lockNode, error) {
	if e.lockSet == nil {
		set, err := e.read(ctx, e.main)
		if err != nil {
			return nil, err
		}
		e.lockSet = set
	}
	return e.lockSet, nil
}

// read lists the locks that a server shows, and their queues. In the znodes of
// other programs there may be other things: there, what has no queue is no lock.
func (e *ensemble) read(ctx context.Context, s *server) ([]lockNode, error) {
	parent, matches := e.search()
	names, err := call(ctx, s, func() ([]string, error) {
		names, _, err := s.conn().Children(parent)
		return names, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, step("list", parent, err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, probePrefix) || !matches(name) })
	slices.Sort(names)
	names = names[:min(len(names), mostLocks)]
	set := make([]lockNode, len(names))
	err = each(len(names), func(i int) error {
		path := join(parent, names[i])
		l, err := call(ctx, s, func() (lockNode, error) {
			children, stat, err := s.conn().Children(path)
			return lockNode{path, stat, children}, err
		})
		switch {
		case errors.Is(err, zk.ErrNoNode): // gone by now
			return nil
		case errors.Is(err, zk.ErrNoAuth): // the check of permissions tells
			l.path = path
		case err != nil:
			return step("list", path, err)
		}
		set[i] = l
		return nil
	})
	return slices.DeleteFunc(set, func(l lockNode) bool {
		return l.path == "" || l.ephemeral() || parent != e.Options.Root && !slices.ContainsFunc(l.children, contends)
	}), err
}

// ephemeral reports whether the znode can have no children.
func (l lockNode) ephemeral() bool {
	return l.stat != nil && l.stat.EphemeralOwner != 0 // which containers do not show
}

// each calls f for each of n indexes, some at a time. It returns one error, if
// there is any.
func each(n int, f func(i int) error) error {
	var (
		all   sync.WaitGroup
		slots = make(chan struct{}, readers)
		errs  = make([]error, n)
	)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = f(i)
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// count tells how many locks were looked at.
func (e *ensemble) count(ctx context.Context) ([]Finding, error) {
	set, err := e.locks(ctx)
	if refusedByZooKeeper(err) {
		return only(ok(seePermissions))
	}
	if err != nil {
		return nil, err
	}
	contenders, empty := 0, 0
	for _, l := range set {
		for _, name := range l.children {
			if contends(name) {
				contenders++
			}
		}
		if len(l.children) == 0 {
			empty++
		}
	}
	where, _ := e.search()
	told := fmt.Sprintf("%s in %s, %d of them without a queue; %s", count(len(set), "lock"), where, empty, count(contenders, "contender"))
	if len(set) == mostLocks {
		told += "; there may be more, which were not looked at"
	}
	return only(ok("%s", told))
}
