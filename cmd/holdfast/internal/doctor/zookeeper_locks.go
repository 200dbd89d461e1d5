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

	"github.com/holdfast-go/holdfast/internal/sequence"
)

const (
	maxLocks = 10000 // that are looked at
	readers  = 16    // requests in flight
)

// A lockNode is the znode of a lock, whose children are its queue.
type lockNode struct {
	path     string
	stat     *zk.Stat // nil if the lock may not be listed
	children []string
}

// search returns the znode whose children are the locks, and selects the children to look at. The prefix has the same meaning as in "ls".
func (e *ensemble) search() (parent string, matches func(child string) bool) {
	if slash := strings.LastIndexByte(e.Prefix, '/'); strings.HasPrefix(e.Prefix, "/") {
		return cmp.Or(e.chroot+e.Prefix[:slash], "/"), func(child string) bool { return strings.HasPrefix(child, e.Prefix[slash+1:]) }
	}
	return e.root, func(child string) bool {
		key, err := url.PathUnescape(child)
		return err == nil && strings.HasPrefix(key, e.Prefix)
	}
}

// locks returns the locks that the main server shows. It reads them once.
func (e *ensemble) locks(ctx context.Context) (set []lockNode, err error) {
	if e.lockSet == nil {
		if e.lockSet, err = e.read(ctx, e.main); err != nil {
			e.lockSet = nil
		}
	}
	return e.lockSet, unlessDenied(err)
}

// read lists the locks that a server shows, with their queues. Outside the root, a znode without contenders belongs to another program.
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
	names = names[:min(len(names), maxLocks)]
	set := make([]lockNode, len(names))
	err = each(len(names), func(i int) error {
		path := join(parent, names[i])
		l, err := call(ctx, s, func() (lockNode, error) {
			children, stat, err := s.conn().Children(path)
			return lockNode{path, stat, children}, err
		})
		switch {
		case errors.Is(err, zk.ErrNoNode): // deleted by now
			return nil
		case errors.Is(err, zk.ErrNoAuth): // the check of permissions reports it
			l = lockNode{path: path}
		case err != nil:
			return step("list", path, err)
		}
		set[i] = l
		return nil
	})
	return slices.DeleteFunc(set, func(l lockNode) bool {
		ephemeral := l.stat != nil && l.stat.EphemeralOwner != 0 // it can have no children
		return l.path == "" || ephemeral || parent != e.root && !slices.ContainsFunc(l.children, contends)
	}), err
}

// well is the finding of a check of all locks that has found nothing wrong. It is skipped if a lock may not be listed.
func well(set []lockNode, found string, args ...any) ([]Finding, error) {
	unseen := slices.DeleteFunc(slices.Clone(set), func(l lockNode) bool { return l.stat != nil })
	if len(unseen) > 0 {
		return only(skipped(permit, "%s; %s may not be listed", fmt.Sprintf(found, args...), count(len(unseen), "lock")))
	}
	return only(ok(found, args...))
}

// each calls f for each of n indexes, some at a time. It returns one of the errors.
func each(n int, f func(i int) error) error {
	var all sync.WaitGroup
	slots, errs := make(chan struct{}, readers), make([]error, n)
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

// ofLocks is a check of the locks that the main server shows.
func ofLocks(look func(e *ensemble, set []lockNode) ([]Finding, error)) func(*ensemble, context.Context) ([]Finding, error) {
	return func(e *ensemble, ctx context.Context) ([]Finding, error) {
		set, err := e.locks(ctx)
		if err != nil {
			return nil, err
		}
		return look(e, set)
	}
}

// count reports the number of locks.
func (e *ensemble) count(set []lockNode) ([]Finding, error) {
	contenders := 0
	for _, l := range set {
		contenders += len(l.children) - len(l.strangers())
	}
	where, _ := e.search()
	told := fmt.Sprintf("%s in %s; %s", count(len(set), "lock"), where, count(contenders, "contender"))
	if len(set) == maxLocks {
		told += "; there may be more, which were not looked at"
	}
	return well(set, "%s", told)
}

// contends reports whether a name is a contender's, in any form that holdfast respects.
func contends(name string) bool {
	_, ok := sequence.Of(name)
	return ok
}

// strangers returns the paths of the children that are not contenders.
func (l lockNode) strangers() (all []string) {
	for _, name := range l.children {
		if !contends(name) {
			all = append(all, join(l.path, name))
		}
	}
	return all
}

// foreign looks for children of locks that are not contenders.
func (e *ensemble) foreign(set []lockNode) ([]Finding, error) {
	var strangers []string
	for _, l := range set {
		strangers = append(strangers, l.strangers()...)
	}
	if len(strangers) == 0 {
		return well(set, "every node in the queues is a contender's")
	}
	return only(warning(
		"delete or move them: holdfast ignores them, but Curator waits for each of them, and go-zookeeper's Lock fails",
		"%s of no lock recipe in queues: %s", count(len(strangers), "znode"), some(strangers),
	))
}

// next is the sequence number of the next child. A server shows twice that, less the number of children, in 32 bits.
func (l lockNode) next() uint32 { return uint32(l.stat.Cversion+l.stat.NumChildren) / 2 }

// counters looks for locks whose sequence counter nears its end.
func (e *ensemble) counters(set []lockNode) ([]Finding, error) {
	highest := uint32(0)
	var findings []Finding
	for _, l := range set {
		if l.stat == nil {
			continue
		}
		cure := "stop all programs that use the lock, delete " + l.path + ", start them again (docs/operations.md, A counter near its end)"
		next := l.next()
		highest = max(highest, next)
		switch {
		case next >= sequence.Last:
			findings = append(findings, problem(cure, "the sequence counter of %s is at its end, %d: with Curator, kazoo or go-zookeeper's Lock, "+
				"two clients may have the lock", l.path, sequence.Last))
		case next >= sequence.Warn:
			findings = append(findings, warning(cure,
				"the sequence counter of %s is at %d, %d before its end", l.path, next, sequence.Last-next))
		}
	}
	if len(findings) == 0 {
		return well(set, "the highest sequence counter is at %d of %d", highest, sequence.Last)
	}
	return findings, nil
}
