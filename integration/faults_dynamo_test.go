package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// The tests of recordlock inject many more faults, in the store in memory. These show that a real server and the SDK's own transport
// behave as that store does.

// D1, G2, G6, G10. The replies to a grant, a heartbeat and a release are lost. The next try recognises the item by the
// grant's guid; nobody waits for a lease to expire.
func TestDynamoReplyLost(t *testing.T) {
	t.Parallel()
	for name, seen := range map[string]error{"reset": faulthttp.Reset, "EOF": faulthttp.EOF, "silence": faulthttp.Silence} {
		t.Run(name, func(t *testing.T) {
			start(t)
			d := newDynamo(t)
			client, key := d.client(t, longLease, quickBeats), newKey(t)
			lose := func() func() faulthttp.Outcome {
				lost := client.net.Once("UpdateItem", faulthttp.LoseReply(seen))
				return func() faulthttp.Outcome {
					t.Helper()
					out := receive(t, "loss", lost)
					if out.Status != 200 {
						verdict.Fatalf(t, "the server has answered %d %s", out.Status, out.Reply)
					}
					return out
				}
			}
			began, lost := time.Now(), lose()
			lock := take(t, client, key)
			if took := time.Since(began); took > longLease/4 {
				verdict.Fatalf(t, "it took %v, the lease is %v", took, longLease)
			}
			var reply struct {
				Attributes struct{ FencingToken struct{ N string } }
			}
			must(t, json.Unmarshal(lost().Reply, &reply))
			if first := reply.Attributes.FencingToken.N; first != lock.Token().String() {
				t.Errorf("granted with token %s, then with %v", first, lock.Token())
			}

			before := d.item(t, key)["guid"]
			lose()()
			if reflect.DeepEqual(d.item(t, key)["guid"], before) {
				t.Error("the heartbeat whose reply was lost has changed nothing")
			}
			for range 2 {
				renews(t, lock)
			}

			released := make(chan struct{})
			client.net.SetRule(func(r faulthttp.Request) faulthttp.Fault {
				if _, _, release := sent(r); !release {
					return faulthttp.Pass
				}
				select {
				case <-released:
					return faulthttp.Pass
				default:
					close(released)
					return faulthttp.LoseReply(seen)
				}
			})
			release(t, lock)
			receive(t, "loss", released)
			d.isReleased(t, key)
		})
	}
}

// D3, G2. The heartbeats of one of many locks never get a reply. Each lock has its own heartbeats, which do not wait for
// those of others.
func TestDynamoSilentHeartbeat(t *testing.T) {
	start(t)
	d := newDynamo(t)
	client := d.client(t, longLease, quickBeats)
	prefix := newKey(t)
	var locks []*holdfast.Lock
	for i := range 20 {
		locks = append(locks, take(t, client, fmt.Sprintf("%s.%d", prefix, i)))
	}
	silent, others := locks[0], locks[1:]
	hit := make(chan struct{}, 1)
	client.net.SetRule(func(r faulthttp.Request) faulthttp.Fault {
		if key, _, _ := sent(r); key != silent.Key() {
			return faulthttp.Pass
		}
		select {
		case hit <- struct{}{}:
		default:
		}
		return faulthttp.LoseRequest(faulthttp.Silence)
	})
	receive(t, "the silent heartbeat", hit)
	was := make(map[*holdfast.Lock]time.Time)
	for _, lock := range locks {
		was[lock] = lock.Deadline()
	}
	for _, lock := range others {
		eventually(t, "the others are renewed", func() bool { return lock.Deadline().After(was[lock]) })
	}
	if err := silent.Err(); err != nil || !silent.Deadline().Equal(was[silent]) {
		t.Errorf("the silent lock: %v; its deadline has moved from %v to %v", err, was[silent], silent.Deadline())
	}
}

// D4, G2. Heartbeats fail for longer than the lease. The lock ends on its holder's own clock, at the deadline that the
// last success set, and before anyone else can get the key.
func TestDynamoHeartbeatsFail(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faulthttp.Fault{
		"500": faulthttp.ServerError(), "throttled": faulthttp.Throttled(), "denied": faulthttp.Denied(),
		"reset": faulthttp.LoseRequest(faulthttp.Reset), "silence": faulthttp.LoseRequest(faulthttp.Silence),
	} {
		t.Run(name, func(t *testing.T) {
			start(t)
			d := newDynamo(t)
			client, other, key := d.client(t, dynamolock.MinLease), d.client(t, dynamolock.MinLease), newKey(t)
			lock := take(t, client, key)
			var a audit
			a.granted(t, lock)
			next := a.waits(t, other, key)
			client.net.SetRule(faulthttp.All("UpdateItem", fault))
			var deadline time.Time
			eventually(t, "no more heartbeat succeeds", func() bool {
				before := deadline
				deadline = lock.Deadline()
				return client.net.Count("UpdateItem") >= 3 && deadline.Equal(before) || lock.Err() != nil
			})
			deadline = lock.Deadline()
			receive(t, "the lock ends", lock.Done())
			if early := time.Until(deadline); early > 0 {
				t.Errorf("it ended %v before its deadline", early)
			}
			if err := lock.Err(); !errors.Is(err, holdfast.ErrLeaseExpired) {
				t.Errorf("it ended with %v, want %v", err, holdfast.ErrLeaseExpired)
			}
			receive(t, "the other is granted the key", next)
		})
	}
}

