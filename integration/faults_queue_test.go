package integration_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// Z7. The server deletes parents as fast as it can. A create that finds no parent creates
// the parents again; a list that finds none starts over.
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
		var (
			wg   sync.WaitGroup
			mu   sync.Mutex
			last holdfast.Token
		)
		for _, client := range clients {
			wg.Go(func() {
				for range 25 {
					lock, err := client.Acquire(limited(t), key)
					if err != nil {
						t.Errorf("%q: %v", key, err)
						return
					}
					mu.Lock()
					if lock.Token() <= last {
						t.Errorf("%q: token %v after %v", key, lock.Token(), last)
					}
					last = lock.Token()
					mu.Unlock()
					if err := lock.Release(limited(t)); err != nil {
						t.Errorf("%q: %v", key, err)
					}
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
		start(t)
		conn := plain(t, server(t).Addr())
		client, p := proxied(t, nil)
		prepare(t, conn, newKey(t)) // creates the root; otherwise the first try fails and is held
		key := newKey(t)
		held, pass := p.HoldReply(faultproxy.OpCreateContainer, under(key))
		defer pass()
		got := acquiring(limited(t), client, key)
		receive(t, "creation of the parent", held)
		eventually(t, "parent is gone", func() bool { return conn.Delete(under(key), -1) == nil })
		pass()
		release(t, granted(t, got))
		checkClean(t, conn, key)
	})
	t.Run("between its creation and that of the parent below", func(t *testing.T) {
		start(t)
		conn := plain(t, server(t).Addr())
		client, p := proxied(t, nil)
		upper := "/" + newKey(t) + "/deep"
		made, pass := make(chan struct{}), make(chan struct{})
		var once sync.Once
		p.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
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
		got := acquiring(limited(t), client, upper+"/er")
		receive(t, "creation of the upper parent", made)
		if err := conn.Delete(upper, -1); err != nil {
			t.Error(err)
		}
		close(pass)
		release(t, granted(t, got))
		noResidue(t, conn, upper+"/er")
	})
	t.Run("between creation and list", func(t *testing.T) {
		start(t)
		conn := plain(t, server(t).Addr())
		client, p := proxied(t, nil)
		key := newKey(t)
		parent := prepare(t, conn, key)
		held, pass := p.HoldRequest(faultproxy.OpGetChildren2, parent)
		defer pass()
		got := acquiring(limited(t), client, key)
		receive(t, "list", held)
		node := holds(t, conn, parent, 1)[0]
		if err := errors.Join(conn.Delete(parent+"/"+node, -1), conn.Delete(parent, -1)); err != nil {
			t.Fatal(err)
		}
		pass()
		lock := granted(t, got)
		if names := holds(t, conn, parent, 1); names[0][:len(names[0])-10] == node[:len(node)-10] {
			t.Errorf("the guid of the deleted node is used again: %q", names)
		}
		release(t, lock)
		checkClean(t, conn, key)
	})
	t.Run("while one holds and one waits", func(t *testing.T) {
		start(t)
		conn := plain(t, server(t).Addr())
		client, _ := proxied(t, nil)
		key := newKey(t)
		lock := granted(t, acquiring(limited(t), client, key))
		got := acquiring(limited(t), client, key)
		holds(t, conn, under(key), 2)
		var all []any
		for _, name := range list(t, conn, under(key)) {
			all = append(all, &zk.DeleteRequest{Path: under(key) + "/" + name, Version: -1})
		}
		if _, err := conn.Multi(append(all, &zk.DeleteRequest{Path: under(key), Version: -1})...); err != nil {
			t.Fatal(err)
		}
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
		release(t, granted(t, acquiring(limited(t), client, key)))
		checkClean(t, conn, key)
	})
}

// Z8. Children that are not contenders are left out of the queue.
func TestForeignChildren(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, _ := proxied(t, nil)
	key := newKey(t)
	parent := prepare(t, conn, key)
	foreign := []string{
		"README", "lock", "lock-", "lock-1", "__lock__", "__lock__x", "0000000000", "-0000000000", "!",
		"_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0001-lock-", "_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0001-lock-000000000x",
		"leases", "locks", "lock-00000000000", "zoë-0000000000",
	}
	for _, name := range foreign {
		if _, err := conn.Create(parent+"/"+name, []byte("not yours"), 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
	}
	lock := granted(t, acquiring(limited(t), client, key))
	next := acquiring(limited(t), client, key)
	holds(t, conn, parent, len(foreign)+2)
	info, err := client.Inspect(limited(t), key)
	if err != nil || info.Token != lock.Token() || len(info.Queue) != 1 {
		t.Errorf("Inspect returns %+v, %v", info, err)
	}
	if _, err := client.TryAcquire(limited(t), key); !errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("TryAcquire returns %v", err)
	}
	release(t, lock)
	release(t, granted(t, next))
	tried, err := client.TryAcquire(limited(t), key)
	if err != nil {
		t.Fatal(err)
	}
	release(t, tried)
	left := holds(t, conn, parent, len(foreign))
	slices.Sort(foreign)
	if !slices.Equal(left, foreign) {
		t.Errorf("children left: %q, want %q", left, foreign)
	}
	noWatches(t, server(t).Addr(), parent)
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
			start(t)
			conn := plain(t, server(t).Addr())
			client, p := proxied(t, nil)
			key := newKey(t)
			parent := prepare(t, conn, key)
			node, err := conn.Create(parent+"/"+prefix, []byte("somebody"), zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
			if err != nil {
				t.Fatal(err)
			}
			var held *holdfast.HeldError
			if _, err := client.TryAcquire(limited(t), key); !errors.As(err, &held) {
				t.Errorf("TryAcquire returns %v", err)
			} else if held.Holder.Owner != "somebody" || held.Holder.Grant != path.Base(node) {
				t.Errorf("holder is %+v", held.Holder)
			}
			got := acquiring(limited(t), client, key)
			eventually(t, "the client waits", func() bool {
				watches, err := zkserver.Watches(limited(t), server(t).Addr())
				return err == nil && len(watches[node]) > 0
			})
			if err := conn.Delete(node, -1); err != nil {
				t.Fatal(err)
			}
			release(t, granted(t, got))
			if n := p.Count(faultproxy.ToServer, faultproxy.OpDelete); n != 1 {
				t.Errorf("%d deletes, want the client's own only", n)
			}
			checkClean(t, conn, key)
		})
	}
}

