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
		Heal:   c.conn.heal,
		Pause:  func() { clock.Pause(); c.conn.cut() },
		Resume: func() { c.conn.heal(); clock.Resume() },
		Jump:   clock.Jump,
	}
}

func (h *harness) Residue(_ testing.TB, key string) (left []string) {
	c := &conn{store: h.store}
	_ = c.do(context.Background(), func(t table, now time.Time) {
		if info := t[key].info(key, now); info.Held {
			left = append(left, info.Owner)
		}
	})
	return left
}
