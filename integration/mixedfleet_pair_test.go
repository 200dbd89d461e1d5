package integration_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
)

// What one Go client and one Node process make of each other's items, step by
// step.

func startNode(t *testing.T, target *dynamoserver.Target, c fleetConfig) *peer {
	t.Helper()
	c.Name = "node"
	return c.peer(t, target, fleetNode, nil)
}

// readBy returns what an item is to Node.
func readBy(node *peer, key string) string {
	node.do("read", key)
	return node.says("read").Note
}

func tryAcquire(t *testing.T, client *dynamolock.Client, key string) *holdfast.Lock {
	t.Helper()
	lock, err := client.TryAcquire(limited(t), key)
	must(t, err)
	return lock
}

// A waiter in either language takes over from a crashed holder in the other, with the
// next token.
func TestMixedTakeover(t *testing.T) {
	start(t)
	target := dynamoserver.Find(t)
	for _, trust := range []bool{false, true} {
		c := newFleetConfig(t, target, dynamolock.FailOpen)
		c.Trust = trust
		name := map[bool]string{false: "watching", true: "trusting clocks"}[trust]
		t.Run("from Go, "+name, func(t *testing.T) {
			t.Parallel()
			holder := c
			holder.Name = "go"
			p := holder.peer(t, target, fleetGo, nil)
			token := p.acquire("from-go").Token
			patient := c
			patient.Retries = 10
			node := startNode(t, target, patient)
			node.do("acquire", "from-go")
			silent(t, "Node reports", node.answers)
			p.kill()
			if got := node.says(fleetAcquired).Token; got != token+1 {
				t.Errorf("token %d after %d", got, token)
			}
		})
		t.Run("from Node, "+name, func(t *testing.T) {
			t.Parallel()
			node := startNode(t, target, c)
			token := holdfast.Token(node.acquire("from-node").Token)
			waiting := acquiring(limited(t), c.dial(t, target, "go"), "from-node")
			silent(t, "Node reports", node.answers)
			node.kill()
			if lock := granted(t, waiting); lock.Token() != token+1 {
				t.Errorf("token %d after %d", lock.Token(), token)
			}
		})
	}
}

// To Node, an item written by Go looks like one by its own client, except for attributes
// that Node ignores.
func TestMixedItem(t *testing.T) {
	start(t)
	target := dynamoserver.Find(t)
	for mode, want := range map[dynamolock.Mode]string{
		dynamolock.FailOpen: "fencingToken: number, guid: Buffer 64, holdfastSinceUnixMs: number, id: string, " +
			"leaseDurationMs: number, lockAcquiredTimeUnixMs: number, owner: string",
		dynamolock.FailClosed: "guid: Buffer 64, id: string, owner: string",
	} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			c := newFleetConfig(t, target, mode)
			client := c.dial(t, target, "go")
			lock := tryAcquire(t, client, "key")
			if got := readBy(startNode(t, target, c), "key"); got != want {
				t.Errorf("to Node, the item has %s; want %s", got, want)
			}
			item := itemOf(t, target, &c, "key")
			values := map[string]string{"owner": "go"}
			if mode == dynamolock.FailOpen {
				values["fencingToken"], values["leaseDurationMs"] = lock.Token().String(), "5000"
			}
			for name, want := range values {
				if item[name] != want {
					t.Errorf("%s is %q, want %q", name, item[name], want)
				}
			}
			release(t, lock)
			released := ""
			if mode == dynamolock.FailOpen {
				released = "1"
			}
			if got := itemOf(t, target, &c, "key")["leaseDurationMs"]; got != released {
				t.Errorf("after the release, leaseDurationMs is %q, want %q", got, released)
			}
		})
	}
}

