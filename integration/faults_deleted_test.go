package integration_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// lostTo fails the test unless a lock ends with this cause and an event reports it.
func lostTo(t *testing.T, lock *holdfast.Lock, events *holdfast.Events, cause error) {
	t.Helper()
	receive(t, "Done", lock.Done())
	if err := lock.Err(); errors.Is(err, holdfast.ErrSessionExpired) && cause != holdfast.ErrSessionExpired {
		verdict.Fatalf(t, "Err = %v, want ErrLost with %v", err, cause)
	} else if !errors.Is(err, holdfast.ErrLost) || !errors.Is(err, cause) {
		t.Errorf("Err = %v, want ErrLost with %v", err, cause)
	}
	event := receive(t, "the event Lost", events.Lost())
	if event.Key != lock.Key() || event.Token != lock.Token() || !errors.Is(event.Err, cause) {
		t.Errorf("event %+v, want key %q, token %d, %v", event, lock.Key(), lock.Token(), cause)
	}
	if err := lock.Release(limited(t)); !errors.Is(err, cause) {
		t.Errorf("Release = %v, want %v", err, cause)
	}
}

// Z12, Z17. A holder whose watch reports the deletion of its node does not read the node, however many others there
// are. After an outage it reads the node once, to set the watch again.
func TestBreakIsHeardAtOnce(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"never cut off", "after a reconnection", "while it is cut off"} {
		t.Run(when, func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				lock := s.take(t)
				path := nodeOf(t, s.client, lock)
				s.reads(t, 1)
				crowd := s.other(t)
				var waiting []<-chan outcome
				for range 50 {
					waiting = append(waiting, acquiring(limited(t), crowd, s.key))
				}
				holds(t, s.conn, s.parent, 51)
				events := s.client.Events()
				if when == "after a reconnection" {
					s.reconnects(t)
					s.quiet(t)
				}
				s.proxy.ResetCounts()
				if when == "while it is cut off" {
					s.proxy.Cut()
					receive(t, "Disconnected", events.Disconnected())
				}
				s.delete(t, path)
				must(t, s.proxy.Heal())
				lostTo(t, lock, events, holdfast.ErrBroken)
				most := 0
				if when == "while it is cut off" {
					most = 1 // sets the watch again
				}
				if n := s.proxy.Count(faultproxy.ToServer, faultproxy.OpGetData); n > most { // the release may list the queue
					t.Errorf("%d reads before the end of the lock", n)
				}
				var wg sync.WaitGroup
				for _, got := range waiting { // one after the other, but not in this order
					wg.Go(func() {
						o := <-got
						if check(t, o.err); o.err == nil {
							check(t, o.lock.Release(limited(t)))
						}
					})
				}
				wg.Wait()
				s.clean(t)
			})
		})
	}
}

// Z28. A server suppresses the event of a deletion. The holder then learns of it from a heartbeat.
func TestBreakIsHeardWithoutAWatch(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		lock := s.take(t)
		path := nodeOf(t, s.client, lock)
		s.reads(t, 1)
		events := s.client.Events()
		s.proxy.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
			if f.Kind == faultproxy.KindWatchEvent {
				return faultproxy.DropFrame
			}
			return faultproxy.Pass
		})
		s.delete(t, path)
		lostTo(t, lock, events, holdfast.ErrBroken)
		s.clean(t)
	})
}

// The reply to a delete is lost, and a lagging server still shows the node, so the client deletes it again. "No node" then
// means success. Here the first request is lost instead and somebody else deletes the node, which looks the same.
func TestBreakUnanswered(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		lock := take(t, s.other(t), s.key)
		info, err := s.client.Inspect(limited(t), s.key)
		must(t, err)
		lost := s.proxy.LoseRequest(faultproxy.OpDelete, s.parent)
		again, pass := s.proxy.HoldRequest(faultproxy.OpDelete, s.parent)
		broken := async(func() error { return s.client.Break(limited(t), info) })
		receive(t, "the first deletion", lost)
		receive(t, "the second deletion", again)
		s.delete(t, s.newest(t, 1))
		pass()
		if err := receive(t, "Break returns", broken); err != nil {
			t.Errorf("Break = %v, want nil: the grant has ended, and by this call as far as it can tell", err)
		}
		receive(t, "Done", lock.Done())
		s.clean(t)
	})
}

