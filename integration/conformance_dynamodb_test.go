package integration_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/locktest"
)

// conformancePace is the lease of all clients of the suite on DynamoDB, and how many cases run at a time. moto serves one request at a
// time, in milliseconds of processor time each.
func conformancePace(target *dynamoserver.Target) (lease time.Duration, lanes int) {
	if target.Source() == dynamoserver.Moto {
		return 8 * time.Second, 3
	}
	return 6 * time.Second, conformanceLanes
}

// conformancePoll is long enough for dozens of waiters not to take up the processors.
const conformancePoll = 250 * time.Millisecond

// dynamodbEngine is a server given by its address, in a container, or a local process. A holder notices a break at its next heartbeat.
func dynamodbEngine(mode dynamolock.Mode) func(*testing.T) (locktest.Engine, string) {
	const soon = 20 * time.Second
	return func(t *testing.T) (locktest.Engine, string) {
		target := dynamoserver.Find(t)
		h := &dynamoHarness{target: target, server: target.Client(), table: target.Table(t), mode: mode}
		var lanes int
		h.lease, lanes = conformancePace(target)
		e := locktest.Engine{
			Start:   func(testing.TB) locktest.Harness { return h },
			Lanes:   lanes,
			Lease:   h.lease,
			Soon:    soon,
			Notice:  h.lease/4 + soon,
			Unknown: unknown[mode],
		}
		if mode == dynamolock.FailOpen {
			e.Heartbeats = locktest.PerLock
		}
		return e, string(target.Source())
	}
}

// dynamoHarness is a table that all cases share, as programs do. Each client has its own
// transport, and a clock that can be stopped and set.
type dynamoHarness struct {
	target *dynamoserver.Target
	server *dynamodb.Client
	table  string
	mode   dynamolock.Mode
	lease  time.Duration
}

func (h *dynamoHarness) NewClient(t testing.TB, o locktest.ClientOptions) *locktest.Client {
	t.Helper()
	tr := faulthttp.New(h.target.Transport())
	t.Cleanup(tr.Close)
	fake := &drivertest.Clock{}
	ddb := h.target.Client(func(o *dynamodb.Options) { o.HTTPClient = tr.Client() })
	c, err := dynamolock.New(clock.With(t.Context(), fake), ddb, &dynamolock.Options{
		Table:   h.table,
		Mode:    h.mode,
		Lease:   h.lease,
		Poll:    conformancePoll,
		Margin:  100 * time.Millisecond, // less than a late reply is late
		Owner:   o.Owner,
		OnEvent: o.OnEvent,
	})
	must(t, err)
	return &locktest.Client{
		API:  c.Client,
		Cut:  tr.Cut,
		Heal: func() { tr.SetRule(nil); tr.Heal() },
		// A stopped process runs no timers, reads nothing and writes nothing.
		Pause:  func() { fake.Pause(); tr.Cut() },
		Resume: func() { tr.Heal(); fake.Resume() },
		Jump:   fake.Jump,
		Stall:  tr.Stall,
		Lose:   func(next func() locktest.Fate) { tr.SetRule(fates(next, h.lease)) },
	}
}

// fates are the faults of requests.
func fates(next func() locktest.Fate, lease time.Duration) faulthttp.Rule {
	if next == nil {
		return nil
	}
	var mu sync.Mutex
	return func(faulthttp.Request) faulthttp.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch next() {
		case locktest.LostRequest:
			return faulthttp.LoseRequest(faulthttp.Silence)
		case locktest.LostReply:
			return faulthttp.LoseReply(faulthttp.Reset)
		case locktest.LateRequest:
			arrives := make(chan struct{})
			time.AfterFunc(lease/2, func() { close(arrives) })
			return faulthttp.LateUntil(arrives, faulthttp.EOF)
		case locktest.LateReply:
			return faulthttp.DelayReply(lease / 30) // heartbeats wait for 250 ms
		}
		return faulthttp.Pass
	}
}

// Residue is an item that is held under a live lease, by the clock of this machine. All
// clients share that clock unless the suite set theirs.
func (h *dynamoHarness) Residue(t testing.TB, key string) []string {
	t.Helper()
	out, err := h.server.GetItem(limited(t), &dynamodb.GetItemInput{
		TableName:      &h.table,
		Key:            attributeMap{dynamoserver.DefaultKey: &types.AttributeValueMemberS{Value: key}},
		ConsistentRead: aws.Bool(true),
	})
	must(t, err)
	const released = 1
	ms := wholeNumber(out.Item["leaseDurationMs"])
	if out.Item == nil || ms == released {
		return nil
	}
	if out.Item["leaseDurationMs"] == nil {
		return []string{fmt.Sprintf("an item that is held for ever: %v", out.Item)}
	}
	lease := time.Duration(ms) * time.Millisecond
	if time.Since(time.UnixMilli(wholeNumber(out.Item["lockAcquiredTimeUnixMs"]))) > lease {
		return nil
	}
	return []string{fmt.Sprintf("an item of lease %v: %v", lease, out.Item)}
}

// wholeNumber is the value of an attribute of type N, or 0.
func wholeNumber(v types.AttributeValue) int64 {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	whole, _ := strconv.ParseInt(n.Value, 10, 64)
	return whole
}

// unknown has the fields of Info that DynamoDB does not know.
var unknown = map[dynamolock.Mode][]string{
	dynamolock.FailOpen:         {"QueuedAt"},
	dynamolock.FailClosed:       {"QueuedAt", "Since", "Lease", "LastHeard"},
	dynamolock.FailClosedFenced: {"QueuedAt", "Lease", "LastHeard"},
}
