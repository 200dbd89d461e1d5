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

// The client does not create a chroot: if it is missing, Dial reports that, and so does
// Acquire if somebody removes it later.
func TestChrootMissing(t *testing.T) {
	start(t)
	addr := server(t).Addr()
	chroot := "/" + newKey(t)
	missing := func(call string, err error) {
		t.Helper()
		var invalid *holdfast.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != "servers" || !strings.Contains(invalid.Reason, chroot) {
			t.Errorf("%s: %v, want ErrInvalid that names the chroot", call, err)
		}
	}
	_, err := zklock.Dial(limited(t), []string{addr + chroot}, options())
	missing("Dial", err)
	raw := plain(t, addr)
	must(t, errOf(raw.Create(chroot, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))))
	client := dial(t, addr+chroot, nil)
	must(t, raw.Delete(chroot, -1))
	for _, key := range []string{"a", "/a"} {
		_, err = client.Acquire(limited(t), key)
		missing("Acquire "+key, err)
	}
	if ok, _, err := raw.Exists(chroot); err != nil || ok {
		t.Errorf("the chroot has been made: %v, %v", ok, err)
	}
}

// A chroot works even if the client may not read it.
func TestChrootUnreadable(t *testing.T) {
	start(t)
	addr := server(t).Addr()
	raw := plain(t, addr)
	chroot := "/" + newKey(t)
	must(t, errOf(raw.Create(chroot, nil, zk.FlagPersistent, zk.WorldACL(zk.PermCreate))))
	client := dial(t, addr+chroot, nil)
	release(t, take(t, client, "a"))
}

// A chroot that cannot be checked is an outage: the program dials again.
func TestChrootUnanswered(t *testing.T) {
	start(t)
	addr := server(t).Addr()
	chroot := persistent(t, plain(t, addr))
	p := proxy(t, addr)
	_, answer := p.HoldReply(faultproxy.OpSync, chroot)
	defer answer()
	ctx, cancel := context.WithTimeout(limited(t), 2*time.Second)
	defer cancel()
	_, err := zklock.Dial(ctx, []string{p.Addr() + chroot}, options())
	if !errors.Is(err, holdfast.ErrDisconnected) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Dial: %v", err)
	}
}

// A chroot that the server may remove causes a warning.
func TestChrootNotPersistent(t *testing.T) {
	start(t)
	addr := server(t).Addr()
	chroot := "/" + newKey(t)
	must(t, errOf(plain(t, addr).Create(chroot, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))))
	var logs logtest.Recorder
	dial(t, addr+chroot, &zklock.Options{Logger: logs.Logger()})
	eventually(t, "a warning", func() bool { return logs.Has("the chroot is no persistent znode, and may be removed") })
}
