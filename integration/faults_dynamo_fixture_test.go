package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
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
)

// Leases of the tests on DynamoDB: one that must expire, and one too long to help.
const (
	shortLease = 2 * time.Second
	longLease  = time.Minute
)

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
		Timeout: min(lease/6, time.Second/2),
	}
	for _, f := range change {
		f(o)
	}
	ddb := d.target.Client(func(o *dynamodb.Options) { o.HTTPClient = c.net.Client() })
	var err error
	if c.Client, err = dynamolock.New(limited(t), ddb, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.net.SetRule(nil)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

// quickBeats makes the heartbeats of a long lease frequent.
func quickBeats(o *dynamolock.Options) { o.Heartbeat = time.Second / 2 }

// take acquires a free key.
func (c *dynamoClient) take(t *testing.T, key string, opts ...holdfast.Option) *holdfast.Lock {
	t.Helper()
	lock, err := c.Acquire(limited(t), key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// taking calls Acquire in the background.
func (c *dynamoClient) taking(ctx context.Context, key string) <-chan outcome {
	got := make(chan outcome, 1)
	go func() {
		lock, err := c.Acquire(ctx, key)
		got <- outcome{lock, err}
	}()
	return got
}

// The purposes of a request of a client with leases.
const (
	aGrant   = "grant"
	aBeat    = "heartbeat"
	aRelease = "release"
)

// purpose returns one of these, or the name of the operation.
func purpose(r faulthttp.Request) string {
	if r.Op != "UpdateItem" {
		return r.Op
	}
	var in struct{ UpdateExpression string }
	_ = json.Unmarshal(r.Body, &in)
	switch {
	case strings.Contains(in.UpdateExpression, "if_not_exists"):
		return aGrant
	case strings.Contains(in.UpdateExpression, "#guid = "):
		return aBeat
	}
	return aRelease
}

// keyOf is the key of a request.
func keyOf(r faulthttp.Request) string {
	var in struct {
		Key map[string]struct{ S string }
	}
	_ = json.Unmarshal(r.Body, &in)
	return in.Key[dynamoserver.DefaultKey].S
}

// each injects faults into the requests for a purpose, one after the other; the last
// stays for good. The channel closes when the first has struck.
func (c *dynamoClient) each(what string, faults ...faulthttp.Fault) <-chan struct{} {
	met := make(chan struct{})
	var n atomic.Int32
	c.net.SetRule(func(r faulthttp.Request) faulthttp.Fault {
		if purpose(r) != what {
			return faulthttp.Pass
		}
		i := int(n.Add(1))
		if i == 1 {
			close(met)
		}
		return faults[min(i, len(faults))-1]
	})
	return met
}

// next injects a fault into the next request for a purpose.
func (c *dynamoClient) next(what string, f faulthttp.Fault) <-chan struct{} {
	return c.each(what, f, faulthttp.Pass)
}

func (d *dynamo) key(key string) attributeMap {
	return attributeMap{dynamoserver.DefaultKey: &types.AttributeValueMemberS{Value: key}}
}

// item reads the item of a key from the table; nil if there is none.
func (d *dynamo) item(t *testing.T, key string) attributeMap {
	t.Helper()
	out, err := d.server.GetItem(limited(t), &dynamodb.GetItemInput{
		TableName: &d.table, Key: d.key(key), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// put writes an item, ignoring all locks.
func (d *dynamo) put(t *testing.T, key string, attributes attributeMap) {
	t.Helper()
	item := d.key(key)
	maps.Copy(item, attributes)
	if _, err := d.server.PutItem(limited(t), &dynamodb.PutItemInput{TableName: &d.table, Item: item}); err != nil {
		t.Fatal(err)
	}
}

func (d *dynamo) released(t *testing.T, key string) bool {
	t.Helper()
	return wholeNumber(d.item(t, key)["leaseDurationMs"]) == 1
}

// isReleased fails the test unless the table shows the key as released.
func (d *dynamo) isReleased(t *testing.T, key string) {
	t.Helper()
	if !d.released(t, key) {
		t.Errorf("the item of %q is held: %v", key, wire(d.item(t, key)))
	}
}

// tokenOf is the fencing token in the table.
func (d *dynamo) tokenOf(t *testing.T, key string) holdfast.Token {
	t.Helper()
	return holdfast.Token(wholeNumber(d.item(t, key)["fencingToken"]))
}

// renews waits until a lock's lease has been renewed.
func renews(t *testing.T, lock *holdfast.Lock) {
	t.Helper()
	until := lock.Deadline()
	eventually(t, "the lock is renewed", func() bool { return lock.Err() != nil || lock.Deadline().After(until) })
	if err := lock.Err(); err != nil {
		t.Fatal(err)
	}
}

// says fails the test unless an error matches a sentinel, and its text names the
// table and the call.
func (d *dynamo) says(t *testing.T, err, want error, call string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want it to match %v", err, want)
		return
	}
	for _, name := range []string{d.table, call} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("error does not name %s: %v", name, err)
		}
	}
}
