package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestHerd tests the cure of hazard Z10: a waiter watches only the node just
// before its own. One release causes one watch event to 1000 waiters, and one
// grant.
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
	queue := holds(t, conn, under(key), waiters+1)
	slices.SortFunc(queue, func(x, y string) int { return strings.Compare(x[len(x)-10:], y[len(y)-10:]) })
	eventually(t, "each waiter watches the node before its own, and nobody watches more", func() bool {
		dump, err := zkserver.Dump(limited(t), addr)
		if err != nil {
			t.Fatal(err)
		}
		owner := make(map[string]int64)
		for session, paths := range dump.Ephemerals {
			for _, path := range paths {
				owner[path] = session
			}
		}
		watches, err := zkserver.Watches(limited(t), addr)
		if err != nil {
			t.Fatal(err)
		}
		for i, node := range queue {
			path := under(key) + "/" + node
			want := []int64{owner[path]} // its own watch
			if i+1 < len(queue) {
				if next := owner[under(key)+"/"+queue[i+1]]; next != owner[path] {
					want = append(want, next)
				}
			}
			slices.Sort(want)
			slices.Sort(watches[path])
			if !slices.Equal(watches[path], want) {
				return false
			}
		}
		return true
	})
	settle := func() { // a server sends events before the reply
		t.Helper()
		for _, client := range waiting {
			if _, err := client.Conn().Sync(under(key)); err != nil {
				t.Fatal(err)
			}
		}
	}
	settle()
	for i := range releases {
		p.ResetCounts()
		if err := lock.Release(limited(t)); err != nil {
			t.Fatal(err)
		}
		next := receive(t, "a grant", granted)
		settle()
		events, want := p.CountKind(faultproxy.ToClient, faultproxy.KindWatchEvent), 1
		if i > 0 {
			want = 2 // the releasing client, now behind the proxy too, has a watch on its own node
			if sameClient(waiting, lock, next) {
				want = 1
			}
		}
		if i == 0 && events != 1 || events < 1 || events > want {
			t.Errorf("release %d caused %d watch events to waiters, want %d", i, events, want)
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
	if err := lock.Release(limited(t)); err != nil {
		t.Error(err)
	}
	noResidue(t, conn, under(key))
	noWatches(t, addr, under(key))
}

// sameClient reports whether two locks are of one client.
func sameClient(clients []*zklock.Client, a, b *holdfast.Lock) bool {
	if a.Owner() != b.Owner() {
		return false
	}
	for _, c := range clients {
		if c.Owner() == a.Owner() {
			return true
		}
	}
	panic(fmt.Sprintf("owner %q is of no client", a.Owner()))
}
