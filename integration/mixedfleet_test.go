package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// TestMixedFleet is a fleet of Node processes with the npm client and Go processes with ours, whose locks exclude each
// other or share the key. (Permits do not wait for a lock: they are refused.)
//
// HOLDFAST_MIXED_FLEET sets how long it runs; HOLDFAST_SEED repeats the random times.
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

// operate breaks the locks of dead processes where locks never expire. It looks repeatedly, because a request may arrive after the death of
// its process.
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

func startNode(t *testing.T, target *dynamoserver.Target, c fleetConfig) *peer {
	t.Helper()
	c.Name = "node"
	return c.peer(t, target, fleetNode, nil)
}

// TestMixedPair has one Go client and one Node process read, refuse, hand over and break each other's items, step by step.
func TestMixedPair(t *testing.T) {
	start(t)
	target := dynamoserver.Find(t)
	const leased = "fencingToken: number, guid: Buffer 64, holdfastSinceUnixMs: number, id: string, " +
		"leaseDurationMs: number, lockAcquiredTimeUnixMs: number, owner: string"
	for name, test := range map[string]struct {
		mode dynamolock.Mode
		keys []dynamoserver.Key
		key  string
		id   string // the key, to Node
		item string // to Node, as one by its own client, except for attributes that Node ignores
	}{
		"FailOpen":   {dynamolock.FailOpen, nil, "key", "key", leased},
		"FailClosed": {dynamolock.FailClosed, nil, "key", "key", "guid: Buffer 64, id: string, owner: string"},
		"sort key":   {dynamolock.FailOpen, []dynamoserver.Key{{Name: "tenant"}, {Name: "job"}}, "a/b", `{"tenant":"a","job":"b"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newFleetConfig(t, target, test.mode, test.keys...)
			c.Retries = 0
			node, client := startNode(t, target, c), c.dial(t, target, "go")
			step, lease := holdfast.Token(1), fleetLease
			if test.mode == dynamolock.FailClosed {
				step, lease = 0, 0
			}

			// Node holds the key.
			token := holdfast.Token(node.acquire(test.id).Token)
			var held *holdfast.HeldError
			if _, err := client.TryAcquire(limited(t), test.key); !errors.As(err, &held) || held.Holder.Owner != "node" {
				t.Errorf("TryAcquire of what Node holds returns %v", err)
			}
			info, err := client.Inspect(limited(t), test.key)
			if err != nil || !info.Held || info.Key != test.key || info.Owner != "node" || info.Token != token || info.Lease != lease {
				t.Errorf("Inspect returns %+v, %v", info, err)
			}
			var listed []string
			for info, err := range client.List(limited(t), "") {
				must(t, err)
				listed = append(listed, info.Key+" of "+info.Owner)
			}
			if !slices.Equal(listed, []string{test.key + " of node"}) {
				t.Errorf("List returns %q", listed)
			}
			node.release()

			// Go holds it.
			lock, err := client.TryAcquire(limited(t), test.key)
			must(t, err)
			if lock.Token() != token+step {
				t.Errorf("Go has token %d after %d", lock.Token(), token)
			}
			if test.item != "" {
				node.do("read", test.key)
				if got := node.says("read").Note; got != test.item {
					t.Errorf("to Node, the item has %s; want %s", got, test.item)
				}
				if got := leaseOf(t, target, &c, test.key); got != lease.Milliseconds() {
					t.Errorf("the lease is %d ms", got)
				}
			}
			node.do("acquire", test.id)
			if r := node.says(peerFailed); r.Note != "FailedToAcquireLock" {
				t.Errorf("Node's attempt at what Go holds ends with %s", r.Note)
			}
			must(t, lock.Verify(limited(t)))
			release(t, lock)
			if test.item != "" && leaseOf(t, target, &c, test.key) != int64(step) {
				t.Errorf("after the release, the lease is %d ms", leaseOf(t, target, &c, test.key))
			}

			// Node has it again, until an operator breaks its lock.
			if token = holdfast.Token(node.acquire(test.id).Token); token != lock.Token()+step {
				t.Errorf("Node has token %d after %d", token, lock.Token())
			}
			info, err = client.Inspect(limited(t), test.key)
			must(t, err)
			must(t, client.Break(limited(t), info))
			if test.mode == dynamolock.FailOpen {
				if r := receive(t, "Node loses its lock", node.lost); r.Note != "ConditionalCheckFailedException" {
					t.Errorf("Node has lost its lock by %s", r.Note)
				}
			} else {
				node.do("release")
				if r := node.says(peerFailed); r.Note != "FailedToReleaseLock" {
					t.Errorf("Node's release ends with %s", r.Note)
				}
			}
			lock = take(t, client, test.key)
			if lock.Token() != token+step {
				t.Errorf("token %d after %d", lock.Token(), token)
			}
			release(t, lock)
		})
	}
}

// leaseOf returns the lease in an item, in milliseconds.
func leaseOf(t *testing.T, target *dynamoserver.Target, c *fleetConfig, key string) int64 {
	t.Helper()
	out, err := target.Client().GetItem(limited(t), &dynamodb.GetItemInput{
		TableName: &c.Table, Key: attributeMap{c.Partition: text(key)}, ConsistentRead: aws.Bool(true),
	})
	must(t, err)
	return wholeNumber(out.Item["leaseDurationMs"])
}

// To Node, a key that several in Go share, or have permits of, is held for as long as one of them lives, whichever is killed.
// It takes the key over when the last has died; readers and permits wait for it.
func TestMixedReaders(t *testing.T) {
	start(t)
	target := dynamoserver.Find(t)
	for name, test := range map[string]struct {
		recipe string
		trust  bool
		option holdfast.Option
	}{
		"watching":        {sharedRecipe, false, holdfast.WithShared()},
		"trusting clocks": {sharedRecipe, true, holdfast.WithShared()},
		"permits":         {limitRecipe, false, holdfast.WithLimit(2)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newFleetConfig(t, target, dynamolock.FailOpen)
			c.Trust = test.trust
			var readers []*peer
			var last uint64
			for _, name := range []string{"first", "second"} {
				reader := c
				reader.Name = name
				p := reader.peer(t, target, fleetGo, nil)
				token := p.acquire("key " + test.recipe).Token
				if token <= last {
					t.Errorf("%s reader: token %d after %d", name, token, last)
				}
				last = token
				readers = append(readers, p)
			}
			patient := c
			patient.Retries = 10
			node := startNode(t, target, patient)
			node.do("acquire", "key")
			readers[0].kill()
			tooEarly := func(shows any) {
				t.Helper()
				select {
				case lost := <-readers[1].lost:
					verdict.Fatalf(t, "too early: %+v, after the reader that lives reported %+v", shows, lost)
				case <-time.After(promptly):
					t.Fatalf("too early: %+v", shows)
				}
			}
			select {
			case r := <-node.answers:
				tooEarly(r)
			case r := <-readers[1].answers:
				t.Fatalf("the reader that lives reports %+v", r)
			case <-time.After(fleetLease + fleetLease/2):
			}
			info, err := c.dial(t, target, "operator").Inspect(limited(t), "key")
			must(t, err)
			if len(info.Holders) == 0 || info.Limit == 0 && !info.Shared {
				tooEarly(info)
			}
			readers[1].kill()
			token := node.says(fleetAcquired).Token
			if token <= last {
				t.Errorf("Node has token %d after %d", token, last)
			}
			client := c.dial(t, target, "go")
			waiting := acquiring(limited(t), client, "key", test.option)
			silent(t, "a reader, or a permit, has what Node holds", waiting)
			node.release()
			lock := granted(t, waiting)
			if uint64(lock.Token()) <= token {
				t.Errorf("a reader has token %d after Node's %d", lock.Token(), token)
			}
			release(t, lock)
		})
	}
}