// Z8. go-zookeeper's own Lock and this one exclude each other, in both directions and
// with both forms of names.
func TestSharedWithGoZookeepersLock(t *testing.T) {
	t.Parallel()
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			start(t)
			conn := plain(t, server(t).Addr())
			opts := options()
			opts.Names = form
			client, _ := proxied(t, opts)
			key := "/" + newKey(t) + "/lock"
			var (
				wg     sync.WaitGroup
				mu     sync.Mutex
				inside string
			)
			enter := func(who string) {
				mu.Lock()
				defer mu.Unlock()
				if inside != "" {
					t.Errorf("%s enters while %s is inside", who, inside)
				}
				inside = who
			}
			leave := func() {
				mu.Lock()
				defer mu.Unlock()
				inside = ""
			}
			wg.Go(func() {
				theirs := zk.NewLock(conn, key, zk.WorldACL(zk.PermAll))
				for range 20 {
					if err := theirs.Lock(); err != nil {
						t.Error(err)
						return
					}
					enter("zk.Lock")
					time.Sleep(time.Millisecond)
					leave()
					if err := theirs.Unlock(); err != nil {
						t.Error(err)
						return
					}
				}
			})
			for who := range 2 {
				wg.Go(func() {
					for range 20 {
						lock, err := client.Acquire(limited(t), key)
						if err != nil {
							t.Error(err)
							return
						}
						enter(fmt.Sprint("holdfast ", who))
						time.Sleep(time.Millisecond)
						leave()
						if err := lock.Release(limited(t)); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			noResidue(t, conn, key)
			noWatches(t, server(t).Addr(), key)
		})
	}
}

// Z9. A waiter whose node somebody deletes enters the queue again.
func TestWaiterDeletedByOperator(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, _ := proxied(t, nil)
	key := newKey(t)
	holder := granted(t, acquiring(limited(t), dial(t, server(t).Addr(), nil), key))
	holding := holds(t, conn, under(key), 1)[0]
	got := acquiring(limited(t), client, key)
	for range 3 {
		node := slices.DeleteFunc(holds(t, conn, under(key), 2), func(n string) bool { return n == holding })[0]
		if err := conn.Delete(under(key)+"/"+node, -1); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the waiter is back", func() bool {
			names := list(t, conn, under(key))
			return len(names) == 2 && !slices.Contains(names, node)
		})
	}
	silent(t, "grant while the lock is held", got)
	release(t, holder)
	release(t, granted(t, got))
	checkClean(t, conn, key)
}

