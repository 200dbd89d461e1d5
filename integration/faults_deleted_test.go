package integration_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/zklock"
)

// reconnects drops a client's connection and waits until it is connected again.
func reconnects(t *testing.T, client *zklock.Client, p *faultproxy.Proxy) {
	t.Helper()
	events := client.Events()
	defer events.Close()
	receive(t, "Ready", events.Ready())
	p.Drop()
	eventually(t, "the session is back on another connection", func() bool {
		select {
		case <-events.Ready():
			return true
		default:
			return false
		}
	})
}

// reads waits until a client has had the replies to n reads of nodes.
func reads(t *testing.T, p *faultproxy.Proxy, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d nodes are read", n), func() bool {
		return p.Count(faultproxy.ToClient, faultproxy.OpGetData) >= n
	})
}

// Z17. A holder whose watch reports the deletion of its node sends no request about it,
// however many others there are, and whether or not it stayed connected.
func TestBreakIsHeardAtOnce(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"never cut off", "after a reconnection", "while it is cut off"} {
		t.Run(when, func(t *testing.T) {
			start(t)
			conn := plain(t, server(t).Addr())
			client, p := proxied(t, nil)
			key := newKey(t)
			lock := granted(t, acquiring(limited(t), client, key))
			path := nodeOf(t, client, lock)
			reads(t, p, 1)
			crowd := dial(t, server(t).Addr(), nil)
			var waiting []<-chan outcome
			for range 50 {
				waiting = append(waiting, acquiring(limited(t), crowd, key))
			}
			holds(t, conn, under(key), 51)
			events := client.Events()
			if when == "after a reconnection" {
				reconnects(t, client, p)
			}
			p.ResetCounts()
			if when == "while it is cut off" {
				p.Cut()
			}
			if err := conn.Delete(path, -1); err != nil {
				t.Fatal(err)
			}
			if err := p.Heal(); err != nil {
				t.Fatal(err)
			}
			lostTo(t, lock, events, holdfast.ErrBroken)
			for _, op := range []faultproxy.Op{faultproxy.OpGetChildren2, faultproxy.OpGetData} {
				if n := p.Count(faultproxy.ToServer, op); n != 0 {
					t.Errorf("%d requests %v before the end of the lock", n, op)
				}
			}
			var wg sync.WaitGroup
			for _, got := range waiting { // one after the other, but not in this order
				wg.Go(func() {
					if o := <-got; o.err != nil {
						t.Error(o.err)
					} else if err := o.lock.Release(limited(t)); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			checkClean(t, conn, key)
		})
	}
}

// Z17. A waiter's watches report the deletion of its own node, and then of its
// predecessor: that is no grant.
func TestDeletionHeardBeforeTheGrant(t *testing.T) {
	t.Parallel()
	for _, reconnected := range []bool{false, true} {
		t.Run(fmt.Sprintf("reconnected %v", reconnected), func(t *testing.T) {
			start(t)
			conn := plain(t, server(t).Addr())
			client, p := proxied(t, nil)
			other := dial(t, server(t).Addr(), nil)
			for range 10 {
				key := newKey(t)
				holder := granted(t, acquiring(limited(t), other, key))
				holding := holds(t, conn, under(key), 1)[0]
				p.ResetCounts()
				got := acquiring(limited(t), client, key)
				node := slices.DeleteFunc(holds(t, conn, under(key), 2), func(n string) bool { return n == holding })[0]
				_, stat, err := conn.Get(under(key) + "/" + node)
				if err != nil {
					t.Fatal(err)
				}
				reads(t, p, 2)
				if reconnected {
					reconnects(t, client, p)
					reads(t, p, 3) // the waiter reads its predecessor once more
				}
				p.Stall(faultproxy.ToClient)
				if err := conn.Delete(under(key)+"/"+node, -1); err != nil {
					t.Fatal(err)
				}
				release(t, holder)
				if err := p.Heal(); err != nil {
					t.Fatal(err)
				}
				lock := granted(t, got)
				if lock.Token() == holdfast.Token(stat.Czxid) {
					t.Fatal("the client was granted the lock although its watch had reported its node deleted")
				}
				release(t, lock)
				checkClean(t, conn, key)
			}
		})
	}
}

// Z17. Somebody writes to a waiter's node. That may be half of a reclaim, so there is no
// grant until the waiter has seen that the node still exists.
func TestWriteHeardBeforeTheGrant(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprintf("and deletes it %v", gone), func(t *testing.T) {
			start(t)
			conn := plain(t, server(t).Addr())
			client, p := proxied(t, nil)
			key := newKey(t)
			holder := granted(t, acquiring(limited(t), dial(t, server(t).Addr(), nil), key))
			holding := holds(t, conn, under(key), 1)[0]
			got := acquiring(limited(t), client, key, holdfast.WithOwner("worker"))
			path := under(key) + "/" + slices.DeleteFunc(holds(t, conn, under(key), 2), func(n string) bool { return n == holding })[0]
			reads(t, p, 2)
			again, pass := p.HoldRequest(faultproxy.AnyOp, path)
			defer pass()
			if gone {
				ctx := limited(t)
				heir := acquiring(ctx, dial(t, server(t).Addr(), nil), key, holdfast.WithOwner("worker"), holdfast.WithReclaim())
				defer func() { release(t, granted(t, heir)) }()
			} else if _, err := conn.Set(path, []byte("stranger"), -1); err != nil {
				t.Fatal(err)
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
			checkClean(t, conn, key)
		})
	}
}

// Z18. A contender with the same owner name is in the queue and has reclaimed nothing.
func TestBreakIsNoReclaim(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, p := proxied(t, nil)
	key, owner := newKey(t), holdfast.WithOwner("worker")
	lock := granted(t, acquiring(limited(t), client, key, owner))
	next := acquiring(limited(t), dial(t, server(t).Addr(), nil), key, owner)
	holds(t, conn, under(key), 2)
	reads(t, p, 1)
	events := client.Events()
	reconnects(t, client, p)
	if err := conn.Delete(nodeOf(t, client, lock), -1); err != nil {
		t.Fatal(err)
	}
	lostTo(t, lock, events, holdfast.ErrBroken)
	release(t, granted(t, next))
	checkClean(t, conn, key)
}

// Z18. A waiter's session ends while its reads are on their way, and they find nothing in
// the next session: the waiter queues again there.
func TestSessionExpiresWhileWaiterReads(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"first reads", "read after a write"} {
		t.Run(what, func(t *testing.T) {
			start(t)
			conn := plain(t, server(t).Addr())
			client, p, expire := expirable(t, nil)
			key, owner := newKey(t), holdfast.WithOwner("worker")
			holder := granted(t, acquiring(limited(t), dial(t, server(t).Addr(), nil), key, owner))
			holding := holds(t, conn, under(key), 1)[0]
			var held <-chan faultproxy.Frame
			pass := func() {}
			if what == "first reads" {
				held, pass = p.HoldRequest(faultproxy.OpGetData, under(key))
			}
			got := acquiring(limited(t), client, key, owner)
			before := holds(t, conn, under(key), 2)
			if what != "first reads" {
				reads(t, p, 2)
				path := under(key) + "/" + slices.DeleteFunc(slices.Clone(before), func(n string) bool { return n == holding })[0]
				held, pass = p.HoldRequest(faultproxy.OpGetData, path)
				if _, err := conn.Set(path, []byte("stranger"), -1); err != nil {
					t.Fatal(err)
				}
			}
			defer pass()
			receive(t, "reads", held)
			expire()
			pass()
			eventually(t, "the waiter is back", func() bool {
				names := list(t, conn, under(key))
				return len(names) == 2 && !slices.Equal(names, before)
			})
			silent(t, "end of Acquire while the lock is held", got)
			release(t, holder)
			release(t, granted(t, got))
			checkClean(t, conn, key)
		})
	}
}
