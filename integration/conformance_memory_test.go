package integration_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/memlock"
)

// memoryEngine is memlock in real time. memlock's own tests stop and set its clocks, in
// virtual time.
func memoryEngine(*testing.T) (locktest.Engine, string) {
	const lease = 4 * time.Second
	return locktest.Engine{
		Start:   func(testing.TB) locktest.Harness { return &memoryHarness{store: memlock.NewStore(), lease: lease} },
		Lanes:   conformanceLanes / 2,
		Lease:   lease,
		Soon:    20 * time.Second,
		Ordered: true,
		Shares:  true,
		Unknown: []string{"LastHeard"},
	}, "this process"
}

type memoryHarness struct {
	store *memlock.Store
	lease time.Duration
}

func (h *memoryHarness) NewClient(t testing.TB, o locktest.ClientOptions) *locktest.Client {
	t.Helper()
	c, err := memlock.New(&memlock.Options{Store: h.store, Lease: h.lease, Owner: o.Owner, OnEvent: o.OnEvent})
	must(t, err)
	return &locktest.Client{
		API:    c.Client,
		Cut:    func() { h.store.Cut(c) },
		Heal:   func() { h.store.Heal(c) },
		Expire: func() { h.store.Expire(c) },
	}
}

// Residue asks the store through its own client.
func (h *memoryHarness) Residue(t testing.TB, key string) []string {
	t.Helper()
	c, err := memlock.New(&memlock.Options{Store: h.store})
	must(t, err)
	defer func() { _ = c.Close(limited(t)) }()
	info, err := c.Inspect(limited(t), key)
	must(t, err)
	var left []string
	if info.Held {
		left = append(left, "holder "+info.Owner)
	}
	for _, w := range info.Queue {
		left = append(left, "waiter "+w.Owner)
	}
	return left
}
