package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
)

// TestMixedFleet is a fleet of Node processes with the npm client and Go processes with ours, whose locks exclude each
// other or share the key. (Permits do not wait for a lock: they are refused.)
//
// HOLDFAST_MIXED_FLEET says how long it goes on for; HOLDFAST_SEED repeats the random times.
//
// No test mixes clients that trust the clock with others: the npm client's own holders exclude one another only if all
// have the same setting. A client that does not trust the clock writes no time, so one that does has nothing to wait for.
func TestMixedFleet(t *testing.T) {
	start(t)
	duration, seed := setting(t, "HOLDFAST_MIXED_FLEET", 15*time.Second, time.ParseDuration), seeded(t)
	target := dynamoserver.Find(t)
	tests := make(map[string]func(*testing.T))
	for i, form := range []struct {
		name  string
		mode  dynamolock.Mode
		trust bool
		us    fleetLanguage
		keys  int
	}{
		{"FailOpen", dynamolock.FailOpen, false, fleetGo, 3},
		{"FailOpenTrustingClocks", dynamolock.FailOpen, true, fleetGo, 3},
		{"FailClosed", dynamolock.FailClosed, false, fleetGo, 3},
		{"Readers", dynamolock.FailOpen, false, readGo, 1},
	} {
		tests[form.name] = func(t *testing.T) {
			c := newFleetConfig(t, target, form.mode)
			c.Trust = form.trust
			lease := fleetLease
			if form.mode == dynamolock.FailClosed {
				lease = 0
			}
			f := newFleet(t, rand.New(rand.NewPCG(seed, uint64(i))), newWitness(lease), form.us, fleetNode)
			for i := range form.keys {
				f.paths = append(f.paths, fmt.Sprintf("key-%d", i))
			}
			f.forever = lease == 0
			// Clients that trust the clock must not be stopped, and locks that never expire do
			// not notice a stop. A short run has no time for stops.
			if f.forever || c.Trust || duration < 30*time.Second {
				f.blows = []fleetBlow{fleetKill}
			}
			// Go gets a key as soon as it is free. Node polls a held key only once a lease, and
			// would hardly ever get one if Go did not pause.
			f.rests = map[fleetLanguage]int{form.us: 5000}
			f.long = 3500 // which needs heartbeats
			f.start = func(kind fleetLanguage, name string, heard func(fleetReport)) *peer {
				c := c
				c.Name = name
				return c.peer(t, target, kind, heard)
			}
			if f.forever {
				ctx, cancel := context.WithCancel(t.Context())
				operator := c.dial(t, target, "operator")
				done := async(func() error { f.operate(ctx, operator); return nil })
				defer func() { cancel(); <-done }()
			}
			f.run(duration)
			f.judge()
		}
	}
	together(t, tests)
}

// operate is the operator who breaks the locks of dead processes where locks never expire. A request may still have been
// on its way when its process died, so one look is not enough.
func (f *fleet) operate(ctx context.Context, operator *dynamolock.Client) {
	for ctx.Err() == nil {
		for _, key := range f.paths {
			info, err := operator.Inspect(ctx, key)
			f.mu.Lock()
			dead := f.dead[info.Owner]
			f.mu.Unlock()
			if err == nil && info.Held && dead {
				err = operator.Break(ctx, info)
			}
			if err != nil && ctx.Err() == nil && !errors.Is(err, holdfast.ErrDisconnected) {
				f.Errorf("operator: %v", err)
			}
		}
		sleepFor(ctx, 250*time.Millisecond)
	}
}
