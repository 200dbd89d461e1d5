package integration_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/locktest/logtest"
	"github.com/holdfast-go/holdfast/zklock"
)

// digest is a credential and the ACL that admits only it.
func digest(t *testing.T) (zklock.Auth, []zk.ACL) {
	t.Helper()
	user := newKey(t)
	return zklock.Auth{Scheme: "digest", Credentials: user + ":secret"}, zk.DigestACL(zk.PermAll, user, "secret")
}

// Locks under ACLs, before and after a reconnect; other clients are denied, with the path in the error. An unknown scheme is a
// permission error, not a network error, and Dial reports it at once.
func TestDigestAndACL(t *testing.T) {
	start(t)
	auth, acl := digest(t)
	opts := &zklock.Options{Auth: []zklock.Auth{auth}, ACL: acl, ParentACL: acl, Root: "/" + newKey(t)}
	client, p := proxied(t, opts)
	key := newKey(t)
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
	(&scene{client: client, proxy: p}).reconnects(t)
	must(t, lock.Verify(limited(t)))
	release(t, lock)
	again := take(t, client, key)
	if got, _, err := client.Conn().GetACL(nodeOf(t, client, again)); err != nil || !slices.Equal(got, acl) {
		t.Errorf("ACL is %v, %v; want %v", got, err, acl)
	}
	release(t, again)
	noWatches(t, server(t).Addr(), opts.Root)

	unknown := &zklock.Options{Auth: []zklock.Auth{{Scheme: "nosuch", Credentials: "secret"}}}
	err := errOf(zklock.Dial(limited(t), []string{server(t).Addr()}, unknown))
	if !errors.Is(err, holdfast.ErrDenied) || strings.Contains(err.Error(), "secret") {
		t.Errorf("Dial returns %v, want %v", err, holdfast.ErrDenied)
	}
}

// Z20. A client that may not delete or read its node reports that at once, logs it, and tries again.
func TestDenied(t *testing.T) {
	start(t)
	logs := &logtest.Recorder{}
	addr, opts := server(t).Addr(), &zklock.Options{
		SessionTimeout: 8 * time.Second, // it tries again after that
		Root:           "/" + newKey(t), Logger: logs.Logger(), PersistentParents: true,
		ParentACL: zk.WorldACL(zk.PermAll &^ zk.PermDelete),
	}
	client := dial(t, addr, opts)
	lock := take(t, client, "k")
	if err := lock.Release(limited(t)); !errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, holdfast.ErrDenied) {
		t.Errorf("Release = %v, want ErrReleasePending and ErrDenied", err)
	}
	eventually(t, "the refusal is logged", func() bool { return logs.Has("cannot delete own node") })
	conn := plain(t, addr)
	must(t, errOf(conn.SetACL(opts.Root+"/k", zk.WorldACL(zk.PermAll), -1)))
	noResidue(t, conn, opts.Root+"/k")

	opts.ACL, opts.Heartbeat = zk.WorldACL(zk.PermWrite), -1 // a heartbeat could end the lock before the read of the own node does
	blind := dial(t, addr, opts)
	take(t, blind, "k")
	if _, err := blind.Acquire(limited(t), "k"); !errors.Is(err, holdfast.ErrDenied) { // nor may it read its predecessor
		t.Errorf("Acquire = %v, want ErrDenied", err)
	}
	eventually(t, "the refusal is logged", func() bool { return logs.Has("own node cannot be watched") })
	finish(t, client)
	finish(t, blind)
	logs.Check(
		t, nil,
		logtest.Want{Text: "own node cannot be watched", Level: slog.LevelWarn, Attrs: "path error"},
		logtest.Want{Text: "cannot delete own node", Level: slog.LevelError, Attrs: "path error"},
	)
}

