package integration_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// arrives carries out a lost create now, in the client's session, as a server would that was stopped when it came.
func (s *scene) arrives(t *testing.T, lost faultproxy.Frame) {
	t.Helper()
	must(t, errOf(s.client.Conn().Create(lost.Path, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))))
	if s.client.Conn().SessionID() != s.session { // the client has nothing to do with what comes in another one
		verdict.Inconclusive(t, "the session of the creation is over")
	}
}

// Z1. A create was repeated because its reply was lost, and the server then carries out the first one after all, while the
// lock is held, released or given up. No node of it stays in the queue.
func TestCreationArrivesLate(t *testing.T) {
	t.Parallel()
	for form, names := range forms {
		for when, test := range map[string]func(*testing.T, *scene){
			"held": func(t *testing.T, s *scene) {
				lost, got, reconnect := s.loseCreation(limited(t), t, losses["request"])
				reconnect()
				lock := granted(t, got)
				s.arrives(t, lost)
				s.reconnects(t)
				holds(t, s.conn, s.parent, 1)
				if err := lock.Verify(limited(t)); err != nil {
					t.Error("the node that was kept is gone:", err)
				}
				release(t, lock)
			},
			"released": func(t *testing.T, s *scene) {
				lost, got, reconnect := s.loseCreation(limited(t), t, losses["request"])
				reconnect()
				release(t, granted(t, got))
				s.reconnects(t) // not yet
				s.arrives(t, lost)
				s.reconnects(t)
				noResidue(t, s.conn, s.parent)
				release(t, take(t, s.other(t), s.key))
			},
			"given up": func(t *testing.T, s *scene) {
				ctx, giveUp := context.WithCancel(limited(t))
				lost, got, reconnect := s.loseCreation(ctx, t, losses["request"])
				reconnect()
				giveUp()
				if o := receive(t, "Acquire returns", got); o.err == nil {
					verdict.Inconclusive(t, "it was not given up in time")
				} else if !errors.Is(o.err, context.Canceled) {
					t.Fatal(o.err)
				}
				s.reconnects(t)
				noResidue(t, s.conn, s.parent)
				s.arrives(t, lost)
				s.reconnects(t)
			},
		} {
			t.Run(form+"/"+when, func(t *testing.T) {
				play(t, &zklock.Options{Names: names}, func(t *testing.T, s *scene) {
					test(t, s)
					noResidue(t, s.conn, s.parent)
				})
			})
		}
	}
}

// Z1. Tests the periodic looks for strays: the session may have moved to a server without its client's knowledge.
func TestCreationArrivesAfterSomeLooks(t *testing.T) {
	t.Parallel()
	for name, returns := range map[string]bool{"after a return": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			// The pauses are fractions and multiples of the timeout.
			play(t, &zklock.Options{SessionTimeout: 6 * time.Second}, func(t *testing.T, s *scene) {
				lost, got, reconnect := s.loseCreation(limited(t), t, losses["request"])
				reconnect()
				release(t, granted(t, got))
				if returns {
					s.reconnects(t)
				}
				for range 3 {
					look, pass := s.proxy.HoldRequest(faultproxy.OpGetChildren2, s.parent)
					defer pass()
					receive(t, "a look", look)
					pass()
				}
				s.arrives(t, lost) // on the same connection, and therefore after them
				noResidue(t, s.conn, s.parent)
			})
		})
	}
}

// Z1. Tests the look at a reconnect, when nearly all strays appear: the queue must not stand still until the next periodic
// look.
func TestReturnLooksAtOnce(t *testing.T) {
	play(t, &zklock.Options{SessionTimeout: longest}, func(t *testing.T, s *scene) {
		_, got, reconnect := s.loseCreation(limited(t), t, losses["request"])
		reconnect()
		began := time.Now()
		release(t, granted(t, got))
		look, pass := s.proxy.HoldRequest(faultproxy.OpGetChildren2, s.parent)
		defer pass()
		s.reconnects(t)
		receive(t, "a look", look)
		if waited := time.Since(began); waited > longest/4 {
			verdict.Fatalf(t, "it came after %v, when the periodic look was due anyway", waited)
		}
	})
}

// Z1. The client looks for strays in their own session only; the next session begins with none.
func TestNoLookInTheNextSession(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		s.prepare(t)
		lost := s.proxy.LoseRequest(faultproxy.OpCreate, s.parent)
		got := s.acquiring(limited(t))
		receive(t, "loss", lost)
		release(t, granted(t, got))
		before := s.client.Conn().SessionID()
		s.expire()
		release(t, take(t, s.client, newKey(t)))
		if s.client.Conn().SessionID() == before {
			verdict.Inconclusive(t, "the session goes on")
		}
		var looks atomic.Int32
		s.proxy.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
			if f.Dir == faultproxy.ToServer && f.Path == s.parent { // a heartbeat is for other paths
				looks.Add(1)
			}
			return faultproxy.Pass
		})
		s.reconnects(t)
		release(t, take(t, s.client, newKey(t)))
		if n := looks.Load(); n > 0 {
			t.Errorf("%d looks for strays of a session that is over", n)
		}
	})
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
		must(t, stopped.Pause())
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
		must(t, stopped.Resume())
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
		must(t, stopped.Pause())
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
		must(t, stopped.Resume())
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
