package maplock

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/locktest"
)

const lease = 10 * time.Second

// TestConformance runs the suite in virtual time.
func TestConformance(t *testing.T) {
	locktest.Run(t, locktest.Engine{
		Start:      func(testing.TB) locktest.Harness { return &harness{store: NewStore()} },
		Bubble:     synctest.Test,
		Lease:      lease,
		Soon:       2 * time.Second,
		Heartbeats: locktest.PerLock,
		Unknown:    []string{"QueuedAt", "LastHeard"},
	})
}

type harness struct{ store *Store }

func (h *harness) NewClient(t testing.TB, o locktest.ClientOptions) *locktest.Client {
	clock, l := &drivertest.Clock{}, &link{}
	c, err := New(h.store, Options{Lease: lease, Owner: o.Owner, OnEvent: o.OnEvent, Clock: clock, carry: l.carry})
	if err != nil {
		t.Fatal(err)
	}
	return &locktest.Client{
		API:    c,
		Cut:    l.cut,
		Heal:   func() { l.lose(nil) },
		Pause:  func() { clock.Pause(); l.cut() },
		Resume: func() { l.lose(nil); clock.Resume() },
		Jump:   clock.Jump,
		Lose:   l.lose,
	}
}

func (h *harness) Residue(_ testing.TB, key string) (left []string) {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	if info := h.store.table[key].info(key, time.Now()); info.Held {
		left = append(left, info.Owner)
	}
	return left
}

// A link carries the requests of a client. It loses requests, and delays replies; a call of a map always has its reply.
type link struct {
	mu     sync.Mutex
	healed chan struct{} // nil while requests arrive
	next   func() locktest.Fate
}

func (l *link) carry(ctx context.Context, send func()) error {
	for {
		healed, fate := l.judge()
		if healed == nil && fate != locktest.LostRequest {
			err := direct(ctx, send)
			if err == nil && fate == locktest.LateReply {
				time.Sleep(lease / 10) // less than the limit of a request
			}
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-healed:
		}
	}
}

// judge decides about the next request. After a late reply, nothing arrives.
func (l *link) judge() (healed <-chan struct{}, fate locktest.Fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	healed = l.healed
	if healed == nil && l.next != nil {
		fate = l.next()
	}
	if fate == locktest.LateReply {
		l.healed = make(chan struct{})
	}
	return healed, fate
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.healed == nil {
		l.healed = make(chan struct{})
	}
}

// lose is Lose of locktest.Client, and heals.
func (l *link) lose(next func() locktest.Fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = next
	if l.healed != nil {
		close(l.healed)
		l.healed = nil
	}
}
