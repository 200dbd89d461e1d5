package integration_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/logtest"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestChroot: a client with a chroot shares its locks with all clients that use the same
// znodes, with or without a chroot.
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
	if _, err := zklock.Dial(ctx, []string{p.Addr() + chroot + "-silent"}, options()); !errors.Is(err, holdfast.ErrDisconnected) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Dial: %v", err)
	}
}
