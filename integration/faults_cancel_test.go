package integration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/zklock"
)

// promptly is how soon a call must return after its ctx has ended: long before the client
// gives up a silent connection, with a session timeout of longest.
const promptly = 10 * time.Second

// checkGivenUp fails the test unless an Acquire whose ctx was cancelled returns at once
// with the errors that G5 demands.
func checkGivenUp(t *testing.T, got <-chan outcome, want error) {
	t.Helper()
	select {
	case o := <-got:
		if !errors.Is(o.err, context.Canceled) || !errors.Is(o.err, want) {
			t.Errorf("error is %v, want it to match %v and %v", o.err, context.Canceled, want)
		}
	case <-time.After(promptly):
		t.Fatal("Acquire does not return when its ctx ends")
	}
}

// checkClean fails the test if a lock's queue does not become empty or keeps a watch.
func checkClean(t *testing.T, conn *zk.Conn, key string) {
	t.Helper()
	noResidue(t, conn, under(key))
	noWatches(t, server(t).Addr(), under(key))
}

// G5, at every step of Acquire: the request or the reply is delayed, ctx ends, and
// Acquire returns at once. Once the step completes, nothing stays behind. Tests that
// calls do not wait for go-zookeeper, and that pending steps are adopted and undone.
func TestCancelAtEveryStep(t *testing.T) {
	t.Parallel()
	type step struct {
		name  string
		op    faultproxy.Op
		fresh bool // without a znode for the lock
		other bool // somebody else holds the lock
		try   bool
		want  error
	}
	steps := []step{
		{name: "create", op: faultproxy.OpCreate, want: holdfast.ErrDisconnected},
		{name: "create without parent", op: faultproxy.OpCreate, fresh: true, want: holdfast.ErrDisconnected},
		{name: "create container", op: faultproxy.OpCreateContainer, fresh: true, want: holdfast.ErrDisconnected},
		{name: "list", op: faultproxy.OpGetChildren2, want: holdfast.ErrDisconnected},
		{name: "create behind another", op: faultproxy.OpCreate, other: true, want: holdfast.ErrDisconnected},
		{name: "list behind another", op: faultproxy.OpGetChildren2, other: true, want: holdfast.ErrDisconnected},
		{name: "first read behind another", op: faultproxy.OpGetData, other: true, want: holdfast.ErrHeld},
		{name: "probe of a try", op: faultproxy.OpGetChildren2, try: true, want: holdfast.ErrDisconnected},
		{name: "create of a try", op: faultproxy.OpCreate, try: true, want: holdfast.ErrDisconnected},
		{name: "holder of a try", op: faultproxy.OpGetData, try: true, other: true, want: holdfast.ErrDisconnected},
	}
	for _, s := range steps {
		for _, direction := range []string{"request", "reply"} {
			t.Run(s.name+"/"+direction, func(t *testing.T) {
				start(t)
				conn := plain(t, server(t).Addr())
				opts := options()
				opts.SessionTimeout = longest
				client, p := proxied(t, opts)
				key := newKey(t)
				if !s.fresh {
					prepare(t, conn, key)
				}
				var holder *holdfast.Lock
				if s.other {
					var err error
					if holder, err = dial(t, server(t).Addr(), nil).Acquire(limited(t), key); err != nil {
						t.Fatal(err)
					}
				}
				hold := p.HoldRequest
				if direction == "reply" {
					hold = p.HoldReply
				}
				held, pass := hold(s.op, under(key))
				defer pass()
				ctx, cancel := context.WithCancel(limited(t))
				defer cancel()
				got := acquiringOrTrying(ctx, client, key, s.try)
				receive(t, "the step", held)
				cancel()
				checkGivenUp(t, got, s.want)
				pass()
				if holder != nil {
					holds(t, conn, under(key), 1)
					release(t, holder)
				}
				// The client works, and the lock is free.
				again, err := client.Acquire(limited(t), key)
				if err != nil {
					t.Fatal(err)
				}
				holds(t, conn, under(key), 1)
				release(t, again)
				checkClean(t, conn, key)
			})
		}
	}
}

func acquiringOrTrying(ctx context.Context, client *zklock.Client, key string, try bool) <-chan outcome {
	if !try {
		return acquiring(ctx, client, key)
	}
	got := make(chan outcome, 1)
	go func() {
		lock, err := client.TryAcquire(ctx, key)
		got <- outcome{lock, err}
	}()
	return got
}

// G5, Z1. ctx ends while the outcome of a create is unknown. Tests the cleaner that
// syncs, lists and deletes by guid.
func TestCancelWithCreationLost(t *testing.T) {
	t.Parallel()
	for name, form := range forms {
		for _, direction := range []string{"request", "reply"} {
			t.Run(name+"/"+direction, func(t *testing.T) {
				start(t)
				conn := plain(t, server(t).Addr())
				opts := options()
				opts.Names = form
				client, p := proxied(t, opts)
				key := newKey(t)
				parent := prepare(t, conn, key)
				lose := p.LoseRequest
				if direction == "reply" {
					lose = p.LoseReply
				}
				lost := lose(faultproxy.OpCreate, parent)
				reconnecting, reconnect := p.HoldRequest(faultproxy.OpConnect, "")
				defer reconnect()
				ctx, cancel := context.WithCancel(limited(t))
				defer cancel()
				got := acquiring(ctx, client, key)
				receive(t, "loss", lost)
				receive(t, "reconnection", reconnecting)
				if direction == "reply" {
					holds(t, conn, parent, 1)
				}
				cancel()
				checkGivenUp(t, got, holdfast.ErrDisconnected)
				reconnect()
				checkClean(t, conn, key)
			})
		}
	}
}

