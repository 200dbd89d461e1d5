package integration_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// lostTo fails the test unless a lock ends with this cause and an event reports it.
func lostTo(t *testing.T, lock *holdfast.Lock, events *holdfast.Events, cause error) {
	t.Helper()
	receive(t, "Done", lock.Done())
	if err := lock.Err(); !errors.Is(err, holdfast.ErrLost) || !errors.Is(err, cause) {
		t.Errorf("Err = %v, want ErrLost with %v", err, cause)
	}
	event := receive(t, "the event Lost", events.Lost())
	for event.Token > lock.Token() { // of a contender that was reclaimed with it
		event = receive(t, "the event Lost", events.Lost())
	}
	if event.Key != lock.Key() || event.Token != lock.Token() || !errors.Is(event.Err, cause) {
		t.Errorf("event %+v, want key %q, token %d, %v", event, lock.Key(), lock.Token(), cause)
	}
	if err := lock.Release(limited(t)); !errors.Is(err, cause) {
		t.Errorf("Release = %v, want %v", err, cause)
	}
}

// TestBrokenByHand tests the cure of hazard Z12, the watch on the client's own node:
// somebody deletes the node, by whatever means, and that one event tells the holder,
// without a request.
func TestBrokenByHand(t *testing.T) {
	start(t)
	client, p := proxied(t, nil)
	key := newKey(t)
	lock := take(t, client, key)
	events := client.Events()
	conn := plain(t, server(t).Addr())
	path := nodeOf(t, client, lock)
	eventually(t, "the own node is watched", func() bool { return p.Count(faultproxy.ToClient, faultproxy.OpGetData) == 1 })
	p.ResetCounts()
	if err := conn.Delete(path, -1); err != nil {
		t.Fatal(err)
	}
	lostTo(t, lock, events, holdfast.ErrBroken)
	if n := p.CountKind(faultproxy.ToClient, faultproxy.KindWatchEvent); n != 1 {
		t.Errorf("%d watch events, want 1", n)
	}
	noResidue(t, conn, under(key))
}

