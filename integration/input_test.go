package integration_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// The server clamps the session timeout, and the client shows the negotiated one.
func TestSessionTimeouts(t *testing.T) {
	start(t)
	addr := server(t).Addr()
	for _, c := range []struct{ ask, want time.Duration }{
		{0, zklock.DefaultSessionTimeout},
		{time.Millisecond, 2 * tick},
		{zklock.MaxSessionTimeout, longest},
	} {
		client := dialServers(t, zklock.Options{SessionTimeout: c.ask}, addr)
		if got := client.SessionTimeout(); got != c.want {
			t.Errorf("asked for %v: the session's timeout is %v, want %v", c.ask, got, c.want)
		}
		if c.want > time.Second {
			release(t, take(t, client, newKey(t)))
		}
		finish(t, client)
	}
}

// Dial ends with its ctx or with Options.DialTimeout, reports why, and leaves no goroutine (start checks that). What
// answers in another protocol is tested in zklock.
func TestDialNobodyAnswers(t *testing.T) {
	t.Parallel()
	const soon = time.Second
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	mum := func(t *testing.T) string { return listener(t, nil) }
	for name, c := range map[string]struct {
		addr    func(*testing.T) string
		ctx     context.Context // nil: one that ends soon
		timeout time.Duration   // of Dial
		tls     *tls.Config
		want    error
	}{
		"wrong port":                  {nowhere, nil, 0, nil, context.DeadlineExceeded},
		"silent server":               {mum, nil, 0, nil, context.DeadlineExceeded},
		"silent server, dial timeout": {mum, context.Background(), soon, nil, context.DeadlineExceeded},
		"silent server, with TLS":     {mum, nil, 0, &tls.Config{}, context.DeadlineExceeded},
		"cancelled":                   {mum, cancelled, 0, nil, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			start(t)
			ctx, addr := c.ctx, c.addr(t)
			opts := &zklock.Options{DialTimeout: cmp.Or(c.timeout, patience), TLS: c.tls, SessionTimeout: 2 * time.Second}
			if ctx == nil {
				wait := soon
				if c.tls != nil {
					wait = 5 * time.Second // the client gives the handshake up before that
				}
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(context.Background(), wait)
				defer cancel()
			}
			began := time.Now()
			_, err := zklock.Dial(ctx, []string{addr}, opts)
			if !errors.Is(err, holdfast.ErrDisconnected) || !errors.Is(err, c.want) || !strings.Contains(err.Error(), addr) {
				t.Errorf("Dial returns %v, want %v and %v", err, holdfast.ErrDisconnected, c.want)
			}
			if c.tls != nil && !strings.Contains(fmt.Sprint(err), "TLS") {
				t.Errorf("Dial returns %v, which does not mention TLS", err)
			}
			if time.Since(began) > promptly {
				verdict.Fatalf(t, "Dial does not end with its ctx")
			}
		})
	}
}

// digest is a credential and the ACL that admits only it.
func digest(t *testing.T) (zklock.Auth, []zk.ACL) {
	t.Helper()
	user := newKey(t)
	return zklock.Auth{Scheme: "digest", Credentials: user + ":secret"}, zk.DigestACL(zk.PermAll, user, "secret")
}

