package integration_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// G12. The client sends nothing for input that it refuses.
func TestBadKeys(t *testing.T) {
	start(t)
	client, p := proxied(t, nil)
	before := requests(p)
	for name, key := range map[string]string{
		"empty":                   "",
		"NUL":                     "a\x00b",
		"control character":       "a\nb",
		"dot":                     ".",
		"two dots":                "..",
		"dot inside":              "a/./b",
		"two dots at the end":     "a/..",
		"one slash":               "/",
		"only slashes":            "///",
		"empty element":           "a//b",
		"slash at the end":        "a/",
		"10 kB":                   strings.Repeat("k", 10_000),
		"invalid UTF-8":           "a\xffb",
		"root":                    "/holdfast",
		"inside root":             "/holdfast/a",
		"zookeeper":               "/zookeeper",
		"inside zookeeper":        "/zookeeper/quota",
		"absolute, dots":          "/a/../b",
		"absolute, NUL":           "/a\x00",
		"absolute, private use":   "/a\ue000",
		"absolute, non-BMP":       "/a\U0001f600",
		"absolute, slash at end":  "/a/",
		"absolute, two slashes":   "//a",
		"absolute, not character": "/a\uffff",
	} {
		var invalid *holdfast.InvalidError
		if _, err := client.Acquire(limited(t), key); !errors.As(err, &invalid) || invalid.Field != "key" || !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%s: Acquire returns %v", name, err)
		} else if len(err.Error()) > 2000 {
			t.Errorf("%s: the error's text has %d bytes", name, len(err.Error()))
		}
		if _, err := client.TryAcquire(limited(t), key); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%s: TryAcquire returns %v", name, err)
		}
		if _, err := client.AcquireAny(limited(t), []string{"good", key}); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%s: AcquireAny returns %v", name, err)
		}
		if _, err := client.Inspect(limited(t), key); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%s: Inspect returns %v", name, err)
		}
	}
	for name, opt := range map[string]holdfast.Option{
		"negative TTL":      holdfast.WithTTL(-time.Second),
		"zero wait":         holdfast.WithWait(0),
		"negative wait":     holdfast.WithWait(-1),
		"too much data":     holdfast.WithData(make([]byte, holdfast.MaxData+1)),
		"empty owner":       holdfast.WithOwner(""),
		"owner with NUL":    holdfast.WithOwner("a\x00b"),
		"reclaim, no owner": holdfast.WithReclaim(),
	} {
		if _, err := client.Acquire(limited(t), newKey(t), opt); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%s: Acquire returns %v", name, err)
		}
	}
	if n := requests(p) - before; n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// List returns keys unchanged, even those that need escaping in ZooKeeper's paths.
func TestUnusualKeys(t *testing.T) {
	start(t)
	client, _ := proxied(t, nil)
	prefix := newKey(t) + "/"
	want := []string{
		"100%", "%2F", "a%2Fb", "a b", " ", "\u00a0", "\ue000private", "non-BMP\U0001f600", "\ufffd", "a/b/c", "zoë", "_c_-lock-0000000000",
		strings.Repeat("\U0001f600", (holdfast.MaxKey-len(prefix))/4),
	}
	var locks []*holdfast.Lock
	for i, key := range want {
		want[i] = prefix + key
		lock, err := client.Acquire(limited(t), want[i])
		if err != nil {
			t.Fatalf("%q: %v", want[i], err)
		}
		locks = append(locks, lock)
		if again, err := client.Inspect(limited(t), want[i]); err != nil || again.Token != lock.Token() {
			t.Errorf("%q: Inspect returns %+v, %v", want[i], again, err)
		}
	}
	slices.Sort(want)
	var got []string
	for info, err := range client.List(limited(t), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, info.Key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("List yields\n%q, want\n%q", got, want)
	}
	for _, lock := range locks {
		release(t, lock)
	}
	for info, err := range client.List(limited(t), prefix) {
		t.Errorf("List yields %+v, %v after all are released", info, err)
	}
}

// The server clamps the session timeout, and the client shows the negotiated one.
func TestSessionTimeouts(t *testing.T) {
	start(t)
	addr := server(t).Addr()
	for _, c := range []struct{ ask, want time.Duration }{
		{0, zklock.DefaultSessionTimeout},
		{time.Millisecond, 2 * tick},
		{zklock.MaxSessionTimeout, longest},
	} {
		client := dial(t, addr, &zklock.Options{SessionTimeout: c.ask})
		if got := client.SessionTimeout(); got != c.want {
			t.Errorf("asked for %v: the session's timeout is %v, want %v", c.ask, got, c.want)
		}
		if c.want > time.Second {
			release(t, granted(t, acquiring(limited(t), client, newKey(t))))
		}
		finish(t, client)
	}
	for _, ask := range []time.Duration{-1, time.Microsecond, zklock.MaxSessionTimeout + 1} {
		if _, err := zklock.Dial(limited(t), []string{addr}, &zklock.Options{SessionTimeout: ask}); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("asked for %v: %v", ask, err)
		}
	}
}

