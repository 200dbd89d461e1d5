package integration_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// To Node, a key that several in Go share, or have permits of, is held for as long as one of them lives, whichever is killed.
// It takes the key over when the last has died; readers wait for it, and who wants a permit is refused.
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
		"permits":         {ofPermits(limitRecipe, 3), false, holdfast.WithLimit(3)},
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
			select {
			case r := <-node.answers:
				select {
				case lost := <-readers[1].lost:
					verdict.Fatalf(t, "too early: Node reports %+v, after the reader that lives reported %+v", r, lost)
				case <-time.After(promptly):
					t.Fatalf("too early: Node reports %+v", r)
				}
			case r := <-readers[1].answers:
				t.Fatalf("the reader that lives reports %+v", r)
			case <-time.After(fleetLease + fleetLease/2):
			}
			info, err := c.dial(t, target, "operator").Inspect(limited(t), "key")
			must(t, err)
			if len(info.Holders) == 0 || info.Limit == 0 && !info.Shared {
				t.Errorf("the key that is shared: %+v", info)
			}
			readers[1].kill()
			token := node.says(fleetAcquired).Token
			if token <= last {
				t.Errorf("Node has token %d after %d", token, last)
			}
			client := c.dial(t, target, "go")
			if test.recipe != sharedRecipe {
				if _, err := client.TryAcquire(limited(t), "key", test.option); !errors.Is(err, holdfast.ErrHeld) {
					t.Errorf("a permit of what Node holds: %v, want ErrHeld", err)
				}
				node.release()
			}
			waiting := acquiring(limited(t), client, "key", test.option)
			if test.recipe == sharedRecipe {
				silent(t, "a reader has what Node holds", waiting)
				node.release()
			}
			lock := granted(t, waiting)
			if uint64(lock.Token()) <= token {
				t.Errorf("a reader has token %d after Node's %d", lock.Token(), token)
			}
			release(t, lock)
		})
	}
}
