package integration_test

import (
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/mongoserver"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/mongolock"
)

// mongodbLease is the lease of all clients of the suite on MongoDB.
const mongodbLease = 6 * time.Second

// mongodbEngine is an emulator of MongoDB, or a server given by its address.
func mongodbEngine(t *testing.T) (locktest.Engine, string) {
	const soon = 20 * time.Second
	target := mongoserver.Find(t)
	h := &mongoHarness{target: target, locks: mongoCollection(t, target)}
	return locktest.Engine{
		Start:      func(testing.TB) locktest.Harness { return h },
		Lanes:      conformanceLanes,
		Lease:      mongodbLease,
		Soon:       soon,
		Notice:     mongodbLease/4 + soon,
		Unknown:    []string{"QueuedAt"},
		Heartbeats: locktest.PerLock,
	}, target.Source
}

// mongoCollection returns a new collection.
func mongoCollection(t *testing.T, target *mongoserver.Target) *mongo.Collection {
	return target.Client(t).Database("holdfast").Collection("locks-" + bson.NewObjectID().Hex())
}

// mongoHarness is a collection that all cases share, as programs do. Each client has its own proxy, and a clock that can be stopped and
// set.
type mongoHarness struct {
	target *mongoserver.Target
	locks  *mongo.Collection
}

func (h *mongoHarness) NewClient(t testing.TB, o locktest.ClientOptions) *locktest.Client {
	t.Helper()
	p, err := faultproxy.StartMongoDB(h.target.Addr, mongodbLease/2, mongodbLease/30) // heartbeats wait for 250 ms
	must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	fake := &drivertest.Clock{}
	locks := h.target.Client(t, p.Addr()).Database(h.locks.Database().Name()).Collection(h.locks.Name())
	c, err := mongolock.New(clock.With(t.Context(), fake), locks, &mongolock.Options{
		Lease:   mongodbLease,
		Poll:    conformancePoll,
		Margin:  100 * time.Millisecond, // less than a late reply is late
		Owner:   o.Owner,
		OnEvent: o.OnEvent,

		Standalone: true, // a server that is given may be
	})
	must(t, err)
	return &locktest.Client{
		API:   c.Client,
		Cut:   func() { p.BlackHole(faultproxy.Both) },
		Stall: func() { p.Stall(faultproxy.Both) },
		Heal:  func() { check(t, p.Heal()) },
		// A stopped process runs no timers, reads nothing and writes nothing.
		Pause:  func() { fake.Pause(); p.BlackHole(faultproxy.Both) },
		Resume: func() { check(t, p.Heal()); fake.Resume() },
		Jump:   fake.Jump,
		Lose:   p.Lose,
	}
}

// Residue is a document with a holder under a live lease, by the clock of this machine.
func (h *mongoHarness) Residue(t testing.TB, key string) []string {
	t.Helper()
	var doc struct {
		Holders []struct {
			Lease   time.Duration
			Touched time.Time
		}
	}
	if err := h.locks.FindOne(limited(t), bson.D{{Key: "_id", Value: key}}).Decode(&doc); err != mongo.ErrNoDocuments {
		must(t, err)
	}
	var left []string
	for _, holder := range doc.Holders {
		if time.Since(holder.Touched) < holder.Lease {
			left = append(left, fmt.Sprintf("a holder of lease %v", holder.Lease))
		}
	}
	return left
}
