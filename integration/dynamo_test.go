package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// longLease is too long to help: what waits for its end takes longer than the test.
const longLease = time.Minute

// dynamo is a test's own table, and a connection to it without faults.
type dynamo struct {
	target *dynamoserver.Target
	server *dynamodb.Client
	table  string
}

func newDynamo(t *testing.T, keys ...dynamoserver.Key) *dynamo {
	t.Helper()
	target := dynamoserver.Find(t)
	return &dynamo{target: target, server: target.Client(), table: target.Table(t, keys...)}
}

// dynamoClient is a client with its own transport.
type dynamoClient struct {
	*dynamolock.Client
	net *faulthttp.Transport
}

func (d *dynamo) client(t *testing.T, lease time.Duration, change ...func(*dynamolock.Options)) *dynamoClient {
	t.Helper()
	return d.clientBy(t, d.target.Transport(), lease, change...)
}

// clientBy is client over a transport of the caller's.
func (d *dynamo) clientBy(t *testing.T, base http.RoundTripper, lease time.Duration, change ...func(*dynamolock.Options)) *dynamoClient {
	t.Helper()
	c := &dynamoClient{net: faulthttp.New(base)}
	t.Cleanup(c.net.Close)
	o := &dynamolock.Options{
		Table:   d.table,
		Lease:   lease,
		Poll:    100 * time.Millisecond,
		Timeout: min(lease/6, 2*time.Second), // of a request whose reply is lost
	}
	for _, f := range change {
		f(o)
	}
	ddb := d.target.Client(func(o *dynamodb.Options) { o.HTTPClient = c.net.Client() })
	var err error
	c.Client, err = dynamolock.New(limited(t), ddb, o)
	must(t, err)
	t.Cleanup(func() {
		c.net.SetRule(nil)
		finish(t, c)
	})
	return c
}

// quickBeats makes the heartbeats of a long lease frequent.
func quickBeats(o *dynamolock.Options) { o.Heartbeat = time.Second / 2 }

// sent describes an UpdateItem of a client with leases: its key, and what it is for.
func sent(r faulthttp.Request) (key string, grant, release bool) {
	var in struct {
		Key              map[string]struct{ S string }
		UpdateExpression string
	}
	_ = json.Unmarshal(r.Body, &in)
	grant = strings.Contains(in.UpdateExpression, "if_not_exists")
	return in.Key[dynamoserver.DefaultKey].S, grant, !grant && !strings.Contains(in.UpdateExpression, "#guid = ")
}

// item reads the item of a key from the table; nil if there is none.
func (d *dynamo) item(t *testing.T, key string) attributeMap {
	t.Helper()
	out, err := d.server.GetItem(limited(t), &dynamodb.GetItemInput{
		TableName: &d.table, Key: attributeMap{dynamoserver.DefaultKey: text(key)}, ConsistentRead: aws.Bool(true),
	})
	must(t, err)
	return out.Item
}

// isReleased fails the test unless the table shows the key as released.
func (d *dynamo) isReleased(t *testing.T, key string) {
	t.Helper()
	if item := d.item(t, key); wholeNumber(item["leaseDurationMs"]) != 1 {
		t.Errorf("the item of %q is held: %v", key, item)
	}
}

// renews waits until a lock's lease has been renewed.
func renews(t *testing.T, lock *holdfast.Lock) {
	t.Helper()
	until := lock.Deadline()
	eventually(t, "the lock is renewed", func() bool { return lock.Err() != nil || lock.Deadline().After(until) })
	must(t, lock.Err())
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// The tests of recordlock inject many more faults, on the store in memory. These show that a real server and the SDK's own
// transport behave in the same way.

// D1, D6, G2, G6, G10, G16. The replies to a grant, a heartbeat, writes of data and a release are lost, and a write of data
// arrives after a later one. The next try recognises the item by the grant's guid; no call waits for a lease to expire.
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

			calm, late := d.client(t, longLease), make(chan struct{}) // no heartbeat comes in between
			data := take(t, calm, newKey(t))
			arrived := calm.net.Once("UpdateItem", faulthttp.LateUntil(late, seen))
			must(t, data.SetData(limited(t), []byte("old")))
			calm.net.Once("UpdateItem", faulthttp.LoseReply(seen))
			must(t, data.SetData(limited(t), []byte("new")))
			close(late)
			receive(t, "the late answer", arrived)
			if info, err := client.Inspect(limited(t), data.Key()); err != nil || string(info.Data) != "new" {
				t.Errorf("the data is %q, %v", info.Data, err)
			}
			release(t, data)

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
