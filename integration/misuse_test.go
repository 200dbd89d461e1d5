package integration_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
)

// G5, G12. A call whose ctx is already done sends nothing.
func TestDoneContext(t *testing.T) {
	start(t)
	client, p := proxied(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	before := requests(p)
	key := newKey(t)
	_, acquireErr := client.Acquire(ctx, key)
	_, tryErr := client.TryAcquire(ctx, key)
	_, inspectErr := client.Inspect(ctx, key)
	for call, err := range map[string]error{"Acquire": acquireErr, "TryAcquire": tryErr, "Inspect": inspectErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s returns %v", call, err)
		}
	}
	if n := requests(p) - before; n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// G4, G10. Releasing again, and releasing a lost lock.
func TestDoubleRelease(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, p := proxied(t, nil)
	key := newKey(t)
	lock := granted(t, acquiring(limited(t), client, key))
	results := make(chan error)
	for range 10 {
		go func() { results <- lock.Release(limited(t)) }()
	}
	for range 10 {
		if err := receive(t, "Release returns", results); err != nil {
			t.Error(err)
		}
	}
	if n := p.Count(faultproxy.ToServer, faultproxy.OpDelete); n != 1 {
		t.Errorf("%d deletes were sent", n)
	}

	broken := granted(t, acquiring(limited(t), client, key))
	info, err := client.Inspect(limited(t), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Break(limited(t), info); err != nil {
		t.Fatal(err)
	}
	receive(t, "Done", broken.Done())
	next := granted(t, acquiring(limited(t), client, key))
	for range 2 {
		if err := broken.Release(limited(t)); !errors.Is(err, holdfast.ErrLost) || !errors.Is(err, holdfast.ErrBroken) {
			t.Errorf("Release of a broken lock returns %v", err)
		}
	}
	if err := client.Break(limited(t), info); !errors.Is(err, holdfast.ErrChanged) {
		t.Errorf("the second Break returns %v", err)
	}
	if err := next.Verify(limited(t)); err != nil {
		t.Error(err)
	}
	release(t, next)
	checkClean(t, conn, key)
}

// G11. Every call after Close reports it.
func TestUseAfterClose(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, _ := proxied(t, nil)
	key := newKey(t)
	lock := granted(t, acquiring(limited(t), client, key))
	for range 2 {
		if err := client.Close(limited(t)); err != nil {
			t.Fatal(err)
		}
	}
	if err := lock.Err(); !errors.Is(err, holdfast.ErrReleased) {
		t.Errorf("Err is %v", err)
	}
	if err := lock.Release(limited(t)); err != nil {
		t.Errorf("Release returns %v", err)
	}
	_, acquireErr := client.Acquire(limited(t), key)
	_, tryErr := client.TryAcquire(limited(t), key)
	_, inspectErr := client.Inspect(limited(t), key)
	breakErr := client.Break(limited(t), holdfast.Info{Key: key, Held: true, Grant: "lock-0000000000"})
	for call, err := range map[string]error{"Acquire": acquireErr, "TryAcquire": tryErr, "Inspect": inspectErr, "Break": breakErr} {
		if !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("%s returns %v", call, err)
		}
	}
	for _, err := range client.List(limited(t), "") {
		if !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("List yields %v", err)
		}
	}
	if _, err := client.Guard(lock); err == nil {
		t.Error("Guard returns no error")
	}
	if err := lock.Verify(limited(t)); err == nil {
		t.Error("Verify returns no error")
	}
	if client.SessionTimeout() <= 0 {
		t.Error("no session timeout")
	}
	checkClean(t, conn, key)
}

