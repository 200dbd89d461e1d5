package integration_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// Z7. The server deletes parents as fast as it can. A create that finds no parent creates the parents again; a list that
// finds none starts over.
func TestParentsReapedAllTheTime(t *testing.T) {
	start(t)
	s := zkserver.New(t, zkserver.Config{
		TickTime:               tick,
		MaxSessionTimeout:      longest,
		ContainerCheckInterval: 10 * time.Millisecond,
		Props:                  map[string]string{"znode.container.maxPerMinute": "1000000000"},
	})
	conn := plain(t, s.Addr())
	clients := []*zklock.Client{dial(t, s.Addr(), nil), dial(t, s.Addr(), nil)}
	for _, key := range []string{"plain", "/deep/in/the/tree"} {
		var wg sync.WaitGroup
		var a audit
		for _, client := range clients {
			wg.Go(func() {
				for range 25 {
					lock, err := client.Acquire(limited(t), key)
					if err != nil {
						t.Errorf("%q: %v", key, err)
						return
					}
					a.granted(t, lock)
					check(t, lock.Release(limited(t)))
					time.Sleep(12 * time.Millisecond) // lets the reaper come in between
				}
			})
		}
		wg.Wait()
	}
	eventually(t, "parents are gone", func() bool {
		return len(list(t, conn, zklock.DefaultRoot)) == 0 && len(list(t, conn, "/deep")) == 0
	})
	noWatches(t, s.Addr(), "")
}

// Z7. The parent is deleted between two steps.
func TestParentGone(t *testing.T) {
	t.Parallel()
	t.Run("between its creation and that of the node", func(t *testing.T) {
		play(t, nil, func(t *testing.T, s *scene) {
			prepare(t, s.conn, newKey(t)) // creates the root; otherwise the first try fails and is held
			held, pass := s.proxy.HoldReply(faultproxy.OpCreateContainer, s.parent)
			defer pass()
			got := s.acquiring(limited(t))
			receive(t, "creation of the parent", held)
			eventually(t, "parent is gone", func() bool { return s.conn.Delete(s.parent, -1) == nil })
			pass()
			release(t, granted(t, got))
			s.clean(t)
		})
	})
	t.Run("between its creation and that of the parent below", func(t *testing.T) {
		play(t, nil, func(t *testing.T, s *scene) {
			upper := "/" + s.key + "/deep"
			s.key, s.parent = upper+"/er", upper+"/er"
			made, pass := make(chan struct{}), make(chan struct{})
			var once sync.Once
			s.proxy.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
				if f.Dir == faultproxy.ToClient && f.Op == faultproxy.OpCreateContainer && f.Err == 0 && f.Path == upper {
					once.Do(func() {
						close(made)
						select {
						case <-pass:
						case <-f.Gone:
						}
					})
				}
				return faultproxy.Pass
			})
			got := s.acquiring(limited(t))
			receive(t, "creation of the upper parent", made)
			check(t, s.conn.Delete(upper, -1))
			close(pass)
			release(t, granted(t, got))
			s.clean(t)
		})
	})
	t.Run("between creation and list", func(t *testing.T) {
		play(t, nil, func(t *testing.T, s *scene) {
			s.prepare(t)
			held, pass := s.proxy.HoldRequest(faultproxy.OpGetChildren2, s.parent)
			defer pass()
			got := s.acquiring(limited(t))
			receive(t, "list", held)
			node := s.newest(t, 1)
			s.delete(t, node)
			s.delete(t, s.parent)
			pass()
			lock := granted(t, got)
			if again := s.newest(t, 1); guid(again) == guid(node) {
				t.Errorf("the guid of the deleted node is used again: %q", again)
			}
			release(t, lock)
			s.clean(t)
		})
	})
	t.Run("while one holds and one waits", func(t *testing.T) {
		play(t, nil, func(t *testing.T, s *scene) {
			lock := s.take(t)
			got := s.acquiring(limited(t))
			holds(t, s.conn, s.parent, 2)
			var all []any
			for _, name := range list(t, s.conn, s.parent) {
				all = append(all, &zk.DeleteRequest{Path: s.parent + "/" + name, Version: -1})
			}
			must(t, errOf(s.conn.Multi(append(all, &zk.DeleteRequest{Path: s.parent, Version: -1})...)))
			receive(t, "Done", lock.Done())
			if err := lock.Err(); !errors.Is(err, holdfast.ErrBroken) {
				t.Errorf("Err is %v, want %v", err, holdfast.ErrBroken)
			}
			// The holder's node was deleted first, so the waiter may have had the lock for a
			// moment before it learned that its own node was gone.
			next := granted(t, got)
			if next.Token() <= lock.Token() {
				t.Errorf("tokens fall from %v to %v", lock.Token(), next.Token())
			}
			if err := next.Release(limited(t)); err != nil && !errors.Is(err, holdfast.ErrBroken) {
				t.Error(err)
			}
			release(t, s.take(t))
			s.clean(t)
		})
	})
}

// Z8. Children that are not contenders are left out of the queue.
func TestForeignChildren(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		s.prepare(t)
		foreign := []string{
			"README", "lock", "lock-", "lock-1", "__lock__", "__lock__x", "0000000000", "-0000000000", "!",
			"_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0001-lock-", "_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0001-lock-000000000x",
			"leases", "locks", "lock-00000000000", "zoë-0000000000",
		}
		for _, name := range foreign {
			s.create(t, name, 0)
		}
		lock := s.take(t)
		next := s.acquiring(limited(t))
		holds(t, s.conn, s.parent, len(foreign)+2)
		info, err := s.client.Inspect(limited(t), s.key)
		if err != nil || info.Token != lock.Token() || len(info.Queue) != 1 {
			t.Errorf("Inspect returns %+v, %v", info, err)
		}
		if _, err := s.client.TryAcquire(limited(t), s.key); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("TryAcquire returns %v", err)
		}
		release(t, lock)
		release(t, granted(t, next))
		tried, err := s.client.TryAcquire(limited(t), s.key)
		must(t, err)
		release(t, tried)
		left := holds(t, s.conn, s.parent, len(foreign))
		slices.Sort(foreign)
		if !slices.Equal(left, foreign) {
			t.Errorf("children left: %q, want %q", left, foreign)
		}
		s.noWatches(t, s.parent)
	})
}

