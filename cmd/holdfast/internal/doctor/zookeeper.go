package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/zklock"
)

// ZooKeeper says what to examine.
type ZooKeeper struct {
	Servers []string
	Options zklock.Options
	Prefix  string        // of the keys to look at
	Timeout time.Duration // for each check
}

// zooKeeperChecks in the order in which they are made: each may rely on what
// those before have found.
var zooKeeperChecks = []check[*ensemble]{
	{id: "server", look: (*ensemble).reach},
	{id: "role", look: (*ensemble).roles},
	{id: "session", look: (*ensemble).session},
	{id: "permissions", look: (*ensemble).permissions},
	{id: "write", look: (*ensemble).write},
	{id: "agreement", look: (*ensemble).agreement},
	{id: "containers", look: (*ensemble).containers},
	{id: "lock", look: (*ensemble).trial},
	{id: "locks", look: (*ensemble).count},
	{id: "foreign", look: (*ensemble).foreign},
	{id: "counter", look: (*ensemble).counters},
	{id: "acl", look: (*ensemble).open},
	{id: "clock", look: (*ensemble).clock},
}

// Examine makes the checks and reports each finding as it comes. It fails if ctx
// ends, if report does, and with holdfast.ErrInvalid for what makes no sense.
func (z ZooKeeper) Examine(ctx context.Context, report func(Finding) error) error {
	e := &ensemble{ZooKeeper: z, probe: probeName()}
	hosts, chroot, _ := strings.Cut(strings.Join(z.Servers, ","), "/") // as zklock.Dial does
	if chroot != "" {
		e.chroot = "/" + chroot
	}
	for addr := range strings.SplitSeq(hosts, ",") {
		e.servers = append(e.servers, &server{addr: addr})
	}
	e.root = e.chroot + cmp.Or(e.Options.Root, zklock.DefaultRoot)
	if err := e.valid(); err != nil {
		return err
	}
	defer e.close()
	return examine(ctx, examination{timeout: z.Timeout, report: report, refused: refusedByZooKeeper}, e, zooKeeperChecks)
}

// valid refuses settings that make no sense, before anything is sent.
func (e *ensemble) valid() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := zklock.Dial(ctx, e.Servers, &e.Options)
	if errors.Is(err, holdfast.ErrInvalid) {
		return err
	}
	return nil
}

// refusedByZooKeeper reports whether an error is a server's answer.
func refusedByZooKeeper(err error) bool {
	return errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrAuthFailed) || errors.Is(err, holdfast.ErrDenied)
}

// An ensemble is what is examined.
type ensemble struct {
	ZooKeeper
	chroot  string // of the client, with a leading slash; "" for none
	root    string // as servers see it
	servers []*server
	main    *server  // the first of those that gave a session
	probe   string   // name of the node that is written to
	written bool     // it is there
	made    []string // znodes to be removed at the end, in the order in which they were made

	writes  latencies
	leader  clock
	lockSet []lockNode // that main shows
}

// A server is one of those that were named, with a session of its own.
type server struct {
	addr   string
	down   bool           // it cannot be connected to
	client *zklock.Client // nil without a session
	calls  sync.WaitGroup // requests under way, also those that nobody waits for any more
	status status
}

// reached are the servers that gave a session.
func (e *ensemble) reached() []*server {
	return slices.DeleteFunc(slices.Clone(e.servers), func(s *server) bool { return s.client == nil })
}

// conn is the connection of a server that gave a session.
func (s *server) conn() *zk.Conn { return s.client.Conn() }

// call makes a request, which go-zookeeper may hold for as long as it likes, and
// gives it up when ctx ends.
func call[T any](ctx context.Context, s *server, request func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	s.calls.Go(func() {
		value, err := request()
		done <- result{value, err}
	})
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// do is call for requests of which only the error matters.
func do(ctx context.Context, s *server, request func() error) error {
	_, err := call(ctx, s, func() (struct{}, error) { return struct{}{}, request() })
	return err
}

// step says what was attempted on which znode.
func step(what, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, path, err)
}

// makeRoot makes the znodes down to the root as far as they are missing, as
// clients do, and notes which.
func (e *ensemble) makeRoot(ctx context.Context) error {
	for _, path := range pathsTo(e.root) {
		if err := e.makeContainer(ctx, path); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

func (e *ensemble) makeContainer(ctx context.Context, path string) error {
	exists, err := e.main.exists(ctx, path)
	if err != nil {
		return err
	}
	if exists != nil {
		return zk.ErrNodeExists
	}
	acl := e.Options.ParentACL
	if len(acl) == 0 {
		acl = zk.WorldACL(zk.PermAll)
	}
	err = do(ctx, e.main, func() error {
		_, err := e.main.conn().CreateContainer(path, nil, zk.FlagContainer, acl)
		return err
	})
	if !errors.Is(err, zk.ErrNodeExists) && !refusedByZooKeeper(err) { // perhaps made, if no answer came
		e.made = append(e.made, path)
	}
	return step("create", path, err)
}

// exists returns a znode's state, or nil if there is none.
func (s *server) exists(ctx context.Context, path string) (*zk.Stat, error) {
	return call(ctx, s, func() (*zk.Stat, error) {
		found, stat, err := s.conn().Exists(path)
		if err != nil || !found {
			return nil, step("look at", path, err)
		}
		return stat, nil
	})
}

// close removes what was made, the last first, and ends the sessions. What
// others have put to use meanwhile stays.
func (e *ensemble) close() {
	ctx, cancel := cleaning(e.Timeout)
	defer cancel()
	for _, s := range e.servers {
		s.settle(ctx)
	}
	for _, path := range slices.Backward(e.made) {
		if ctx.Err() == nil {
			_ = do(ctx, e.main, func() error { return e.main.conn().Delete(path, -1) })
		}
	}
	var all sync.WaitGroup
	for _, s := range e.reached() {
		all.Go(func() { _ = s.client.Close(ctx) })
	}
	all.Wait()
}

// settle waits until no request is under way that could still make something.
func (s *server) settle(ctx context.Context) {
	settled := make(chan struct{})
	go func() {
		s.calls.Wait()
		close(settled)
	}()
	select {
	case <-settled:
	case <-ctx.Done():
	}
}

// pathsTo returns a path and those above it, the highest first.
func pathsTo(path string) []string {
	var all []string
	for i, r := range path {
		if r == '/' && i > 0 {
			all = append(all, path[:i])
		}
	}
	return append(all, path)
}
