package memlock_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/memlock"
)

const lease = 10 * time.Second

func TestConformance(t *testing.T) {
	locktest.Run(t, locktest.Engine{
		Start: func(testing.TB) locktest.Harness {
			return &harness{store: memlock.NewStore()}
		},
		Bubble:  synctest.Test,
		Lease:   lease,
		Soon:    10 * time.Millisecond,
		Late:    10 * time.Millisecond,
		Unknown: []string{"LastHeard"},
	})
}

type harness struct{ store *memlock.Store }

func (h *harness) NewClient(t testing.TB, o locktest.ClientOptions) *locktest.Client {
	fake := &drivertest.Clock{}
	c, err := memlock.NewOn(fake, &memlock.Options{
		Store:   h.store,
		Lease:   lease,
		Owner:   o.Owner,
		OnEvent: o.OnEvent,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &locktest.Client{
		API:    c.Client,
		Cut:    func() { h.store.Cut(c) },
		Heal:   func() { h.store.Heal(c) },
		Expire: func() { h.store.Expire(c) },
		Pause:  fake.Pause,
		Resume: fake.Resume,
		Jump:   fake.Jump,
	}
}

func (h *harness) Residue(t testing.TB, key string) []string {
	c, err := memlock.New(&memlock.Options{Store: h.store})
	if err != nil {
		t.Fatal(err)
	}
	info, err := c.Inspect(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	if info.Held {
		left = append(left, fmt.Sprintf("holder %s, token %d", info.Owner, info.Token))
	}
	for _, w := range info.Queue {
		left = append(left, "waiter "+w.Owner)
	}
	return left
}
