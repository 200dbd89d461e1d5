package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/zklock"
)

// ZooKeeper says what to examine.
type ZooKeeper struct {
	Servers []string
	Options zklock.Options
	Prefix  string        // of the keys to look at
	Timeout time.Duration // for each check
}

// zooKeeperChecks are the checks in order: each may rely on the findings of earlier ones.
var zooKeeperChecks = []check[*ensemble]{
	{"server", (*ensemble).reach},
	{"role", (*ensemble).roles},
	{"session", (*ensemble).session},
	{"permissions", (*ensemble).permissions},
	{"write", (*ensemble).write},
	{"agreement", (*ensemble).agreement},
	{"lock", (*ensemble).trial},
	{"locks", ofLocks((*ensemble).count)},
	{"foreign", ofLocks((*ensemble).foreign)},
	{"counter", ofLocks((*ensemble).counters)},
	{"acl", (*ensemble).open},
}

// Examine runs the checks and reports each finding at once. It fails if ctx ends, if report fails, or with holdfast.ErrInvalid if the
// settings make no sense.
func (z ZooKeeper) Examine(ctx context.Context, report func(Finding) error) error {
	e := &ensemble{ZooKeeper: z}
	hosts, chroot, _ := strings.Cut(strings.Join(z.Servers, ","), "/") // as zklock.Dial does
	if chroot != "" {
		e.chroot = "/" + chroot
	}
	e.root = e.chroot + cmp.Or(e.Options.Root, zklock.DefaultRoot)
	e.probe = join(e.root, probeName())
	if err := valid(func(ctx context.Context) error { _, err := zklock.Dial(ctx, e.Servers, &e.Options); return err }); err != nil {
		return err
	}
	for _, name := range zk.FormatServers(strings.Split(hosts, ",")) {
		e.servers = append(e.servers, z.lookUp(ctx, name)...)
	}
	defer e.close()
	return examine(ctx, examination{timeout: z.Timeout, report: report, refused: refusedByZooKeeper}, e, zooKeeperChecks)
}

// refusedByZooKeeper reports whether a server has answered with an error.
func refusedByZooKeeper(err error) bool {
	return errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrAuthFailed) || errors.Is(err, holdfast.ErrDenied)
}

// unlessDenied replaces a lack of permissions with errUnseen.
func unlessDenied(err error) error {
	if refusedByZooKeeper(err) {
		return errUnseen
	}
	return err
}

// An ensemble is what is examined.
type ensemble struct {
	ZooKeeper
	chroot  string // of the client, with a leading slash; "" for none
	root    string // as servers see it
	servers []*server
	main    *server    // the first that granted a session
	probe   string     // the znode for measuring writes
	written bool       // the probe exists
	made    []string   // znodes to remove at the end, in the order of creation
	lockSet []lockNode // as main shows them
}

// A server is an address in --servers, with a session of its own.
type server struct {
	addr    string         // for people
	at      string         // to connect to
	tls     *tls.Config    // nil for none
	down    bool           // it cannot be connected to
	client  *zklock.Client // nil without a session
	calls   sync.WaitGroup // requests in flight, including abandoned ones
	mode    string         // leader, follower, observer or standalone; "" if unknown
	version string
}

// lookUp returns a server for each address of a name. A name with one address of each family is one server.
func (z ZooKeeper) lookUp(ctx context.Context, name string) []*server {
	ctx, cancel := context.WithTimeout(ctx, z.Timeout)
	defer cancel()
	host, port, _ := net.SplitHostPort(name)
	var config *tls.Config
	if z.Options.TLSConfig != nil {
		config = new(tls.Config)
		if present, err := z.Options.TLSConfig(); err == nil && present != nil {
			config = present.Clone()
		}
		config.ServerName = cmp.Or(config.ServerName, host)
	}
	addresses, _ := network.LookUp(ctx, host) // if it fails, so does the connection, by the same error
	if len(addresses) < 2 || len(addresses) == 2 && strings.Contains(addresses[0], ":") != strings.Contains(addresses[1], ":") {
		return []*server{{addr: name, at: name, tls: config}}
	}
	all := make([]*server, len(addresses))
	for i, address := range addresses {
		all[i] = &server{addr: fmt.Sprintf("%s (%s)", name, address), at: net.JoinHostPort(address, port), tls: config}
	}
	return all
}

// reached are the servers that granted a session.
func (e *ensemble) reached() []*server {
	return slices.DeleteFunc(slices.Clone(e.servers), func(s *server) bool { return s.client == nil })
}

// conn is the connection of a server that granted a session.
func (s *server) conn() *zk.Conn { return s.client.Conn() }

// call makes a request, which go-zookeeper may hold for any time, and abandons it when ctx ends.
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

// step adds to an error what was attempted on which znode.
func step(what, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, path, err)
}

// makeRoot creates the missing znodes down to the root, as clients do.
func (e *ensemble) makeRoot(ctx context.Context) error {
	for _, path := range pathsTo(e.root) {
		stat, err := e.main.exists(ctx, path)
		if err != nil {
			return err
		}
		if stat != nil {
			continue
		}
		err = do(ctx, e.main, func() error {
			_, err := e.main.conn().CreateContainer(path, nil, zk.FlagContainer, orOpen(e.Options.ParentACL))
			return err
		})
		if errors.Is(err, zk.ErrNodeExists) { // another client was faster
			continue
		}
		if !refusedByZooKeeper(err) { // without an answer, the znode may have been created
			e.made = append(e.made, path)
		}
		if err != nil {
			return step("create", path, err)
		}
	}
	return nil
}

// orOpen is the default of an ACL.
func orOpen(acl []zk.ACL) []zk.ACL {
	if len(acl) == 0 {
		return zk.WorldACL(zk.PermAll)
	}
	return acl
}

// exists returns the state of a znode, or nil if there is none. Without the permission READ the state is empty: servers from 3.8.4 and
// 3.9.2 on do not show it (ZOOKEEPER-2590).
func (s *server) exists(ctx context.Context, path string) (*zk.Stat, error) {
	return call(ctx, s, func() (*zk.Stat, error) {
		found, stat, err := s.conn().Exists(path)
		if errors.Is(err, zk.ErrNoAuth) {
			return &zk.Stat{}, nil
		}
		if err != nil || !found {
			return nil, step("look at", path, err)
		}
		return stat, nil
	})
}

// close removes all that was created, the last first, and ends the sessions. A znode that has got children stays.
func (e *ensemble) close() {
	ctx, cancel := cleaning(e.Timeout)
	defer cancel()
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		for _, s := range e.servers {
			s.calls.Wait() // a request that was given up may still create a znode
		}
	}()
	select {
	case <-settled:
	case <-ctx.Done():
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

func join(parent, name string) string { return strings.TrimSuffix(parent, "/") + "/" + name }