// Locks under ACLs, before and after a reconnect; other clients are denied, with the path
// in the error.
func TestDigestAndACL(t *testing.T) {
	start(t)
	auth, acl := digest(t)
	opts := &zklock.Options{Auth: []zklock.Auth{auth}, ACL: acl, ParentACL: acl, Root: "/" + newKey(t)}
	client, p := proxied(t, opts)
	key := newKey(t)
	events := client.Events()
	defer events.Close()
	receive(t, "Ready", events.Ready())
	lock := take(t, client, key)

	for name, auth := range map[string][]zklock.Auth{
		"wrong digest": {{Scheme: "digest", Credentials: strings.Split(auth.Credentials, ":")[0] + ":wrong"}},
		"none":         nil,
	} {
		other := dial(t, server(t).Addr(), &zklock.Options{Root: opts.Root, Auth: auth})
		_, acquireErr := other.Acquire(limited(t), key)
		_, tryErr := other.TryAcquire(limited(t), key)
		_, inspectErr := other.Inspect(limited(t), key)
		for call, err := range map[string]error{"Acquire": acquireErr, "TryAcquire": tryErr, "Inspect": inspectErr} {
			if !errors.Is(err, holdfast.ErrDenied) || !strings.Contains(err.Error(), opts.Root+"/"+key) {
				t.Errorf("%s: %s returns %v, want %v with the path", name, call, err, holdfast.ErrDenied)
			}
		}
		finish(t, other)
	}

	p.Drop()
	receive(t, "Disconnected", events.Disconnected())
	receive(t, "Ready", events.Ready())
	must(t, lock.Verify(limited(t)))
	release(t, lock)
	again := take(t, client, key+".2")
	if names, _, err := client.Conn().Children(opts.Root + "/" + key + ".2"); err != nil || len(names) != 1 {
		t.Errorf("children %q, %v", names, err)
	} else if got, _, err := client.Conn().GetACL(opts.Root + "/" + key + ".2/" + names[0]); err != nil || !slices.Equal(got, acl) {
		t.Errorf("ACL is %v, %v; want %v", got, err, acl)
	}
	release(t, again)
	noWatches(t, server(t).Addr(), opts.Root)
}

// An unknown scheme is a permission error, not a network error, and Dial reports it at
// once.
func TestUnknownAuthScheme(t *testing.T) {
	start(t)
	opts := &zklock.Options{Auth: []zklock.Auth{{Scheme: "nosuch", Credentials: "x"}}}
	_, err := zklock.Dial(limited(t), []string{server(t).Addr()}, opts)
	if !errors.Is(err, holdfast.ErrDenied) || strings.Contains(err.Error(), "secret") {
		t.Errorf("Dial returns %v, want %v", err, holdfast.ErrDenied)
	}
}

// A request with data that the server refuses fails alone.
func TestDataOverServersLimit(t *testing.T) {
	start(t)
	s := zkserver.New(t, zkserver.Config{
		TickTime:          tick,
		MaxSessionTimeout: longest,
		Props:             map[string]string{"jute.maxbuffer": "20000"},
	})
	conn := plain(t, s.Addr())
	client := dial(t, s.Addr(), nil)
	other := take(t, client, "other")
	_, err := client.Acquire(limited(t), "large", holdfast.WithData(make([]byte, 60<<10)))
	if !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("Acquire returns %v", err)
	}
	small := take(t, client, "large", holdfast.WithData(make([]byte, 10<<10)))
	must(t, other.Verify(limited(t)))
	release(t, small)
	release(t, other)
	noResidue(t, conn, under("large"))
	noResidue(t, conn, under("other"))
	noWatches(t, s.Addr(), "")
}

// A lock cannot be below an ephemeral node.
func TestEphemeralOnThePath(t *testing.T) {
	start(t)
	addr, key := server(t).Addr(), "/"+newKey(t)
	must(t, errOf(plain(t, addr).Create(key, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))))
	client := dial(t, addr, nil)
	for _, k := range []string{key, key + "/deeper"} {
		_, err := client.Acquire(limited(t), k)
		if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), key) {
			t.Errorf("Acquire of %q returns %v", k, err)
		}
	}
}

// Parents are of the type that Options set.
func TestParents(t *testing.T) {
	t.Parallel()
	for name, persistent := range map[string]bool{"containers": false, "persistent": true} {
		t.Run(name, func(t *testing.T) {
			play(t, &zklock.Options{PersistentParents: persistent}, func(t *testing.T, s *scene) {
				release(t, take(t, s.client, "/"+s.key+"/deep/er"))
				// A stat does not identify containers; the requests do. The client tries the
				// lowest parent first, and again on its way up and down.
				containers := s.proxy.Count(faultproxy.ToServer, faultproxy.OpCreateContainer)
				others := s.proxy.Count(faultproxy.ToServer, faultproxy.OpCreate)
				if (containers > 0) == persistent || (others > 2) != persistent {
					t.Errorf("%d container nodes and %d others were created", containers, others)
				}
			})
		})
	}
}
