package maplock

import (
	"context"
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
	clock := &drivertest.Clock{}
	c, err := New(h.store, Options{Lease: lease, Owner: o.Owner, OnEvent: o.OnEvent, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return &locktest.Client{
		API:    c.Client,
		Cut:    c.conn.cut,
		Heal:   func() { c.conn.mu.Lock(); c.conn.lose = nil; c.conn.mu.Unlock(); c.conn.heal() },
		Pause:  func() { clock.Pause(); c.conn.cut() },
		Resume: func() { c.conn.heal(); clock.Resume() },
		Jump:   clock.Jump,
		Lose: func(next func() locktest.Fate) {
			c.conn.heal()
			c.conn.mu.Lock()
			defer c.conn.mu.Unlock()
			c.conn.late = lease / 10
			c.conn.lose = nil
			if next != nil {
				c.conn.lose = func() bool { return next() == locktest.LateReply }
			}
		},
	}
}

func (h *harness) Residue(_ testing.TB, key string) (left []string) {
	c := &conn{store: h.store}
	_ = c.do(context.Background(), func(records map[string]*record, now time.Time) {
		if info := records[key].info(key, now); info.Held {
			left = append(left, info.Owner)
		}
	})
	return left
}
