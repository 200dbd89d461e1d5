package integration_test

import (
	"encoding/json"
	"net/http"
	"strings"
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
