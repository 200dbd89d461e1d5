package doctor

import (
	"context"
	"errors"
	"fmt"
	"math"
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

// each calls f for each of n indexes, some at a time.
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
	return errors.Join(errs...)
}

// markers are what stands before the sequence number in the names of those who
// contend for a lock, in every form that holdfast respects (package zklock).
var markers = []string{"lock-", "latch-", "read-", "write-", "__lock__", "__rlock__", "__READ__", "__WRIT__"}

// contends reports whether a name is that of a contender: a marker, and a
// sequence number of ten digits, or past the overflow a sign and nine or ten.
func contends(name string) bool {
	front := strings.TrimRight(name, "0123456789")
	digits := len(name) - len(front)
	if digits == 10 && marked(front) {
		return true
	}
	unsigned, signed := strings.CutSuffix(front, "-")
	return signed && (digits == 9 || digits == 10) && marked(unsigned)
}

func marked(front string) bool {
	return slices.ContainsFunc(markers, func(m string) bool { return strings.HasSuffix(front, m) })
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

// foreign looks for children of locks that do not contend for them.
func (e *ensemble) foreign(ctx context.Context) ([]Finding, error) {
	set, err := e.locks(ctx)
	if refusedByZooKeeper(err) {
		return only(ok(seePermissions))
	}
	if err != nil {
		return nil, err
	}
	var strangers []string
	for _, l := range set {
		for _, name := range l.children {
			if !contends(name) {
				strangers = append(strangers, join(l.path, name))
			}
		}
	}
	if len(strangers) == 0 {
		return only(ok("whatever is in a queue is there to contend"))
	}
	return only(warning(
		"delete or move them: holdfast ignores them, but Curator waits for each to go, and go-zookeeper's Lock fails",
		"%s of no lock recipe in queues: %s", count(len(strangers), "znode"), some(strangers),
	))
}

// The end of a lock's sequence counter, and where to begin to warn of it, as
// package zklock does.
const (
	lastSequence = math.MaxInt32
	warnSequence = lastSequence - 1<<27
)

// next is the sequence number that the next child gets. What a server shows of
// the counter is twice that, less the number of children, in 32 bits.
func (l lockNode) next() uint32 { return uint32(l.stat.Cversion+l.stat.NumChildren) / 2 }

// counters looks for locks of which the sequence counter nears its end.
func (e *ensemble) counters(ctx context.Context) ([]Finding, error) {
	set, err := e.locks(ctx)
	if refusedByZooKeeper(err) {
		return only(ok(seePermissions))
	}
	if err != nil {
		return nil, err
	}
	highest := uint32(0)
	var findings []Finding
	const cure = "stop those who use the lock, delete %s, start them again (docs/operating.md, A counter near its end)"
	for _, l := range set {
		if l.stat == nil {
			continue
		}
		next := l.next()
		highest = max(highest, next)
		switch {
		case next >= lastSequence:
			findings = append(findings, problem(fmt.Sprintf(cure, l.path),
				"the sequence counter of %s is at its end, %d: Curator, kazoo and go-zookeeper's Lock may let two have it", l.path, lastSequence))
		case next >= warnSequence:
			findings = append(findings, warning(fmt.Sprintf(cure, l.path),
				"the sequence counter of %s is at %d, %d before its end", l.path, next, lastSequence-next))
		}
	}
	if len(findings) == 0 {
		return only(ok("the highest sequence counter is at %d of %d", highest, lastSequence))
	}
	return findings, nil
}

// open looks for ACLs that let everybody break locks.
func (e *ensemble) open(ctx context.Context) ([]Finding, error) {
	set, err := e.locks(ctx)
	if refusedByZooKeeper(err) {
		return only(ok(seePermissions))
	}
	if err != nil {
		return nil, err
	}
	where, _ := e.search()
	paths := []string{where}
	if where == "/" { // nobody's
		paths = nil
	}
	for _, l := range set {
		paths = append(paths, l.path)
	}
	byPath := make([]bool, len(paths))
	err = each(len(paths), func(i int) error {
		acl, err := call(ctx, e.main, func() ([]zk.ACL, error) {
			acl, _, err := e.main.conn().GetACL(paths[i])
			return acl, err
		})
		if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
			return nil
		}
		byPath[i] = slices.ContainsFunc(acl, toEverybody)
		return step("read the ACL of", paths[i], err)
	})
	if err != nil {
		return nil, err
	}
	var open []string
	for i, path := range paths {
		if byPath[i] {
			open = append(open, path)
		}
	}
	return only(judgeACLs(open, slices.ContainsFunc(e.acl(), toEverybody), len(e.Options.Auth) > 0))
}

// toEverybody reports whether an entry lets everybody do more than read.
func toEverybody(a zk.ACL) bool { return a.Scheme == "world" && a.Perms&^zk.PermRead != 0 }

// judgeACLs is told which znodes are open, whether new ones will be, and whether
// there are credentials.
func judgeACLs(open []string, newOnes, credentials bool) Finding {
	var told []string
	if len(open) > 0 {
		told = append(told, fmt.Sprintf("%s open to the world, so everybody can break locks: %s", count(len(open), "znode"), some(open)))
	}
	if newOnes {
		told = append(told, "what is made from now on is open to the world, too (--acl open)")
	}
	if len(told) == 0 {
		return ok("only those with credentials can take or break locks")
	}
	cure := "give all clients credentials (HOLDFAST_AUTH, --auth-file) and --acl creator, and set the ACL of what is there (zkCli.sh: setAcl)"
	if credentials {
		cure = "give all clients --acl creator, and set the ACL of what is there (zkCli.sh: setAcl); there are credentials already"
	}
	return warning(cure, "%s", strings.Join(told, "; "))
}