// G5, Z1. As above, but the connection breaks after ctx has ended, while the background
// waits for the create.
func TestCancelThenCreationLost(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	opts := options()
	opts.SessionTimeout = longest
	client, p := proxied(t, opts)
	key := newKey(t)
	parent := prepare(t, conn, key)
	held, pass := p.HoldReply(faultproxy.OpCreate, parent)
	defer pass()
	ctx, cancel := context.WithCancel(limited(t))
	defer cancel()
	got := acquiring(ctx, client, key)
	receive(t, "reply", held)
	holds(t, conn, parent, 1)
	cancel()
	checkGivenUp(t, got, holdfast.ErrDisconnected)
	p.Drop()
	checkClean(t, conn, key)
}

// G5. After a repeated create, the contender reads its own node before the grant; ctx
// ends meanwhile.
func TestCancelAtOwnRead(t *testing.T) {
	t.Parallel()
	for _, direction := range []string{"request", "reply"} {
		t.Run(direction, func(t *testing.T) {
			start(t)
			conn := plain(t, server(t).Addr())
			opts := options()
			opts.SessionTimeout = longest
			client, p := proxied(t, opts)
			key := newKey(t)
			parent := prepare(t, conn, key)
			lost := p.LoseReply(faultproxy.OpCreate, parent)
			hold := p.HoldRequest
			if direction == "reply" {
				hold = p.HoldReply
			}
			held, pass := hold(faultproxy.OpGetData, parent)
			defer pass()
			ctx, cancel := context.WithCancel(limited(t))
			defer cancel()
			got := acquiring(ctx, client, key)
			receive(t, "loss", lost)
			receive(t, "own read", held)
			cancel()
			checkGivenUp(t, got, holdfast.ErrDisconnected)
			pass()
			checkClean(t, conn, key)
		})
	}
}

// G5. A waiter that has not written for long proves its session before the grant; ctx
// ends meanwhile.
func TestCancelAtProof(t *testing.T) {
	t.Parallel()
	for _, direction := range []string{"request", "reply"} {
		t.Run(direction, func(t *testing.T) {
			start(t)
			conn := plain(t, server(t).Addr())
			opts := options()
			opts.SessionTimeout = 3 * time.Second
			client, p := proxied(t, opts)
			key := newKey(t)
			holder, err := dial(t, server(t).Addr(), nil).Acquire(limited(t), key)
			if err != nil {
				t.Fatal(err)
			}
			hold := p.HoldRequest
			if direction == "reply" {
				hold = p.HoldReply
			}
			held, pass := hold(faultproxy.OpMulti, under(key))
			defer pass()
			ctx, cancel := context.WithCancel(limited(t))
			defer cancel()
			got := acquiring(ctx, client, key)
			holds(t, conn, under(key), 2)
			time.Sleep(client.SessionTimeout()) // its last write proves nothing any more
			release(t, holder)
			receive(t, "proof", held)
			cancel()
			checkGivenUp(t, got, holdfast.ErrDisconnected)
			pass()
			checkClean(t, conn, key)
		})
	}
}

// G5. A waiter that gives up deletes its node, on its own context.
func TestCancelInQueue(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, p := proxied(t, nil)
	key := newKey(t)
	holder, err := dial(t, server(t).Addr(), nil).Acquire(limited(t), key)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(limited(t))
	defer cancel()
	got := acquiring(ctx, client, key)
	holds(t, conn, under(key), 2)
	eventually(t, "the waiter has read its own node and its predecessor", func() bool {
		return p.Count(faultproxy.ToClient, faultproxy.OpGetData) >= 2
	})
	cancel()
	checkGivenUp(t, got, holdfast.ErrHeld)
	holds(t, conn, under(key), 1)
	if _, err := client.Acquire(limited(t), key, holdfast.WithWait(50*time.Millisecond)); !errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("error after WithWait elapsed is %v", err)
	}
	holds(t, conn, under(key), 1)
	release(t, holder)
	checkClean(t, conn, key)
}

// G5. During an outage the client hands nothing to go-zookeeper; when ctx ends, the wait
// ends at once.
func TestCancelInOutage(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, p := proxied(t, nil)
	events := client.Events()
	defer events.Close()
	receive(t, "Ready", events.Ready())
	key := newKey(t)
	p.Cut()
	receive(t, "Disconnected", events.Disconnected())
	ctx, cancel := context.WithCancel(limited(t))
	defer cancel()
	got := acquiring(ctx, client, key)
	silent(t, "Acquire returns during an outage", got)
	cancel()
	checkGivenUp(t, got, holdfast.ErrDisconnected)
	if err := p.Heal(); err != nil {
		t.Fatal(err)
	}
	receive(t, "Ready", events.Ready())
	checkClean(t, conn, key)
}

// G5. While the server does not answer, Close does not wait for it, and waiting calls end
// at once.
func TestCloseWhileServerIsSilent(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	opts := options()
	opts.SessionTimeout = 2 * time.Second
	client, p := proxied(t, opts)
	key := newKey(t)
	held, err := client.Acquire(limited(t), key+".held")
	if err != nil {
		t.Fatal(err)
	}
	p.BlackHole(faultproxy.Both)
	got := acquiring(limited(t), client, key)
	silent(t, "Acquire returns", got)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- client.Close(ctx) }()
	if o := receive(t, "Acquire returns", got); !errors.Is(o.err, holdfast.ErrClosed) {
		t.Errorf("error is %v, want %v", o.err, holdfast.ErrClosed)
	}
	if err := receive(t, "Close returns", closed); err == nil {
		t.Error("Close reports success")
	}
	receive(t, "Done", held.Done())
	checkClean(t, conn, key)
	checkClean(t, conn, key+".held")
}
