package integration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// unanswered is a client with a create that never arrived, and the create itself.
type unanswered struct {
	client *zklock.Client
	proxy  *faultproxy.Proxy
	conn   *zk.Conn // another client's
	key    string
	parent string
	name   string // the path that was sent
}

// loseCreation has a client acquire a lock, loses the first create of its node, and then
// returns.
func loseCreation(ctx context.Context, t *testing.T, opts *zklock.Options) (*unanswered, <-chan outcome) {
	t.Helper()
	u, got, reconnect := loseCreationAndWait(ctx, t, opts)
	reconnect()
	return u, got
}

// loseCreationAndWait is loseCreation, but the client cannot reconnect before reconnect
// is called: by then, all that it sent on the lost connection is over.
func loseCreationAndWait(ctx context.Context, t *testing.T, opts *zklock.Options) (_ *unanswered, _ <-chan outcome, reconnect func()) {
	t.Helper()
	u := &unanswered{conn: plain(t, server(t).Addr()), key: newKey(t)}
	u.client, u.proxy = proxied(t, opts)
	u.parent = prepare(t, u.conn, u.key)
	lost := u.proxy.LoseRequest(faultproxy.OpCreate, u.parent)
	reconnecting, reconnect := u.proxy.HoldRequest(faultproxy.OpConnect, "")
	t.Cleanup(reconnect)
	got := acquiring(ctx, u.client, u.key)
	u.name = receive(t, "loss", lost).Path
	receive(t, "reconnection", reconnecting)
	return u, got, reconnect
}

// arrives carries out the lost create now, in the client's session, as a server would
// that was stopped when the create came.
func (u *unanswered) arrives(t *testing.T) {
	t.Helper()
	if _, err := u.client.Conn().Create(u.name, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
}

// returns makes the client reconnect to a server, and waits for that.
func (u *unanswered) returns(t *testing.T) {
	t.Helper()
	events := u.client.Events()
	defer events.Close()
	receive(t, "the state to begin with", events.Ready())
	u.proxy.Drop()
	receive(t, "Disconnected", events.Disconnected())
	receive(t, "Ready", events.Ready())
}

// Z1. A create was repeated because its reply was lost, and the server then carries out
// the first one after all, while the lock is held, released or given up. No node of it
// stays in the queue.
func TestCreationArrivesLate(t *testing.T) {
	t.Parallel()
	for form, names := range forms {
		opts := options()
		opts.Names = names
		t.Run(form+"/held", func(t *testing.T) {
			start(t)
			u, got := loseCreation(limited(t), t, opts)
			lock := granted(t, got)
			u.arrives(t)
			u.returns(t)
			holds(t, u.conn, u.parent, 1)
			if err := lock.Verify(limited(t)); err != nil {
				t.Error("the node that was kept is gone:", err)
			}
			release(t, lock)
			noResidue(t, u.conn, u.parent)
		})
		t.Run(form+"/released", func(t *testing.T) {
			start(t)
			u, got := loseCreation(limited(t), t, opts)
			release(t, granted(t, got))
			u.returns(t) // not yet
			u.arrives(t)
			u.returns(t)
			noResidue(t, u.conn, u.parent)
			release(t, take(t, dial(t, server(t).Addr(), nil), u.key))
		})
		t.Run(form+"/given up", func(t *testing.T) {
			start(t)
			ctx, giveUp := context.WithCancel(limited(t))
			u, got := loseCreation(ctx, t, opts)
			giveUp()
			if o := receive(t, "Acquire returns", got); !errors.Is(o.err, context.Canceled) {
				t.Fatalf("%v, %v", o.lock, o.err)
			}
			u.returns(t)
			noResidue(t, u.conn, u.parent)
			u.arrives(t)
			u.returns(t)
			noResidue(t, u.conn, u.parent)
		})
	}
}

// Z1. Tests the periodic looks for strays: the session may have moved to a server without
// its client's knowledge.
func TestCreationArrivesAfterSomeLooks(t *testing.T) {
	t.Parallel()
	for name, returns := range map[string]bool{"after a return": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			start(t)
			opts := options()
			opts.SessionTimeout = time.Second // of which the pauses are fractions and multiples
			u, got := loseCreation(limited(t), t, opts)
			release(t, granted(t, got))
			if returns {
				u.returns(t)
			}
			for range 3 {
				look, pass := u.proxy.HoldRequest(faultproxy.OpGetChildren2, u.parent)
				defer pass()
				receive(t, "a look", look)
				pass()
			}
			u.arrives(t) // on the same connection, and therefore after them
			noResidue(t, u.conn, u.parent)
		})
	}
}