// Z30, Z35. A server hangs up on a request that is larger than its buffer. That call fails, and no other. Requests that gather
// go out in transactions that fit.
func TestServersLimit(t *testing.T) {
	start(t)
	s := zkserver.New(t, zkserver.Config{TickTime: tick, MaxSessionTimeout: longest, Props: map[string]string{"jute.maxbuffer": "49152"}})
	conn, p := plain(t, s.Addr()), proxy(t, s.Addr())
	client := dial(t, p.Addr(), &zklock.Options{SessionTimeout: longest})
	lock, large := take(t, client, "other", holdfast.WithData([]byte("old"))), make([]byte, 100<<10)
	if err := errOf(client.Acquire(limited(t), "large", holdfast.WithData(large))); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("Acquire returns %v", err)
	}
	if err := lock.SetData(limited(t), large); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("SetData returns %v", err)
	}
	if info, err := client.Inspect(limited(t), "other"); err != nil || string(info.Data) != "old" {
		t.Errorf("the data is %q, %v", info.Data, err)
	}
	must(t, lock.SetData(limited(t), large[:10<<10]))
	release(t, take(t, client, "large", holdfast.WithData(large[:10<<10])))
	must(t, lock.Verify(limited(t)))
	release(t, lock)
	noResidue(t, conn, under("large"))
	noResidue(t, conn, under("other"))
	noWatches(t, s.Addr(), "")

	p.ResetCounts()
	p.SetLatency(5 * time.Millisecond)
	var got []<-chan outcome
	for range 150 {
		key := newKey(t)
		prepare(t, conn, key)
		got = append(got, acquiring(limited(t), client, key, holdfast.WithData(large[:900])))
	}
	for _, g := range got {
		release(t, granted(t, g))
	}
	if n := p.CountKind(faultproxy.ToServer, faultproxy.KindConnect); n > 0 {
		t.Errorf("%d connections were lost", n)
	}
}

// TestZooKeeperLogs takes a client through the events that can happen on ZooKeeper, and checks the names, types and levels of
// its log records. memlock tests the records that all engines share.
func TestZooKeeperLogs(t *testing.T) {
	const secret = "SECRET"
	logs := &logtest.Recorder{}
	auth := []zklock.Auth{{Scheme: "digest", Credentials: "worker:" + secret}}
	o := &zklock.Options{SessionTimeout: 6 * time.Second, Logger: logs.Logger(), Auth: auth}
	play(t, o, func(t *testing.T, s *scene) {
		first := take(t, s.other(t), s.key, holdfast.WithOwner("worker"))
		lock := s.take(t, holdfast.WithOwner("worker"), holdfast.WithReclaim(), holdfast.WithData([]byte(secret)))
		receive(t, "the end of the first lock", first.Done())
		events := s.client.Events()
		s.proxy.BlackHole(faultproxy.Both)
		receive(t, "Disconnected", events.Disconnected())
		must(t, s.proxy.Heal())
		receive(t, "Ready", events.Ready())
		_ = lock.Release(limited(t))
		finish(t, s.client)
		logs.Check(
			t, []string{secret},
			logtest.Want{Text: "connected", Level: slog.LevelInfo},
			logtest.Want{Text: "disconnected", Level: slog.LevelWarn},
			logtest.Want{Text: "lock reclaimed", Level: slog.LevelInfo, Attrs: "key path owner token"},
			logtest.Want{Text: "heartbeat failed", Level: slog.LevelDebug, Attrs: "error"},
		)
	})
}

// A lock cannot be below an ephemeral node, and CuratorLatchNames have nothing to share with.
func TestImpossibleLocks(t *testing.T) {
	start(t)
	addr, key := server(t).Addr(), "/"+newKey(t)
	must(t, errOf(plain(t, addr).Create(key, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))))
	client := dial(t, addr, nil)
	for _, k := range []string{key, key + "/deeper"} {
		if _, err := client.Acquire(limited(t), k); !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), key) {
			t.Errorf("Acquire of %q returns %v", k, err)
		}
	}
	var invalid *holdfast.InvalidError
	latch := dial(t, addr, &zklock.Options{Names: zklock.CuratorLatchNames})
	if _, err := latch.Acquire(limited(t), newKey(t), holdfast.WithShared()); !errors.As(err, &invalid) || invalid.Field != "shared" {
		t.Errorf("Acquire of a shared lock with latch names: %v", err)
	}
}

