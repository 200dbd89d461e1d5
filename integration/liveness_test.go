package integration_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/zklock"
)

// hoard acquires many locks on one session, some at a time.
func hoard(t *testing.T, client *zklock.Client, prefix string, n int) []*holdfast.Lock {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience*time.Duration(1+n/1000))
	defer cancel()
	locks, errs := make([]*holdfast.Lock, n), make([]error, n)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 64)
	for i := range locks {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			locks[i], errs[i] = client.Acquire(ctx, fmt.Sprintf("%s.%d", prefix, i))
		})
	}
	wg.Wait()
	for _, err := range errs {
		must(t, err)
	}
	return locks
}

// TestHeartbeatsPerSession: a client costs the servers one write per period, however many
// locks it holds.
func TestHeartbeatsPerSession(t *testing.T) {
	start(t)
	const period, periods = 300 * time.Millisecond, 8
	opts := options()
	opts.SessionTimeout, opts.Heartbeat = longest, period
	client, p := proxied(t, opts)
	const locks = 1000
	hoard(t, client, newKey(t), locks)
	eventually(t, "all own nodes are watched", func() bool {
		return p.Count(faultproxy.ToClient, faultproxy.OpGetData) >= locks
	})
	beats := func() int { return p.Count(faultproxy.ToServer, faultproxy.OpMulti) }
	before := beats()
	eventually(t, "a heartbeat", func() bool { return beats() > before })
	p.ResetCounts()
	began := time.Now()
	eventually(t, "some heartbeats", func() bool { return beats() >= periods })
	n, took := beats(), time.Since(began)
	due := int(took / period)
	t.Logf("%d heartbeats in %v, %d periods of %v, for %d locks", n, took.Round(time.Millisecond), due, period, locks)
	const underWay = 3 // at a time, on a slow machine; they began before
	if n > due+underWay {
		t.Errorf("%d heartbeats in %d periods", n, due)
	}
	// Each is a sync, and then a write; some may be between the two.
	syncs := p.Count(faultproxy.ToServer, faultproxy.OpSync)
	if all := p.CountKind(faultproxy.ToServer, faultproxy.KindRequest); syncs > n+underWay || all > n+syncs+underWay {
		t.Errorf("%d requests, of which %d were heartbeats, with %d syncs", all, n, syncs)
	}
}
