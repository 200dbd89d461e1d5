package zklock_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestRequests_Contended_AsFewAsDocumented counts the requests of contended permits and locks, of which each client wants one after the
// other: the creation, the watches, the lists and the deletion, and a heartbeat now and then.
func TestRequests_Contended_AsFewAsDocumented(t *testing.T) {
	const waiters, rounds, held = 20, 6, 50 * time.Millisecond
	for _, c := range []struct {
		limit int // 0: locks
		most  int64
	}{{0, 10}, {1, 12}, {2, 12}, {3, 12}, {8, 17}, {32, 30}} {
		t.Run(fmt.Sprint(c.limit), func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				var opts []holdfast.Option
				if c.limit > 0 {
					opts = append(opts, holdfast.WithLimit(c.limit))
				}
				var all []*wired
				for range max(1, c.limit) + waiters {
					all = append(all, dialWired(t, e, zklock.Options{}))
				}
				var before, after int64
				count := func(n *int64) {
					for _, client := range all {
						*n += client.requests.Load()
					}
				}
				count(&before)
				var wg sync.WaitGroup
				for i, client := range all {
					wg.Go(func() {
						time.Sleep(time.Duration(i) * held / time.Duration(len(all)))
						for range rounds {
							lock, err := client.Acquire(inTime(t), "k", opts...)
							if err != nil {
								t.Error(err)
								return
							}
							time.Sleep(held)
							if err := lock.Release(inTime(t)); err != nil {
								t.Error(err)
							}
						}
					})
				}
				wg.Wait()
				count(&after)
				grants := int64(len(all) * rounds)
				t.Logf("%.1f requests a grant", float64(after-before)/float64(grants))
				if after-before > c.most*grants {
					t.Errorf("%d requests for %d grants, want %d each at most", after-before, grants, c.most)
				}
			})
		})
	}
}

// TestTry_ManyReaders_FewRequests: a try that is refused reads a few of the holders, and not all.
func TestTry_ManyReaders_FewRequests(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		reader, writer := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		for range 300 {
			if _, err := reader.Acquire(inTime(t), "k", holdfast.WithShared()); err != nil {
				t.Fatal(err)
			}
		}
		before := writer.requests.Load()
		var held *holdfast.HeldError
		if _, err := writer.TryAcquire(inTime(t), "k"); !errors.As(err, &held) || !held.Holder.Shared {
			t.Errorf("TryAcquire returns %v", err)
		}
		if n := writer.requests.Load() - before; n > 10 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestTry_ManyOldKeys_FewQuestions: tries of keys that have been held for long ask the leader about one in a session timeout.
func TestTry_ManyOldKeys_FewQuestions(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		holder, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		for i := range 50 {
			acquire(t, holder, fmt.Sprint(i))
		}
		time.Sleep(3 * virtualSession)
		var questions atomic.Int64
		other.sends(func(frame []byte) {
			if kind, _ := kindOf(frame); kind == opMulti {
				questions.Add(1)
			}
		})
		for range 10 {
			for i := range 50 {
				_, _ = other.TryAcquire(t.Context(), fmt.Sprint(i))
			}
			time.Sleep(virtualSession)
		}
		if n := questions.Load(); n > 25 {
			t.Errorf("%d questions", n)
		}
	})
}
