package dynamolock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

const poll = dynamolock.DefaultPoll

// However many waiters a client has, one of them reads, once per period, and none writes.
func TestWaitersShareOnePoller(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.client(t), h.client(t)
		lock := a.hold(t, "k")
		time.Sleep(h.db.Lag)
		const waiters = 100
		var mu sync.Mutex
		var tokens []holdfast.Token
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() {
				lock, err := b.Acquire(t.Context(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				tokens = append(tokens, lock.Token())
				mu.Unlock()
				mustRelease(t, lock)
			})
		}
		time.Sleep(time.Minute)
		if calls := b.conn.Calls(); calls["UpdateItem"] > 8 {
			t.Errorf("only the first has reason to write, and renews an intent: %v", calls)
		}
		b.conn.ResetCounts()
		const periods = 60
		time.Sleep(periods * poll)
		if calls := b.conn.Calls(); calls["GetItem"] > periods+3 || calls["GetItem"] < periods-3 || calls["UpdateItem"] > 8 {
			t.Errorf("%d waiters, %d periods: %v", waiters, periods, calls)
		}
		if read, _ := b.conn.Consumed(); read > (periods+3)*0.5 {
			t.Errorf("they cost %v read units", read)
		}
		mustRelease(t, lock)
		wg.Wait()
		for i := range tokens[1:] {
			if tokens[i] >= tokens[i+1] {
				t.Fatalf("tokens do not rise: %v", tokens)
			}
		}
	})
}