// itemOf returns the strings and numbers of an item.
func itemOf(t *testing.T, target *dynamoserver.Target, c *fleetConfig, key string) map[string]string {
	t.Helper()
	consistent := true
	out, err := target.Client().GetItem(limited(t), &dynamodb.GetItemInput{
		TableName:      &c.Table,
		Key:            map[string]types.AttributeValue{c.Partition: &types.AttributeValueMemberS{Value: key}},
		ConsistentRead: &consistent,
	})
	must(t, err)
	item := make(map[string]string)
	for name, v := range out.Item {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			item[name] = v.Value
		case *types.AttributeValueMemberN:
			item[name] = v.Value
		}
	}
	return item
}

// Each gets in one call what the other has released. It does not get what the other
// holds, and sees the holder.
func TestMixedHandover(t *testing.T) {
	start(t)
	target := dynamoserver.Find(t)
	sorted := []dynamoserver.Key{{Name: "tenant"}, {Name: "job"}}
	for name, test := range map[string]struct {
		mode dynamolock.Mode
		keys []dynamoserver.Key
		key  string
		id   string // the key, to Node
	}{
		"FailOpen":   {dynamolock.FailOpen, nil, "key", "key"},
		"FailClosed": {dynamolock.FailClosed, nil, "key", "key"},
		"sort key":   {dynamolock.FailOpen, sorted, "a/b", `{"tenant":"a","job":"b"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newFleetConfig(t, target, test.mode, test.keys...)
			c.Retries = 0
			node, client := startNode(t, target, c), c.dial(t, target, "go")
			step := holdfast.Token(1)
			if test.mode == dynamolock.FailClosed {
				step = 0
			}

			first := holdfast.Token(node.acquire(test.id).Token)
			var held *holdfast.HeldError
			if _, err := client.TryAcquire(limited(t), test.key); !errors.As(err, &held) || held.Holder.Owner != "node" {
				t.Errorf("TryAcquire of what Node holds returns %v", err)
			}
			node.release()
			lock := tryAcquire(t, client, test.key)
			if lock.Token() != first+step {
				t.Errorf("Go has token %d after %d", lock.Token(), first)
			}
			node.do("acquire", test.id)
			if r := node.says(peerFailed); r.Note != "FailedToAcquireLock" {
				t.Errorf("Node's attempt at what Go holds ends with %s", r.Note)
			}
			must(t, lock.Verify(limited(t)))
			release(t, lock)
			if token := holdfast.Token(node.acquire(test.id).Token); token != lock.Token()+step {
				t.Errorf("Node has token %d after %d", token, lock.Token())
			}
			node.release()
		})
	}
}

// Locks that Node holds can be inspected, listed and broken.
func TestMixedOperator(t *testing.T) {
	start(t)
	target := dynamoserver.Find(t)
	for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosed} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			c := newFleetConfig(t, target, mode)
			node, client := startNode(t, target, c), c.dial(t, target, "operator")
			token := holdfast.Token(node.acquire("key").Token)
			info, err := client.Inspect(limited(t), "key")
			must(t, err)
			lease := fleetLease
			if mode == dynamolock.FailClosed {
				lease = 0
			}
			if !info.Held || info.Key != "key" || info.Owner != "node" || info.Token != token || info.Lease != lease {
				t.Errorf("Inspect returns %+v", info)
			}
			var listed []string
			for info, err := range client.List(limited(t), "") {
				must(t, err)
				listed = append(listed, info.Key+" of "+info.Owner)
			}
			if !slices.Equal(listed, []string{"key of node"}) {
				t.Errorf("List returns %q", listed)
			}
			must(t, client.Break(limited(t), info))
			if mode == dynamolock.FailOpen {
				if r := receive(t, "Node loses its lock", node.lost); r.Note != "ConditionalCheckFailedException" {
					t.Errorf("Node has lost its lock by %s", r.Note)
				}
			} else {
				node.do("release")
				if r := node.says(peerFailed); r.Note != "FailedToReleaseLock" {
					t.Errorf("Node's release ends with %s", r.Note)
				}
			}
			lock := take(t, client, "key")
			if mode == dynamolock.FailOpen && lock.Token() != token+1 {
				t.Errorf("token %d after %d", lock.Token(), token)
			}
			release(t, lock)
		})
	}
}
