package dynamolock_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
	"github.com/holdfast-go/holdfast/internal/logtest"
)

const lease, poll = dynamolock.DefaultLease, dynamolock.DefaultPoll

// once makes an acquisition send one try.
var once = holdfast.WithRetry(holdfast.Retry{Attempts: 1})

// bubble runs a test in virtual time, with its own table, beside other such tests.
func bubble(t *testing.T, o dynamolock.Options, run func(t *testing.T, h *harness)) {
	t.Helper()
	t.Parallel()
	alone(t, o, run)
}

// alone is a bubble without company: for what changes or measures the whole process, or
// has several bubbles.
func alone(t *testing.T, o dynamolock.Options, run func(t *testing.T, h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { run(t, newHarness(t, &o)) })
}

var (
	closedModes = []dynamolock.Mode{dynamolock.FailClosed, dynamolock.FailClosedFenced}
	allModes    = append([]dynamolock.Mode{dynamolock.FailOpen}, closedModes...)
)

// forEach runs a test in virtual time for each of some cases.
func forEach[C any](t *testing.T, cases map[string]C, run func(t *testing.T, h *harness, c C)) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) { run(t, h, c) })
		})
	}
}

// inEach runs a test in virtual time in each of some modes.
func inEach(t *testing.T, modes []dynamolock.Mode, run func(t *testing.T, h *harness)) {
	t.Helper()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) { bubble(t, dynamolock.Options{Mode: mode}, run) })
	}
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

// requests is how many requests the client has sent since its counts were reset.
func (c *client) requests() (sum int) {
	for _, n := range c.conn.Calls() {
		sum += n
	}
	return sum
}

// log records what later clients of the harness log.
func (h *harness) log() *logtest.Recorder {
	logs := &logtest.Recorder{}
	h.options.Logger = logs.Logger()
	return logs
}

func mustRelease(t testing.TB, lock *holdfast.Lock) {
	t.Helper()
	if err := lock.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

func mustVerify(t testing.TB, lock *holdfast.Lock) {
	t.Helper()
	if err := lock.Verify(t.Context()); err != nil {
		t.Errorf("Verify: %v", err)
	}
}

func mustLive(t testing.TB, lock *holdfast.Lock) {
	t.Helper()
	if err := lock.Err(); err != nil {
		t.Errorf("%q: %v", lock.Key(), err)
	}
}

// isFree insists that nobody holds a key: it has no item, or a released one.
func (h *harness) isFree(t testing.TB, key string) {
	t.Helper()
	if i := h.item(key); i != nil && leaseOf(i) != 1 {
		t.Errorf("held, and nobody holds it: %v", i)
	}
}

// list collects the keys of a List, and its error.
func (c *client) list(t testing.TB, prefix string) (keys []string, failed error) {
	for info, err := range c.List(t.Context(), prefix) {
		if failed = err; err == nil {
			keys = append(keys, info.Key)
		}
	}
	return keys, failed
}

// breakIt breaks the lock on a key by BreakNow or by Break, and returns its Info.
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
	case strings.Contains(set, "#fencingToken = "), strings.Contains(set, "#owner"):
		return acquire
	case strings.Contains(set, "leaseDurationMs"):
		return release
	}
	return beat
}

// on injects a fault into the first requests with a purpose.
func on(want purpose, times int, fault dynamofake.Fault) func(dynamofake.Op) dynamofake.Fault {
	var sent atomic.Int64
	return func(op dynamofake.Op) dynamofake.Fault {
		if purposeOf(op) == want && sent.Add(1) <= int64(times) {
			return fault
		}
		return dynamofake.Fault{}
	}
}

// always injects a fault into every request.
func always(fault dynamofake.Fault) func(dynamofake.Op) dynamofake.Fault {
	return func(dynamofake.Op) dynamofake.Fault { return fault }
}

// within is a context that ends after d.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// took measures f, in virtual time.
func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}
