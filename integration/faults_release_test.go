package integration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
)

// Z3, G10. The client repeats a delete without a reply until it knows the outcome; "no
// node" then means success.
func TestReleaseLost(t *testing.T) {
	t.Parallel()
	for _, direction := range []string{"request", "reply"} {
		t.Run(direction, func(t *testing.T) {
			start(t)
			conn := plain(t, server(t).Addr())
			client, p := proxied(t, nil)
			key := newKey(t)
			lose := p.LoseRequest
			if direction == "reply" {
				lose = p.LoseReply
			}
			lost := lose(faultproxy.OpDelete, under(key))
			lock := granted(t, acquiring(limited(t), client, key))
			release(t, lock)
			receive(t, "loss", lost)
			if err := lock.Err(); !errors.Is(err, holdfast.ErrReleased) {
				t.Errorf("Err is %v", err)
			}
			checkClean(t, conn, key)
		})
	}
}

// Z3, G10. "No node" at the first delete means that the lock had been lost, although no
// watch has reported it.
func TestReleaseOfNodeThatIsGone(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	p := proxy(t, server(t).Addr())
	p.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
		if f.Kind == faultproxy.KindWatchEvent {
			return faultproxy.DropFrame
		}
		return faultproxy.Pass
	})
	client := dial(t, p.Addr(), nil)
	key := newKey(t)
	lock := granted(t, acquiring(limited(t), client, key))
	eventually(t, "own node is watched", func() bool { return p.Count(faultproxy.ToClient, faultproxy.OpGetData) > 0 })
	node := under(key) + "/" + holds(t, conn, under(key), 1)[0]
	if err := conn.Delete(node, -1); err != nil {
		t.Fatal(err)
	}
	first := lock.Release(limited(t))
	if !errors.Is(first, holdfast.ErrLost) {
		t.Errorf("Release returns %v, want %v", first, holdfast.ErrLost)
	}
	if again := lock.Release(limited(t)); !errors.Is(again, holdfast.ErrLost) {
		t.Errorf("the second Release returns %v, the first %v", again, first)
	}
	checkClean(t, conn, key)
}

// Z3, G10. A release during an outage is delivered after it.
func TestReleaseInOutage(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	opts := options()
	opts.SessionTimeout = longest // too long for an expiry to help
	client, p := proxied(t, opts)
	key := newKey(t)
	lock := granted(t, acquiring(limited(t), client, key))
	p.Cut()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := lock.Release(ctx); !errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Release returns %v, want %v and %v", err, holdfast.ErrReleasePending, context.DeadlineExceeded)
	}
	receive(t, "Done", lock.Done())
	holds(t, conn, under(key), 1)
	if err := p.Heal(); err != nil {
		t.Fatal(err)
	}
	release(t, lock)
	checkClean(t, conn, key)
}

// G10. The release is sent on its own context.
func TestReleaseWithDoneContext(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	opts := options()
	opts.SessionTimeout = longest
	client, _ := proxied(t, opts)
	key := newKey(t)
	lock := granted(t, acquiring(limited(t), client, key))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := lock.Release(ctx); err != nil && (!errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, context.Canceled)) {
		t.Errorf("Release returns %v", err)
	}
	checkClean(t, conn, key)
	release(t, lock)
}

// Z3. The session ends while a release waits to be delivered: that completes the release.
func TestReleaseAsSessionExpires(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, p, expire := expirable(t, nil)
	key := newKey(t)
	lock := granted(t, acquiring(limited(t), client, key))
	held, pass := p.HoldRequest(faultproxy.OpDelete, under(key))
	defer pass()
	released := make(chan error, 1)
	go func() { released <- lock.Release(limited(t)) }()
	receive(t, "delete", held)
	expire()
	pass()
	if err := receive(t, "Release returns", released); err != nil {
		t.Error(err)
	}
	next := granted(t, acquiring(limited(t), client, key))
	if next.Token() <= lock.Token() {
		t.Errorf("tokens fall from %v to %v", lock.Token(), next.Token())
	}
	release(t, next)
	checkClean(t, conn, key)
}

// Z3, G6. A reconnect does not end locks that are held, and a repeated release does not
// touch the next holder's lock.
func TestReleaseLeavesNextHolderAlone(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, p := proxied(t, nil)
	key := newKey(t)
	lock := granted(t, acquiring(limited(t), client, key))
	next := acquiring(limited(t), dial(t, server(t).Addr(), nil), key)
	holds(t, conn, under(key), 2)
	lost := p.LoseReply(faultproxy.OpDelete, under(key))
	reconnecting, reconnect := p.HoldRequest(faultproxy.OpConnect, "")
	defer reconnect()
	released := make(chan error, 1)
	go func() { released <- lock.Release(limited(t)) }()
	receive(t, "loss", lost)
	receive(t, "reconnection", reconnecting)
	theirs := granted(t, next)
	reconnect()
	if err := receive(t, "Release returns", released); err != nil {
		t.Error(err)
	}
	if err := theirs.Verify(limited(t)); err != nil {
		t.Error(err)
	}
	release(t, theirs)
	checkClean(t, conn, key)
}
