package integration_test

import (
	"fmt"
	"sync"
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
		AnyKey:     true,
		Shares:     true,
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
	p, err := faultproxy.StartMongoDB(h.target.Addr)
	must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	fate := &mongoFates{}
	p.SetFilter(fate.see)
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
		Heal:  func() { fate.ask(nil); check(t, p.Heal()) },
		// A stopped process runs no timers, reads nothing and writes nothing.
		Pause:  func() { fake.Pause(); p.BlackHole(faultproxy.Both) },
		Resume: func() { check(t, p.Heal()); fake.Resume() },
		Jump:   fake.Jump,
		Lose:   fate.ask,
	}
}

// mongoFates gives each command of a client its fate. It belongs to a filter.
type mongoFates struct {
	mu    sync.Mutex
	next  func() locktest.Fate     // nil: all arrive
	fates map[[2]int]locktest.Fate // of commands without a reply, by connection and id
}

// ask asks next from now on.
func (m *mongoFates) ask(next func() locktest.Fate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next, m.fates = next, make(map[[2]int]locktest.Fate)
}

// see is called for every message.
func (m *mongoFates) see(f faultproxy.Frame) faultproxy.Verdict {
	id := [2]int{f.Conn, int(f.Xid)}
	m.mu.Lock()
	fate := m.fates[id]
	delete(m.fates, id)
	if f.Kind == faultproxy.KindRequest && m.next != nil {
		fate = m.next()
		m.fates[id] = fate
	}
	m.mu.Unlock()
	late := time.Duration(0)
	switch request := f.Dir == faultproxy.ToServer; {
	case request && fate == locktest.LostRequest, !request && fate == locktest.LostReply:
		return faultproxy.CutBefore
	case request && fate == locktest.LateRequest:
		late = mongodbLease / 2
	case !request && fate == locktest.LateReply:
		late = mongodbLease / 30 // heartbeats wait for 250 ms
	}
	time.Sleep(late)
	return faultproxy.Pass
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