// G11. Close with many locks held and many waiters.
func TestCloseWithManyLocks(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	opts := options()
	opts.Root = "/" + newKey(t)
	client, _ := proxied(t, opts)
	const many = 100
	var locks []*holdfast.Lock
	var waiting []<-chan outcome
	for range many {
		key := newKey(t)
		lock := granted(t, acquiring(limited(t), client, key))
		locks = append(locks, lock)
		waiting = append(waiting, acquiring(limited(t), client, key))
	}
	for _, lock := range locks {
		holds(t, conn, opts.Root+"/"+lock.Key(), 2)
	}
	if err := client.Close(limited(t)); err != nil {
		t.Error(err)
	}
	for _, got := range waiting {
		if o := receive(t, "Acquire returns", got); !errors.Is(o.err, holdfast.ErrClosed) {
			t.Errorf("a waiter gets %v", o.err)
		}
	}
	for _, lock := range locks {
		receive(t, "Done", lock.Done())
		if err := lock.Err(); !errors.Is(err, holdfast.ErrReleased) {
			t.Errorf("Err is %v", err)
		}
		noResidue(t, conn, opts.Root+"/"+lock.Key())
	}
	noWatches(t, server(t).Addr(), opts.Root)
	if left := goroutines(t.Name()); strings.Contains(left, "holdfast/zklock.") || strings.Contains(left, "holdfast-go/holdfast.") {
		t.Errorf("goroutines that Close has left:\n%s", left)
	}
}

// Parents are of the type that Options set.
func TestParents(t *testing.T) {
	t.Parallel()
	for name, persistent := range map[string]bool{"containers": false, "persistent": true} {
		t.Run(name, func(t *testing.T) {
			start(t)
			opts := options()
			opts.PersistentParents = persistent
			client, p := proxied(t, opts)
			release(t, granted(t, acquiring(limited(t), client, "/"+newKey(t)+"/deep/er")))
			// A stat does not identify containers; the requests do. The client tries the
			// lowest parent first, and again on its way up and down.
			containers, others := p.Count(faultproxy.ToServer, faultproxy.OpCreateContainer), p.Count(faultproxy.ToServer, faultproxy.OpCreate)
			if (containers > 0) == persistent || (others > 2) != persistent {
				t.Errorf("%d container nodes and %d others were created", containers, others)
			}
		})
	}
}

// A transaction with a Guard succeeds while the lock is held, and not after.
func TestGuard(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, _ := proxied(t, nil)
	key := newKey(t)
	resource := "/" + newKey(t)
	if _, err := conn.Create(resource, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	write := func(guard *zk.CheckVersionRequest, text string) error {
		_, err := client.Conn().Multi(guard, &zk.SetDataRequest{Path: resource, Data: []byte(text), Version: -1})
		return err
	}
	for _, end := range []string{"release", "break"} {
		lock := granted(t, acquiring(limited(t), client, key))
		guard, err := client.Guard(lock)
		if err != nil {
			t.Fatal(err)
		}
		if err := write(guard, "held"); err != nil {
			t.Errorf("while held: %v", err)
		}
		want := holdfast.ErrReleased
		if end == "release" {
			release(t, lock)
		} else {
			want = holdfast.ErrBroken
			info, err := client.Inspect(limited(t), key)
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Break(limited(t), info); err != nil {
				t.Fatal(err)
			}
			receive(t, "Done", lock.Done())
		}
		next := granted(t, acquiring(limited(t), client, key)) // the key is held again, by another grant
		if err := write(guard, "not held"); err == nil {
			t.Errorf("after %s: the write succeeds", end)
		}
		if _, err := client.Guard(lock); !errors.Is(err, want) {
			t.Errorf("after %s: Guard returns %v, want %v", end, err, want)
		}
		release(t, next)
		if data, _, err := conn.Get(resource); err != nil || string(data) != "held" {
			t.Errorf("after %s: resource has %q, %v", end, data, err)
		}
	}
	foreign := granted(t, acquiring(limited(t), dial(t, server(t).Addr(), nil), key))
	if _, err := client.Guard(foreign); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("Guard of another client's lock returns %v", err)
	}
	if _, err := client.Guard(nil); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("Guard of nil returns %v", err)
	}
	release(t, foreign)
	checkClean(t, conn, key)
	if _, err := client.Guard(&holdfast.Lock{}); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("Guard of a lock that nobody granted: %v", err)
	}
}