// D22. A table that is missing, or has the wrong schema: the error names the table and the key or the call.
func TestDynamoWrongTable(t *testing.T) {
	start(t)
	says := func(t *testing.T, err error, words ...string) {
		t.Helper()
		if !errors.Is(err, dynamolock.ErrTable) {
			t.Errorf("error is %v, want it to match %v", err, dynamolock.ErrTable)
			return
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("error does not name %s: %v", word, err)
			}
		}
	}
	opens := func(t *testing.T, d *dynamo) error {
		_, err := dynamolock.New(limited(t), d.target.Client(), &dynamolock.Options{Table: d.table})
		return err
	}
	for name, keys := range map[string][]dynamoserver.Key{
		"key":  {{Name: "key"}},
		"id":   {{Name: "id", Type: types.ScalarAttributeTypeN}},
		"sort": {{Name: "id"}, {Name: "sort"}},
	} {
		d := newDynamo(t, keys...)
		says(t, opens(t, d), d.table, `"`+name+`"`)
	}
	missing := &dynamo{target: dynamoserver.Find(t), table: "holdfast-test-never-created"}
	says(t, opens(t, missing), missing.table, "DescribeTable")
	t.Run("deleted later", func(t *testing.T) {
		d := newDynamo(t)
		client := d.client(t, dynamolock.MinLease)
		lock := take(t, client, newKey(t))
		_, err := d.server.DeleteTable(limited(t), &dynamodb.DeleteTableInput{TableName: &d.table})
		must(t, err)
		eventually(t, "the table is gone", func() bool {
			_, err = client.Acquire(limited(t), newKey(t))
			return errors.Is(err, dynamolock.ErrTable)
		})
		says(t, err, d.table, "UpdateItem")
		_, err = client.Inspect(limited(t), newKey(t))
		says(t, err, d.table, "GetItem")
		for _, err := range client.List(limited(t), "") {
			says(t, err, d.table, "Scan")
		}
		receive(t, "the lock ends", lock.Done())
	})
}

// D22. The endpoint refuses connections. A request that never had a connection leaves nothing to undo.
func TestDynamoRefusedLeavesNothing(t *testing.T) {
	start(t)
	d := newDynamo(t)
	var refuse atomic.Bool
	var dials atomic.Int64
	transport := d.target.Transport().Clone()
	transport.DisableKeepAlives = true
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		if refuse.Load() {
			address = "127.0.0.1:1" // nobody listens there
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	client := d.clientBy(t, transport, longLease, func(o *dynamolock.Options) {
		o.Mode = dynamolock.FailClosed
		o.Timeout = 10 * time.Second // a ctx that ends before the dial leaves the outcome in doubt
	})
	prefix := newKey(t)
	refuse.Store(true)
	base, before := goroutineCount(t.Name()), dials.Load()
	const calls = 200
	for i := range calls { // of a key each: calls for one key that fails wait for each other
		_, err := client.TryAcquire(limited(t), fmt.Sprintf("%s.%d", prefix, i), holdfast.WithRetry(holdfast.Retry{Attempts: 1}))
		if !errors.Is(err, holdfast.ErrDisconnected) {
			t.Fatalf("error is %v, want it to match %v", err, holdfast.ErrDisconnected)
		}
	}
	// What is left of the calls ends soon; what would undo them goes on while the connections are refused.
	var more int
	for range 500 {
		if more = goroutineCount(t.Name()) - base; more <= 60 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if more > 60 {
		t.Errorf("%d more goroutines", more)
	}
	time.Sleep(2 * time.Second)
	if n := dials.Load() - before; n > calls+40 {
		t.Errorf("%d connections were tried for %d calls", n, calls)
	}
	refuse.Store(false)
	must(t, client.Close(limited(t))) // a FailClosed client that still had doubtful grants would say so
}
