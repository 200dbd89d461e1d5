package integration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
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

// Z1. A create was repeated because its reply was lost, and the server then carries out the first one after all. No node of
// it stays in the queue.
func TestCreationArrivesLate(t *testing.T) {
	t.Parallel()
	for when, test := range map[string]func(t *testing.T, s *scene, lost faultproxy.Frame, got <-chan outcome, giveUp func()){
		"while held": func(t *testing.T, s *scene, lost faultproxy.Frame, got <-chan outcome, _ func()) {
			lock := granted(t, got)
			s.arrives(t, lost)
			s.reconnects(t)
			holds(t, s.conn, s.parent, 1)
			must(t, lock.Verify(limited(t)))
			release(t, lock)
		},
		"after the release": func(t *testing.T, s *scene, lost faultproxy.Frame, got <-chan outcome, _ func()) {
			release(t, granted(t, got))
			s.reconnects(t) // not yet
			s.arrives(t, lost)
			s.reconnects(t)
		},
		"after some looks": func(t *testing.T, s *scene, lost faultproxy.Frame, got <-chan outcome, _ func()) {
			release(t, granted(t, got))
			for range 3 {
				look, pass := s.proxy.HoldRequest(faultproxy.OpGetChildren2, s.parent)
				defer pass()
				receive(t, "a look", look)
				pass()
			}
			s.arrives(t, lost) // on the same connection, and therefore after them
		},
		"after the call was given up": func(t *testing.T, s *scene, lost faultproxy.Frame, got <-chan outcome, giveUp func()) {
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
		t.Run(when, func(t *testing.T) {
			run := playOnBoth
			if when == "after some looks" {
				run = play // in real time, three looks take a minute
			}
			run(t, &zklock.Options{SessionTimeout: 12 * time.Second}, func(t *testing.T, s *scene) {
				ctx, giveUp := context.WithCancel(limited(t))
				defer giveUp()
				lost, got, reconnect := s.loseCreation(ctx, t, losses["request"])
				reconnect()
				test(t, s, lost, got, giveUp)
				noResidue(t, s.conn, s.parent)
				release(t, take(t, s.other(t), s.key))
			})
		})
	}
}

// Z17. A waiter's node is deleted, and then that of its predecessor, while the waiter is cut off. The events come in any order
// when it is back, and are no grant.
func TestDeletionInAnOutageBeforeTheGrant(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		for range 10 {
			s.key = newKey(t)
			s.parent = under(s.key)
			s.proxy.ResetCounts()
			holder, got, node := s.waiting(t)
			_, stat, err := s.conn.Get(node)
			must(t, err)
			s.reads(t, 2)
			reconnecting, reconnect := s.proxy.HoldRequest(faultproxy.OpConnect, "")
			s.proxy.Drop()
			receive(t, "reconnection", reconnecting)
			s.delete(t, node)
			release(t, holder)
			reconnect()
			lock := granted(t, got)
			if lock.Token() == holdfast.Token(stat.Czxid) {
				t.Fatal("the client was granted the lock although its node had been deleted before its predecessor's")
			}
			release(t, lock)
			s.clean(t)
		}
	})
}

// Z9. The predecessor is deleted while the waiter is cut off. After a reconnect the waiter reads its predecessor again.
func TestHolderReleasesInWaitersOutage(t *testing.T) {
	playOnBoth(t, nil, func(t *testing.T, s *scene) {
		holder, got, _ := s.waiting(t)
		s.reads(t, 2)
		s.proxy.Cut()
		release(t, holder)
		must(t, s.proxy.Heal())
		release(t, granted(t, got))
		s.clean(t)
	})
}

// Z4, Z10. Most of the many waiters of one client give up: their nodes and watches are removed.
func TestWaitersGiveUp(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		holder := s.take(t)
		ctx, cancel := context.WithCancel(limited(t))
		defer cancel()
		var leaving []<-chan outcome
		for range 20 {
			leaving = append(leaving, s.acquiring(ctx))
		}
		holds(t, s.conn, s.parent, 21)
		staying := s.acquiring(limited(t))
		holds(t, s.conn, s.parent, 22)
		s.quiet(t) // go-zookeeper has a data race of its own when it sends requests again that were in flight
		reconnecting, reconnect := s.proxy.HoldRequest(faultproxy.OpConnect, "")
		s.proxy.Drop()
		receive(t, "reconnection", reconnecting)
		cancel()
		for _, got := range leaving {
			if o := receive(t, "Acquire returns", got); !errors.Is(o.err, context.Canceled) {
				t.Errorf("error is %v", o.err)
			}
		}
		reconnect()
		holds(t, s.conn, s.parent, 2)
		release(t, holder)
		release(t, granted(t, staying))
		s.clean(t)
	})
}