// TestBreak: by the API, while somebody waits.
func TestBreak(t *testing.T) {
	start(t)
	holder, operator := dial(t, server(t).Addr(), nil), dial(t, server(t).Addr(), nil)
	key := newKey(t)
	lock := take(t, holder, key)
	events := holder.Events()
	a := &audit{}
	waiter := a.inLine(t, operator, key)
	info, err := operator.Inspect(limited(t), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := operator.Break(limited(t), info); err != nil {
		t.Fatal(err)
	}
	lostTo(t, lock, events, holdfast.ErrBroken)
	next := receive(t, "the grant after the break", waiter)
	if err := operator.Break(limited(t), info); !errors.Is(err, holdfast.ErrChanged) {
		t.Errorf("a second Break = %v, want ErrChanged", err)
	}
	if err := next.Verify(limited(t)); err != nil {
		t.Errorf("the next holder's Verify = %v", err)
	}
	if err := next.Release(limited(t)); err != nil {
		t.Error(err)
	}
}

// TestBreakUnanswered: the reply to a delete is lost, and a lagging server still shows
// the node, so the client deletes it again. "No node" then means success. Here the first
// request is lost instead and somebody else deletes the node, which looks the same.
func TestBreakUnanswered(t *testing.T) {
	start(t)
	holder := dial(t, server(t).Addr(), nil)
	operator, p := proxied(t, nil)
	key := newKey(t)
	lock := take(t, holder, key)
	info, err := operator.Inspect(limited(t), key)
	if err != nil {
		t.Fatal(err)
	}
	lost := p.LoseRequest(faultproxy.OpDelete, under(key))
	again, pass := p.HoldRequest(faultproxy.OpDelete, under(key))
	broken := make(chan error, 1)
	go func() { broken <- operator.Break(limited(t), info) }()
	receive(t, "the first deletion", lost)
	receive(t, "the second deletion", again)
	conn := plain(t, server(t).Addr())
	if err := conn.Delete(nodeOf(t, holder, lock), -1); err != nil {
		t.Fatal(err)
	}
	pass()
	if err := receive(t, "Break returns", broken); err != nil {
		t.Errorf("Break = %v, want nil: the grant has ended, and by this call as far as it can tell", err)
	}
	receive(t, "Done", lock.Done())
	noResidue(t, conn, under(key))
}

// TestBrokenWhileCutOff: the holder learns of it when it reconnects, at the latest.
func TestBrokenWhileCutOff(t *testing.T) {
	start(t)
	client, p := proxied(t, nil)
	key := newKey(t)
	lock := take(t, client, key)
	events := client.Events()
	eventually(t, "the own node is watched", func() bool { return p.Count(faultproxy.ToClient, faultproxy.OpGetData) == 1 })
	conn, path := plain(t, server(t).Addr()), nodeOf(t, client, lock)
	p.Cut()
	receive(t, "Disconnected", events.Disconnected())
	if err := conn.Delete(path, -1); err != nil {
		t.Fatal(err)
	}
	if err := p.Heal(); err != nil {
		t.Fatal(err)
	}
	lostTo(t, lock, events, holdfast.ErrBroken)
}

// TestReclaim: a process ends the hold and the contenders of an earlier process with the
// same owner name.
func TestReclaim(t *testing.T) {
	start(t)
	first, second, other := dial(t, server(t).Addr(), nil), dial(t, server(t).Addr(), nil), dial(t, server(t).Addr(), nil)
	key, owner := newKey(t), holdfast.WithOwner("worker-7")
	lock := take(t, first, key, owner)
	events := first.Events()
	conn := plain(t, server(t).Addr())
	waiting := make(chan error, 1)
	go func() {
		place, err := first.Acquire(limited(t), key, owner)
		if err == nil { // it was granted the lock while it was being reclaimed
			<-place.Done()
			err = place.Err()
		}
		waiting <- err
	}()
	holds(t, conn, under(key), 2)
	a := &audit{}
	a.granted(t, lock)
	stranger := make(chan *holdfast.Lock, 1)
	go func() {
		lock, err := other.Acquire(limited(t), key)
		if err != nil {
			t.Error(err)
		}
		stranger <- lock
	}()
	holds(t, conn, under(key), 3)
	time.Sleep(50 * time.Millisecond) // reads of its own nodes may be delayed
	mine := make(chan *holdfast.Lock, 1)
	go func() {
		lock, err := second.Acquire(limited(t), key, owner, holdfast.WithReclaim())
		if err != nil {
			t.Error(err)
		}
		mine <- lock
	}()
	lostTo(t, lock, events, holdfast.ErrReclaimed)
	if err := receive(t, "the end of the waiter", waiting); !errors.Is(err, holdfast.ErrReclaimed) {
		t.Errorf("the waiter's Acquire = %v, want ErrReclaimed", err)
	}
	if err := lock.Err(); !errors.Is(err, holdfast.ErrReclaimed) {
		t.Errorf("Err = %v", err)
	}
	// Its turn comes after the stranger's.
	next := receive(t, "the stranger's grant", stranger)
	silent(t, "a grant out of turn", mine)
	a.granted(t, next)
	if err := next.Release(limited(t)); err != nil {
		t.Error(err)
	}
	last := receive(t, "the grant of who reclaimed", mine)
	a.granted(t, last)
	if _, err := second.Acquire(limited(t), key, owner, holdfast.WithReclaim()); !errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("reclaiming from oneself = %v, want ErrHeld", err)
	}
	if err := last.Release(limited(t)); err != nil {
		t.Error(err)
	}
	noResidue(t, conn, under(key))
}

