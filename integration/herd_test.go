package integration_test

import (
	"context"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestHerd tests the cure of hazard Z10: a waiter watches only the two nodes just before its
// own. One release causes two watch events to 1000 waiters, and one grant.
func TestHerd(t *testing.T) {
	start(t)
	const waiters, clients, releases = 1000, 10, 5
	addr, key := server(t).Addr(), newKey(t)
	// The holder's client is not behind the proxy, because its own watch may fire as well.
	lock := take(t, dialServers(t, zklock.Options{SessionTimeout: longest}, addr), key)
	p := proxy(t, addr)
	var waiting []*zklock.Client
	for range clients {
		waiting = append(waiting, dialServers(t, zklock.Options{SessionTimeout: longest}, p.Addr()))
	}
	ctx, cancel := context.WithCancel(t.Context())
	granted := make(chan *holdfast.Lock, waiters)
	var wg sync.WaitGroup
	for i := range waiters {
		wg.Go(func() {
			lock, err := waiting[i%clients].Acquire(ctx, key)
			if err == nil {
				granted <- lock
			}
		})
	}
	conn := plain(t, addr)
	queue := inOrder(holds(t, conn, under(key), waiters+1))
	eventually(t, "each waiter watches the two nodes before its own at most, and nobody watches more", func() bool {
		dump, err := zkserver.Dump(limited(t), addr)
		must(t, err)
		owner := make(map[string]int64)
		for session, paths := range dump.Ephemerals {
			for _, path := range paths {
				owner[path] = session
			}
		}
		watches, err := zkserver.Watches(limited(t), addr)
		must(t, err)
		for i, node := range queue {
			allowed := make(map[int64]bool) // and whether it has to
			for behind, next := range queue[i:min(i+3, len(queue))] {
				session := owner[under(key)+"/"+next]
				// A waiter right behind one of the same client does not look beyond that.
				allowed[session] = allowed[session] || behind < 2
			}
			for _, session := range watches[under(key)+"/"+node] {
				if _, ok := allowed[session]; !ok {
					return false
				}
				delete(allowed, session)
			}
			for _, must := range allowed {
				if must {
					return false
				}
			}
		}
		return true
	})
	settle := func() { // a server sends events before the reply
		t.Helper()
		for _, client := range waiting {
			must(t, errOf(client.Conn().Sync(under(key))))
		}
	}
	settle()
	for i := range releases {
		p.ResetCounts()
		release(t, lock)
		next := receive(t, "a grant", granted)
		settle()
		most := 2
		if i > 0 {
			most = 3 // the releasing client, now behind the proxy too, has a watch on its own node
		}
		if events := p.CountKind(faultproxy.ToClient, faultproxy.KindWatchEvent); events < 1 || events > most {
			t.Errorf("release %d caused %d watch events, want 1 to %d", i, events, most)
		}
		if n := len(granted); n > 0 {
			t.Errorf("release %d granted the lock to %d more", i, n)
		}
		if next.Token() <= lock.Token() {
			t.Errorf("token %d after %d", next.Token(), lock.Token())
		}
		lock = next
	}
	cancel()
	wg.Wait()
	for len(granted) > 0 { // one event may have overtaken the release
		_ = (<-granted).Release(limited(t))
	}
	check(t, lock.Release(limited(t)))
	noResidue(t, conn, under(key))
	noWatches(t, addr, under(key))
}
