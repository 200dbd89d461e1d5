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
	const period, periods, locks = 3 * time.Second, 80, 1000
	play(t, &zklock.Options{SessionTimeout: longest, Heartbeat: period}, func(t *testing.T, s *scene) {
		hoard(t, s.client, newKey(t), locks)
		s.reads(t, locks) // all own nodes are watched
		s.quiet(t)
		s.proxy.ResetCounts()
		time.Sleep(periods * period)
		beats, syncs := s.proxy.Count(faultproxy.ToServer, faultproxy.OpMulti), s.proxy.Count(faultproxy.ToServer, faultproxy.OpSync)
		if beats < periods/2 || beats > periods+1 {
			t.Errorf("%d heartbeats in %d periods", beats, periods)
		}
		// Each is a sync, then a write, and then a read of one lock; the last one may not be complete.
		if all := s.proxy.CountKind(faultproxy.ToServer, faultproxy.KindRequest); syncs > beats+1 || all > beats+syncs+beats {
			t.Errorf("%d requests, of which %d were heartbeats, with %d syncs", all, beats, syncs)
		}
	})
}