// Z17. A waiter's watches report the deletion of its own node, and then of its predecessor: that is no grant.
func TestDeletionHeardBeforeTheGrant(t *testing.T) {
	t.Parallel()
	for _, reconnected := range []bool{false, true} {
		t.Run(fmt.Sprintf("reconnected %v", reconnected), func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				for range 10 {
					s.key = newKey(t)
					s.parent = under(s.key)
					s.proxy.ResetCounts()
					holder, got, node := s.waiting(t)
					_, stat, err := s.conn.Get(node)
					must(t, err)
					s.reads(t, 2)
					if reconnected {
						s.reconnects(t)
						eventually(t, "the waiter looks for its predecessor once more", func() bool {
							return s.proxy.Count(faultproxy.ToClient, faultproxy.OpExists) > 0
						})
					}
					s.proxy.Stall(faultproxy.ToClient)
					s.delete(t, node)
					release(t, holder)
					must(t, s.proxy.Heal())
					lock := granted(t, got)
					if lock.Token() == holdfast.Token(stat.Czxid) {
						t.Fatal("the client was granted the lock although its watch had reported its node deleted")
					}
					release(t, lock)
					s.clean(t)
				}
			})
		})
	}
}

// Z17. The same happens while the waiter is cut off. What the server reports when it is back comes in any order.
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

// Z17. Somebody writes to a waiter's node. That may be half of a reclaim, so there is no grant until the waiter has seen
// that the node still exists.
func TestWriteHeardBeforeTheGrant(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprintf("and deletes it %v", gone), func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				holder, got, node := s.waiting(t, holdfast.WithOwner("worker"))
				s.reads(t, 2)
				again, pass := s.proxy.HoldRequest(faultproxy.AnyOp, node)
				defer pass()
				if gone {
					heir := acquiring(limited(t), s.other(t), s.key, holdfast.WithOwner("worker"), holdfast.WithReclaim())
					defer func() { release(t, granted(t, heir)) }()
				} else {
					must(t, errOf(s.conn.Set(node, []byte("stranger"), -1)))
				}
				receive(t, "look at the own node", again)
				release(t, holder)
				silent(t, "grant to a waiter that may have lost its node", got)
				pass()
				if gone {
					if o := receive(t, "Acquire returns", got); !errors.Is(o.err, holdfast.ErrReclaimed) {
						t.Errorf("Acquire returns %v, %v; want %v", o.lock, o.err, holdfast.ErrReclaimed)
					}
					return
				}
				release(t, granted(t, got))
				s.clean(t)
			})
		})
	}
}

// Z18. A contender with the same owner name is in the queue and has reclaimed nothing.
func TestBreakIsNoReclaim(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		owner := holdfast.WithOwner("worker")
		lock := s.take(t, owner)
		next := acquiring(limited(t), s.other(t), s.key, owner)
		holds(t, s.conn, s.parent, 2)
		s.reads(t, 1)
		events := s.client.Events()
		s.reconnects(t)
		s.delete(t, nodeOf(t, s.client, lock))
		lostTo(t, lock, events, holdfast.ErrBroken)
		release(t, granted(t, next))
		s.clean(t)
	})
}

// isBack waits until the scene's client waits by another node, and fails the test if it is granted the held lock.
func (s *scene) isBack(t *testing.T, former string, got <-chan outcome) {
	t.Helper()
	eventually(t, "the waiter is back", func() bool {
		names := list(t, s.conn, s.parent)
		return len(names) == 2 && !slices.ContainsFunc(names, func(n string) bool { return s.parent+"/"+n == former })
	})
	silent(t, "end of Acquire while the lock is held", got)
}

// Z18. A waiter's session ends while its reads are on their way, and they find nothing in the next session: the waiter
// queues again there.
func TestSessionExpiresWhileWaiterReads(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"first reads", "read after a write"} {
		t.Run(what, func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				var held <-chan faultproxy.Frame
				pass := func() {}
				owner := holdfast.WithOwner("worker")
				if what == "first reads" {
					held, pass = s.proxy.HoldRequest(faultproxy.OpGetData, s.parent)
				}
				holder, got, node := s.waiting(t, owner)
				if what != "first reads" {
					s.reads(t, 2)
					held, pass = s.proxy.HoldRequest(faultproxy.OpGetData, node)
					must(t, errOf(s.conn.Set(node, []byte("stranger"), -1)))
				}
				defer pass()
				receive(t, "reads", held)
				s.expire()
				pass()
				s.isBack(t, node, got)
				s.passes(t, holder, got)
			})
		})
	}
}

// Z9. A waiter whose node somebody deletes enters the queue again, as does one whose session ends.
func TestWaiterDeleted(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, s *scene, node string){
		"by an operator":   func(t *testing.T, s *scene, node string) { s.delete(t, node) },
		"with its session": func(_ *testing.T, s *scene, _ string) { s.expire() },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				holder, got, node := s.waiting(t)
				for range 3 {
					end(t, s, node)
					s.isBack(t, node, got)
					node = s.newest(t, 2)
				}
				s.passes(t, holder, got)
			})
		})
	}
}