// G12, for Dial.
func TestBadOptions(t *testing.T) {
	start(t)
	addr := server(t).Addr()
	for name, opts := range map[string]zklock.Options{
		"root, relative":         {Root: "a"},
		"root, /":                {Root: "/"},
		"root in zookeeper":      {Root: "/zookeeper/a"},
		"root, slash at the end": {Root: "/a/"},
		"names":                  {Names: 7},
		"heartbeat":              {Heartbeat: 1},
		"margin":                 {Margin: -1},
		"auth":                   {Auth: []zklock.Auth{{}}},
		"owner":                  {Owner: "a\x00b"},
	} {
		if _, err := zklock.Dial(limited(t), []string{addr}, &opts); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, servers := range [][]string{nil, {}, {""}, {"a:1,,b:2"}, {addr + "/app", addr}, {addr, "a b:1"}} {
		if _, err := zklock.Dial(limited(t), servers, nil); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("servers %q: %v", servers, err)
		}
	}
}

// Dial ends with its ctx or with Options.DialTimeout, reports why, and leaves no
// goroutine (start checks that).
func TestDialNobodyAnswers(t *testing.T) {
	t.Parallel()
	dialIt := func(t *testing.T, ctx context.Context, addr string, opts *zklock.Options, want error) {
		t.Helper()
		failed := make(chan error, 1)
		go func() {
			client, err := zklock.Dial(ctx, []string{addr}, opts)
			if err == nil {
				_ = client.Close(context.Background())
			}
			failed <- err
		}()
		select {
		case err := <-failed:
			if !errors.Is(err, holdfast.ErrDisconnected) || !errors.Is(err, want) || !strings.Contains(err.Error(), addr) {
				t.Errorf("Dial returns %v, want %v and %v", err, holdfast.ErrDisconnected, want)
			}
		case <-time.After(promptly):
			t.Fatal("Dial does not end with its ctx")
		}
	}
	silentServer := func(t *testing.T) string {
		t.Helper()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				if _, err := listener.Accept(); err != nil {
					return
				}
			}
		}()
		return listener.Addr().String()
	}
	t.Run("wrong port", func(t *testing.T) {
		start(t)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = listener.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		dialIt(t, ctx, listener.Addr().String(), nil, context.DeadlineExceeded)
	})
	t.Run("silent server", func(t *testing.T) {
		start(t)
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		dialIt(t, ctx, silentServer(t), nil, context.DeadlineExceeded)
	})
	t.Run("silent server, dial timeout", func(t *testing.T) {
		start(t)
		dialIt(t, context.Background(), silentServer(t), &zklock.Options{DialTimeout: 300 * time.Millisecond}, context.DeadlineExceeded)
	})
	t.Run("cancelled", func(t *testing.T) {
		start(t)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		dialIt(t, ctx, silentServer(t), nil, context.Canceled)
	})
	t.Run("not ZooKeeper", func(t *testing.T) {
		start(t)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
				_ = conn.Close()
			}
		}()
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		dialIt(t, ctx, listener.Addr().String(), nil, holdfast.ErrDisconnected)
	})
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
	opts := options()
	opts.Auth, opts.ACL, opts.ParentACL = []zklock.Auth{auth}, acl, acl
	opts.Root = "/" + newKey(t)
	client, p := proxied(t, opts)
	key := newKey(t)
	events := client.Events()
	defer events.Close()
	receive(t, "Ready", events.Ready())
	lock := granted(t, acquiring(limited(t), client, key))

	for name, auth := range map[string][]zklock.Auth{
		"wrong digest": {{Scheme: "digest", Credentials: strings.Split(auth.Credentials, ":")[0] + ":wrong"}},
		"none":         nil,
	} {
		stranger := options()
		stranger.Root, stranger.Auth = opts.Root, auth
		other := dial(t, server(t).Addr(), stranger)
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
	if err := lock.Verify(limited(t)); err != nil {
		t.Error(err)
	}
	release(t, lock)
	again := granted(t, acquiring(limited(t), client, key+".2"))
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
	opts := options()
	opts.Auth = []zklock.Auth{{Scheme: "nosuch", Credentials: "x"}}
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
	other := granted(t, acquiring(limited(t), client, "other"))
	_, err := client.Acquire(limited(t), "large", holdfast.WithData(make([]byte, 60<<10)))
	if !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("Acquire returns %v", err)
	}
	small := granted(t, acquiring(limited(t), client, "large", holdfast.WithData(make([]byte, 10<<10))))
	if err := other.Verify(limited(t)); err != nil {
		t.Error(err)
	}
	release(t, small)
	release(t, other)
	noResidue(t, conn, under("large"))
	noResidue(t, conn, under("other"))
	noWatches(t, s.Addr(), "")
}

// A lock cannot be below an ephemeral node.
func TestEphemeralOnThePath(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, _ := proxied(t, nil)
	key := "/" + newKey(t)
	if _, err := conn.Create(key, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{key, key + "/deeper"} {
		_, err := client.Acquire(limited(t), k)
		if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), key) {
			t.Errorf("Acquire of %q returns %v", k, err)
		}
	}
}