// Z8. Every known form of a contender's name counts, for tries too.
func TestForeignContenders(t *testing.T) {
	t.Parallel()
	for name, prefix := range map[string]string{
		"Curator's mutex":           "_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0001-lock-",
		"Curator's latch":           "_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0001-latch-",
		"Curator's write lock":      "_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0001-__WRIT__",
		"Curator's read lock":       "_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0001-__READ__",
		"kazoo's lock":              "9d2c1a4e6a774a0e8d420f2d9b6b0001__lock__",
		"kazoo's read lock":         "9d2c1a4e6a774a0e8d420f2d9b6b0001__rlock__",
		"go-zookeeper's lock":       "_c_9d2c1a4e6a774a0e8d420f2d9b6b0001-lock-",
		"documentation's lock":      "lock-",
		"documentation's guid lock": "9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0001-lock-",
		"documentation's write":     "write-",
		"documentation's read":      "read-",
	} {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				s.prepare(t)
				node := s.create(t, prefix, zk.FlagEphemeral|zk.FlagSequence)
				var held *holdfast.HeldError
				if _, err := s.client.TryAcquire(limited(t), s.key); !errors.As(err, &held) {
					t.Errorf("TryAcquire returns %v", err)
				} else if held.Holder.Owner != "curator" || held.Holder.Grant != path.Base(node) {
					t.Errorf("holder is %+v", held.Holder)
				}
				got := s.acquiring(limited(t))
				s.watched(t, node)
				s.delete(t, node)
				release(t, granted(t, got))
				if n := s.proxy.Count(faultproxy.ToServer, faultproxy.OpDelete); n != 1 {
					t.Errorf("%d deletes, want the client's own only", n)
				}
				s.clean(t)
			})
		})
	}
}

// Z9. The predecessor is deleted while the waiter is cut off. After a reconnect the waiter reads its predecessor again.
func TestHolderReleasesInWaitersOutage(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"drop", "cut"} {
		t.Run(how, func(t *testing.T) {
			playOnBoth(t, &zklock.Options{SessionTimeout: longest}, func(t *testing.T, s *scene) {
				holder, got, _ := s.waiting(t)
				s.reads(t, 2)
				if how == "drop" {
					s.proxy.Drop()
				} else {
					s.proxy.Cut()
				}
				release(t, holder)
				must(t, s.proxy.Heal())
				release(t, granted(t, got))
				s.clean(t)
			})
		})
	}
}

// Z9. A session that only waits sends no heartbeats, so the proof that it is valid expires. When its turn comes, it must
// prove its session again, even if its predecessor was not the holder, and must not go to the end of the queue.
func TestLongWaitKeepsItsPlace(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		opts := &zklock.Options{SessionTimeout: 8 * time.Second} // long enough for a machine that stalls
		lock := s.take(t)
		type turn struct {
			name string
			err  error
		}
		order := make(chan turn, 3)
		names := []string{"second", "third", "fourth"}
		sessions := make(map[*zklock.Client]int64)
		for i, name := range names {
			client := s.dial(t, opts)
			sessions[client] = client.Conn().SessionID()
			go func() {
				got, err := client.Acquire(limited(t), s.key)
				if err == nil { // the next is granted the lock only after that
					order <- turn{name: name}
					err = got.Release(limited(t))
				}
				if err != nil {
					order <- turn{name, err}
				}
			}()
			holds(t, s.conn, s.parent, i+2)
		}
		time.Sleep(opts.SessionTimeout * 5 / 4) // the wait is what is tested
		release(t, lock)
		for _, want := range names {
			got := receive(t, want+" is granted", order)
			for client, session := range sessions {
				if client.Conn().SessionID() != session {
					verdict.Inconclusive(t, "a waiter's session has ended")
				}
			}
			must(t, got.err)
			if got.name != want {
				t.Fatalf("granted: %s, want %s", got.name, want)
			}
		}
	})
}

// Z4. The predecessor is deleted between the list and its read. A data read sets the watch, and sets none on a missing
// znode.
func TestPredecessorGoneBeforeItIsWatched(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		holder := take(t, s.other(t), s.key)
		held, pass := s.proxy.HoldRequest(faultproxy.AnyOp, s.newest(t, 1)) // whichever request sets the watch
		defer pass()
		got := s.acquiring(limited(t))
		receive(t, "watch", held)
		release(t, holder)
		pass()
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
		// go-zookeeper resends requests that were in flight before it has set its watches
		// again: a data race of its own.
		s.reads(t, 22)
		events := s.client.Events()
		defer events.Close()
		receive(t, "Ready", events.Ready())
		s.proxy.Drop()
		select {
		case <-events.Disconnected():
		case <-events.Ready(): // again, already
		case <-time.After(patience):
			verdict.Fatalf(t, "never: Disconnected")
		}
		cancel()
		for _, got := range leaving {
			if o := receive(t, "Acquire returns", got); !errors.Is(o.err, context.Canceled) {
				t.Errorf("error is %v", o.err)
			}
		}
		holds(t, s.conn, s.parent, 2)
		s.passes(t, holder, staying)
	})
}