// TestCutOffForLong: a client that is cut off for longer than its session loses its lock
// before another client gets it, reports the events in order, and goes on in a new
// session.
func TestCutOffForLong(t *testing.T) {
	start(t)
	opts := options()
	opts.SessionTimeout = 2 * time.Second
	client, p := proxied(t, opts)
	key, a := newKey(t), &audit{}
	lock := take(t, client, key)
	a.granted(t, lock)
	events := client.Events()
	receive(t, "Ready", events.Ready())
	session := client.Conn().SessionID()
	waiter := a.inLine(t, dial(t, server(t).Addr(), nil), key)
	p.Cut()
	down := receive(t, "Disconnected", events.Disconnected())
	lost := receive(t, "Lost", events.Lost())
	if !errors.Is(lost.Err, holdfast.ErrSessionExpired) || lost.Token != lock.Token() {
		t.Errorf("event %+v, want ErrSessionExpired of token %d", lost, lock.Token())
	}
	next := receive(t, "the next grant", waiter) // audit has read the lock by now
	if err := p.Heal(); err != nil {
		t.Fatal(err)
	}
	up := receive(t, "Ready", events.Ready())
	if down.Seq >= lost.Seq || lost.Seq >= up.Seq {
		t.Errorf("order of Disconnected, Lost, Ready: %d, %d, %d", down.Seq, lost.Seq, up.Seq)
	}
	if now := client.Conn().SessionID(); now == session || now == 0 {
		t.Errorf("session %#x after %#x", now, session)
	}
	if err := lock.Err(); !errors.Is(err, holdfast.ErrSessionExpired) {
		t.Errorf("the old lock's Err = %v in the new session", err)
	}
	if _, err := client.Guard(lock); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("Guard of the old lock: %v, want ErrLost", err)
	}
	if err := next.Release(limited(t)); err != nil {
		t.Error(err)
	}
	again := take(t, client, key)
	a.granted(t, again)
	if err := lock.Release(limited(t)); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("release of the old lock = %v, want ErrLost", err)
	}
	if err := again.Verify(limited(t)); err != nil {
		t.Errorf("the release of the old lock has harmed the new one: %v", err)
	}
	if err := again.Release(limited(t)); err != nil {
		t.Error(err)
	}
}

// TestGuardOfALostLock: a transaction with the guard of a broken lock changes nothing.
func TestGuardOfALostLock(t *testing.T) {
	start(t)
	client := dial(t, server(t).Addr(), nil)
	lock := take(t, client, newKey(t))
	guard, err := client.Guard(lock)
	if err != nil {
		t.Fatal(err)
	}
	conn, path := plain(t, server(t).Addr()), "/"+newKey(t)
	if _, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Conn().Multi(guard, &zk.SetDataRequest{Path: path, Data: []byte("1"), Version: -1}); err != nil {
		t.Fatalf("while it is held: %v", err)
	}
	if err := conn.Delete(guard.Path, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Conn().Multi(guard, &zk.SetDataRequest{Path: path, Data: []byte("2"), Version: -1}); err == nil {
		t.Error("a transaction under a lock that is gone succeeded")
	}
	if data, _, err := conn.Get(path); err != nil || string(data) != "1" {
		t.Errorf("data %q, %v; want 1", data, err)
	}
	if err := conn.Delete(path, -1); err != nil {
		t.Error(err)
	}
}

// TestServerRestarted: a restart of the server with its data does not end a session that
// outlives the gap.
func TestServerRestarted(t *testing.T) {
	start(t)
	s := zkserver.New(t, zkserver.Config{MaxSessionTimeout: longest})
	client := dialServers(t, zklock.Options{SessionTimeout: longest}, s.Addr())
	lock := take(t, client, newKey(t))
	events := client.Events()
	receive(t, "Ready", events.Ready())
	s.Stop(limited(t))
	down := receive(t, "Disconnected", events.Disconnected())
	if err := lock.Err(); err != nil {
		t.Errorf("while the server is down: %v", err)
	}
	if err := s.Start(limited(t)); err != nil {
		t.Fatal(err)
	}
	if up := receive(t, "Ready", events.Ready()); up.Seq <= down.Seq {
		t.Errorf("Ready has number %d, Disconnected %d", up.Seq, down.Seq)
	}
	if err := lock.Verify(limited(t)); err != nil {
		t.Errorf("after the restart: %v", err)
	}
	if err := lock.Release(limited(t)); err != nil {
		t.Error(err)
	}
	silent(t, "an event Lost", events.Lost())
}