// Z1. Tests the look at a reconnect, when nearly all strays appear: the queue must not
// stand still until the next periodic look.
func TestReturnLooksAtOnce(t *testing.T) {
	start(t)
	opts := options()
	opts.SessionTimeout = longest
	u, got := loseCreation(limited(t), t, opts)
	began := time.Now()
	release(t, granted(t, got))
	look, pass := u.proxy.HoldRequest(faultproxy.OpGetChildren2, u.parent)
	defer pass()
	u.returns(t)
	receive(t, "a look", look)
	if waited := time.Since(began); waited > longest/4 {
		t.Errorf("it came after %v, when the periodic look was due anyway", waited)
	}
}

// Z1. The client does not forget a repeated create when an operator deletes the second
// node, or all nodes, before the client has listed it.
func TestCreationArrivesAfterDeletion(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]bool{"the node": false, "its parent too": true} {
		t.Run(name, func(t *testing.T) {
			start(t)
			for tries := 1; !checkArrivalAfterDeletion(t, all); tries++ {
				if tries == 10 { // it does so once in fifty times
					t.Fatal("the list overtakes the creation each time")
				}
			}
		})
	}
}

// checkArrivalAfterDeletion returns false if the list overtook the create that it was
// sent with: then there was no node to delete.
func checkArrivalAfterDeletion(t *testing.T, all bool) bool {
	t.Helper()
	u, got, reconnect := loseCreationAndWait(limited(t), t, options())
	look, pass := u.proxy.HoldRequest(faultproxy.OpGetChildren2, u.parent)
	defer pass()
	reconnect()
	receive(t, "the list behind the repetition", look)
	var names []string
	for end := time.Now().Add(time.Second); len(names) == 0; time.Sleep(5 * time.Millisecond) {
		names = list(t, u.conn, u.parent)
		if time.Now().After(end) {
			return false
		}
	}
	if err := u.conn.Delete(u.parent+"/"+names[0], -1); err != nil {
		t.Fatal(err)
	}
	if all {
		if err := u.conn.Delete(u.parent, -1); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	release(t, granted(t, got))
	u.arrives(t)
	u.returns(t)
	noResidue(t, u.conn, u.parent)
	return true
}

// Z1. The client looks for strays in their own session only; the next session begins with
// none.
func TestNoLookInTheNextSession(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, p, expire := expirable(t, nil)
	key := newKey(t)
	parent := prepare(t, conn, key)
	lost := p.LoseRequest(faultproxy.OpCreate, parent)
	got := acquiring(limited(t), client, key)
	receive(t, "loss", lost)
	release(t, granted(t, got))
	before := client.Conn().SessionID()
	expire()
	release(t, take(t, client, newKey(t)))
	if client.Conn().SessionID() == before {
		t.Fatal("the session goes on")
	}
	events := client.Events()
	defer events.Close()
	receive(t, "the state to begin with", events.Ready())
	p.ResetCounts()
	p.Drop()
	receive(t, "Disconnected", events.Disconnected())
	receive(t, "Ready", events.Ready())
	release(t, take(t, client, newKey(t)))
	// One sync is the heartbeat at the reconnect; a look would be another.
	if n := p.Count(faultproxy.ToServer, faultproxy.OpSync); n > 1 {
		t.Errorf("%d looks for strays of a session that is over", n)
	}
}

// abandonedReturn makes real servers move a session to a server without its client's
// knowledge: the client connected to a stopped follower, timed out, and went on to
// another one. In half of the rounds an earlier create is carried out then. The client
// sends nothing of itself meanwhile, and the follower that it is connected to takes no
// part.
func abandonedReturn(t *testing.T, e *zkserver.Ensemble) {
	const timeout = 4 * time.Second
	_, followers := leaderAndFollowers(t, e)
	main, stopped := e.Servers()[followers[1]], e.Servers()[followers[0]]
	conn := plain(t, main.Addr())
	p := proxy(t, stopped.Addr())
	client := dialServers(t, zklock.Options{SessionTimeout: timeout}, p.Addr())
	for range 5 {
		key := newKey(t)
		parent := prepare(t, conn, key)
		p.SetUpstream(stopped.Addr())
		p.Drop()
		release(t, take(t, client, newKey(t))) // it is at the follower
		sent, pass := p.HoldRequest(faultproxy.OpCreate, parent)
		got := acquiring(limited(t), client, key)
		receive(t, "creation", sent)
		if err := stopped.Pause(); err != nil {
			t.Fatal(err)
		}
		pass()
		time.Sleep(delivery)
		p.ResetCounts()
		p.Drop()
		eventually(t, "the client comes back", func() bool { return p.Count(faultproxy.ToServer, faultproxy.OpConnect) > 0 })
		time.Sleep(delivery)
		p.SetUpstream(main.Addr())
		p.Drop()
		release(t, granted(t, got))
		time.Sleep(timeout / 3)
		if err := stopped.Resume(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * delivery) // time for the create to arrive
		noResidue(t, conn, parent)
	}
}

// delivery is nearly always enough to get from a proxy to the socket of a stopped server.
// If it takes longer, these tests find less than they could.
const delivery = 20 * time.Millisecond

// stoppedFollower makes real servers do what arrives does: a follower is stopped, the
// client sends it a create and repeats that at the leader, and is back on a new
// connection when the follower resumes. In a third of the rounds the follower then
// carries out the create of the old connection. The stray must not stay in the queue for
// longer than it takes to notice it.
func stoppedFollower(t *testing.T, e *zkserver.Ensemble) {
	leader, followers := leaderAndFollowers(t, e)
	main, stopped := e.Servers()[leader], e.Servers()[followers[0]]
	conn := plain(t, main.Addr())
	other := dial(t, main.Addr(), nil)
	p := proxy(t, stopped.Addr())
	client := dialServers(t, zklock.Options{SessionTimeout: 10 * time.Second}, p.Addr())
	for range 8 {
		key := newKey(t)
		parent := prepare(t, conn, key)
		release(t, take(t, client, newKey(t))) // it is at the follower
		sent, pass := p.HoldRequest(faultproxy.OpCreate, parent)
		got := acquiring(limited(t), client, key)
		receive(t, "creation", sent)
		if err := stopped.Pause(); err != nil {
			t.Fatal(err)
		}
		pass()
		time.Sleep(delivery)
		p.SetUpstream(main.Addr())
		p.Drop()
		lock := granted(t, got)
		release(t, lock)
		p.SetUpstream(stopped.Addr())
		p.ResetCounts()
		p.Drop()
		eventually(t, "the client comes back", func() bool { return p.Count(faultproxy.ToServer, faultproxy.OpConnect) > 0 })
		time.Sleep(delivery)
		if err := stopped.Resume(); err != nil {
			t.Fatal(err)
		}
		release(t, take(t, client, newKey(t)))
		next := granted(t, acquiring(limited(t), other, key))
		if next.Token() <= lock.Token() {
			t.Errorf("token %v after %v", next.Token(), lock.Token())
		}
		var lost *holdfast.LostError
		if err := next.Release(limited(t)); errors.As(err, &lost) {
			t.Error(err)
		}
		noResidue(t, conn, parent)
	}
}