// TestChroot: a client with a chroot shares its locks with all clients that use the same znodes, with or without a chroot.
func TestChroot(t *testing.T) {
	start(t)
	addr := server(t).Addr()
	raw := plain(t, addr)
	chroot := persistent(t, raw)
	whole := dial(t, addr, nil)
	inside := dial(t, addr+","+addr+chroot, nil)
	key := newKey(t)
	for name, path := range map[string]string{key: chroot + zklock.DefaultRoot + "/" + key, "/" + key: chroot + "/" + key} {
		lock := take(t, inside, name)
		if _, err := whole.TryAcquire(limited(t), path); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("%s by its whole path: %v, want ErrHeld", name, err)
		}
		guard, err := inside.Guard(lock)
		if err != nil || !strings.HasPrefix(guard.Path, path+"/") {
			t.Fatalf("%s: the guard is of %v, %v; want a child of %s", name, guard, err, path)
		}
		if _, err := whole.Guard(lock); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%s: Guard of another client's lock: %v", name, err)
		}
		if _, err := inside.Conn().Multi(guard); err != nil {
			t.Errorf("%s: a transaction with the guard: %v", name, err)
		}
		info, err := inside.Inspect(limited(t), name)
		if err != nil || info.Key != name || info.Token != lock.Token() {
			t.Errorf("%s: Inspect returns %+v, %v", name, info, err)
		}
		listed := 0
		for info, err := range inside.List(limited(t), name[:1]) {
			if err != nil || info.Key != name || info.Token != lock.Token() {
				t.Errorf("%s: List yields %+v, %v", name, info, err)
			}
			listed++
		}
		if listed != 1 {
			t.Errorf("%s: List yields %d keys", name, listed)
		}
		if err := inside.Break(limited(t), info); err != nil {
			t.Errorf("%s: Break: %v", name, err)
		}
		if _, err := raw.Multi(guard); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("%s: the guard's transaction after the lock was broken: %v", name, err)
		}
		receive(t, "Done", lock.Done())
		if _, err := inside.Guard(lock); !errors.Is(err, holdfast.ErrBroken) {
			t.Errorf("%s: Guard of a broken lock: %v", name, err)
		}
	}
}

// TestChrootOdd: Dial with a chroot that is missing (which no client creates), unreadable, removable or not answered for.
func TestChrootOdd(t *testing.T) {
	start(t)
	addr := server(t).Addr()
	raw, chroot := plain(t, addr), "/"+newKey(t)
	create := func(path string, flags, perms int32) {
		t.Helper()
		must(t, errOf(raw.Create(path, nil, flags, zk.WorldACL(perms))))
	}
	missing := func(call string, err error) {
		t.Helper()
		var invalid *holdfast.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != "servers" || !strings.Contains(invalid.Reason, chroot) {
			t.Errorf("%s: %v, want ErrInvalid that names the chroot", call, err)
		}
	}
	missing("Dial", errOf(zklock.Dial(limited(t), []string{addr + chroot}, options())))
	create(chroot, zk.FlagPersistent, zk.PermAll)
	client := dial(t, addr+chroot, nil)
	must(t, raw.Delete(chroot, -1))
	for _, key := range []string{"a", "/a"} {
		missing("Acquire "+key, errOf(client.Acquire(limited(t), key)))
	}
	if ok, _, err := raw.Exists(chroot); err != nil || ok {
		t.Errorf("the chroot has been made: %v, %v", ok, err)
	}

	create(chroot+"-unreadable", zk.FlagPersistent, zk.PermCreate)
	release(t, take(t, dial(t, addr+chroot+"-unreadable", nil), "a"))

	create(chroot+"-removable", zk.FlagEphemeral, zk.PermAll)
	var logs logtest.Recorder
	dial(t, addr+chroot+"-removable", &zklock.Options{Logger: logs.Logger()})
	eventually(t, "a warning", func() bool { return logs.Has("the chroot is no persistent znode, and may be removed") })

	create(chroot+"-silent", zk.FlagPersistent, zk.PermAll)
	p := proxy(t, addr)
	_, answer := p.HoldReply(faultproxy.OpSync, chroot)
	defer answer()
	ctx, cancel := context.WithTimeout(limited(t), 2*time.Second)
	defer cancel()
	err := errOf(zklock.Dial(ctx, []string{p.Addr() + chroot + "-silent"}, options()))
	if !errors.Is(err, holdfast.ErrDisconnected) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Dial: %v", err)
	}
}
