package integration_test

import (
	"errors"
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

// longLease is a lease that does not end within a test.
const longLease = time.Minute

// dynamo is a test's own table, and the connection of its clients.
type dynamo struct {
	target *dynamoserver.Target
	server *dynamodb.Client
	net    *faulthttp.Transport
	table  string
}

func newDynamo(t *testing.T, keys ...dynamoserver.Key) *dynamo {
	t.Helper()
	target := dynamoserver.Find(t)
	net := faulthttp.New(target.Transport())
	t.Cleanup(net.Close)
	server := target.Client(func(o *dynamodb.Options) { o.HTTPClient = net.Client() })
	return &dynamo{target, server, net, target.Table(t, keys...)}
}

// client returns a client of the table, which is closed when the test ends.
func (d *dynamo) client(t *testing.T, change ...func(*dynamolock.Options)) *dynamolock.Client {
	t.Helper()
	o := &dynamolock.Options{Table: d.table, Lease: longLease, Poll: 100 * time.Millisecond}
	for _, f := range change {
		f(o)
	}
	client, err := dynamolock.New(limited(t), d.server, o)
	must(t, err)
	t.Cleanup(func() { finish(t, client) })
	return client
}

// quickBeats makes the heartbeats of a long lease frequent.
func quickBeats(o *dynamolock.Options) { o.Heartbeat = time.Second / 2 }

// item reads the item of a key from the table; nil if there is none.
func (d *dynamo) item(t *testing.T, key string) attributeMap {
	t.Helper()
	out, err := d.server.GetItem(limited(t), &dynamodb.GetItemInput{
		TableName: &d.table, Key: attributeMap{dynamoserver.DefaultKey: text(key)}, ConsistentRead: aws.Bool(true),
	})
	must(t, err)
	return out.Item
}

// renews waits until a lock's lease has been renewed.
func renews(t *testing.T, lock *holdfast.Lock) {
	t.Helper()
	until := lock.Deadline()
	eventually(t, "the lock is renewed", func() bool { return lock.Err() != nil || lock.Deadline().After(until) })
	must(t, lock.Err())
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

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
		client := d.client(t, func(o *dynamolock.Options) { o.Lease = dynamolock.MinLease })
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