// Z9. The predecessor is deleted while the waiter is cut off. After a reconnect the
// waiter reads its predecessor again.
func TestHolderReleasesInWaitersOutage(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"drop", "cut", "cut, watches not renewed"} {
		t.Run(how, func(t *testing.T) {
			start(t)
			conn := plain(t, server(t).Addr())
			opts := options()
			opts.SessionTimeout = longest
			client, p := proxied(t, opts)
			key := newKey(t)
			holder := granted(t, acquiring(limited(t), dial(t, server(t).Addr(), nil), key))
			got := acquiring(limited(t), client, key)
			holds(t, conn, under(key), 2)
			eventually(t, "the waiter has read its own node and its predecessor", func() bool {
				return p.Count(faultproxy.ToClient, faultproxy.OpGetData) >= 2
			})
			if how == "drop" {
				p.Drop()
				release(t, holder)
			} else {
				p.Cut()
				release(t, holder)
				if strings.Contains(how, "not renewed") {
					p.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
						if f.Dir == faultproxy.ToServer && f.Op == faultproxy.OpSetWatches {
							return faultproxy.DropFrame
						}
						return faultproxy.Pass
					})
				}
				if err := p.Heal(); err != nil {
					t.Fatal(err)
				}
			}
			release(t, granted(t, got))
			checkClean(t, conn, key)
		})
	}
}

// Z9. The waiter's session ends: it enters again in the next, at the end.
func TestWaiterSessionExpires(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, _, expire := expirable(t, nil)
	key := newKey(t)
	holder := granted(t, acquiring(limited(t), dial(t, server(t).Addr(), nil), key))
	holding := holds(t, conn, under(key), 1)[0]
	got := acquiring(limited(t), client, key)
	before := slices.DeleteFunc(holds(t, conn, under(key), 2), func(n string) bool { return n == holding })[0]
	expire()
	eventually(t, "the waiter is back", func() bool {
		names := list(t, conn, under(key))
		return len(names) == 2 && !slices.Contains(names, before)
	})
	silent(t, "grant while the lock is held", got)
	release(t, holder)
	release(t, granted(t, got))
	checkClean(t, conn, key)
}

// Z4. The predecessor is deleted between the list and its read. A data read sets the
// watch, and sets none on a missing znode.
func TestPredecessorGoneBeforeItIsWatched(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, p := proxied(t, nil)
	key := newKey(t)
	holder := granted(t, acquiring(limited(t), dial(t, server(t).Addr(), nil), key))
	before := under(key) + "/" + holds(t, conn, under(key), 1)[0]
	held, pass := p.HoldRequest(faultproxy.AnyOp, before) // whichever request sets the watch
	defer pass()
	got := acquiring(limited(t), client, key)
	receive(t, "watch", held)
	release(t, holder)
	pass()
	release(t, granted(t, got))
	checkClean(t, conn, key)
}

// Z4, Z10. Most of the many waiters of one client give up: their nodes and watches are
// removed.
func TestWaitersGiveUp(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, p := proxied(t, nil)
	key := newKey(t)
	holder := granted(t, acquiring(limited(t), client, key))
	ctx, cancel := context.WithCancel(limited(t))
	defer cancel()
	var leaving []<-chan outcome
	for range 20 {
		leaving = append(leaving, acquiring(ctx, client, key))
	}
	holds(t, conn, under(key), 21)
	staying := acquiring(limited(t), client, key)
	holds(t, conn, under(key), 22)
	// go-zookeeper resends requests that were in flight before it has set its watches
	// again: a data race of its own.
	eventually(t, "all nodes are watched", func() bool {
		return p.Count(faultproxy.ToClient, faultproxy.OpGetData) >= 22
	})
	events := client.Events()
	defer events.Close()
	receive(t, "Ready", events.Ready())
	p.Drop()
	select {
	case <-events.Disconnected():
	case <-events.Ready(): // again, already
	case <-time.After(patience):
		t.Fatal("never: Disconnected")
	}
	cancel()
	for _, got := range leaving {
		if o := receive(t, "Acquire returns", got); !errors.Is(o.err, context.Canceled) {
			t.Errorf("error is %v", o.err)
		}
	}
	holds(t, conn, under(key), 2)
	release(t, holder)
	release(t, granted(t, staying))
	checkClean(t, conn, key)
}
