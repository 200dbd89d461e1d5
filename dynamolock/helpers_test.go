package dynamolock_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

const lease = dynamolock.DefaultLease

// bubble runs a test in virtual time, with its own table.
func bubble(t *testing.T, o dynamolock.Options, run func(t *testing.T, h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { run(t, newHarness(t, &o)) })
}

// close closes a client and waits until it has ended.
func (c *client) close(t testing.TB) {
	t.Helper()
	if err := c.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func (c *client) hold(t testing.TB, key string, opts ...holdfast.Option) *holdfast.Lock {
	t.Helper()
	lock, err := c.Acquire(t.Context(), key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// breakIt breaks the lock on a key by BreakNow or by Break, which notifies the holder,
// and returns its Info.
func (c *client) breakIt(t testing.TB, key string, now bool) holdfast.Info {
	t.Helper()
	info, err := c.Inspect(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	breakGrant := c.Break
	if now {
		breakGrant = c.BreakNow
	}
	if err := breakGrant(t.Context(), info); err != nil {
		t.Fatal(err)
	}
	return info
}

type item = map[string]types.AttributeValue

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func n(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
func b(v string) types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte(v)} }

// item returns the item of a key.
func (h *harness) item(key string) item { return h.db.Item(tableName, item{"id": s(key)}) }

// set writes an item as another program would.
func (h *harness) set(key string, i item) {
	i["id"] = s(key)
	h.db.SetItem(tableName, i)
}

// npm is an item as the npm client's FailOpen writes it.
func npm(token, leaseMs, guid string) item {
	return item{"fencingToken": n(token), "leaseDurationMs": n(leaseMs), "owner": s("node"), "guid": b(strings.Repeat(guid, 64))}
}

func leaseOf(i item) int64 { return number(i["leaseDurationMs"]) }

func tokenOf(i item) holdfast.Token { return holdfast.Token(number(i["fencingToken"])) }

func guidOf(i item) string {
	if v, ok := i["guid"].(*types.AttributeValueMemberB); ok {
		return string(v.Value)
	}
	return ""
}

// A purpose is the purpose of a write of this package, known by what it sets.
type purpose string

const (
	acquire purpose = "acquire"
	beat    purpose = "heartbeat"
	release purpose = "release"
)

// purposeOf returns the purpose of a write; "" for other requests.
func purposeOf(op dynamofake.Op) purpose {
	if op.Name == "DeleteItem" {
		return release
	}
	in, ok := op.Input.(*dynamodb.UpdateItemInput)
	if !ok {
		return ""
	}
	switch set := *in.UpdateExpression; {
	case strings.Contains(set, "#owner"):
		return acquire
	case strings.Contains(set, "leaseDurationMs"):
		return release
	}
	return beat
}

// on injects a fault into the first requests with a purpose.
func on(want purpose, times int, fault dynamofake.Fault) func(dynamofake.Op) dynamofake.Fault {
	left := make(chan struct{}, times)
	for range times {
		left <- struct{}{}
	}
	return func(op dynamofake.Op) dynamofake.Fault {
		if purposeOf(op) != want {
			return dynamofake.Fault{}
		}
		select {
		case <-left:
			return fault
		default:
			return dynamofake.Fault{}
		}
	}
}

// took measures f, in virtual time.
func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

func isDone(lock *holdfast.Lock) bool {
	select {
	case <-lock.Done():
		return true
	default:
		return false
	}
}

// keyOf is the key of a request; "" for other requests.
func keyOf(op dynamofake.Op) string {
	var key item
	switch in := op.Input.(type) {
	case *dynamodb.UpdateItemInput:
		key = in.Key
	case *dynamodb.GetItemInput:
		key = in.Key
	case *dynamodb.DeleteItemInput:
		key = in.Key
	}
	if v, ok := key["id"].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}
