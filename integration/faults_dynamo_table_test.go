package integration_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
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
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
)

// open makes a client that is expected to fail.
func (d *dynamo) open(t *testing.T, tr *faulthttp.Transport, change ...func(*dynamodb.Options)) error {
	t.Helper()
	if tr == nil {
		tr = faulthttp.New(d.target.Transport())
		t.Cleanup(tr.Close)
	}
	ddb := d.target.Client(append(change, func(o *dynamodb.Options) { o.HTTPClient = tr.Client() })...)
	client, err := dynamolock.New(limited(t), ddb, &dynamolock.Options{Table: d.table, Lease: shortLease})
	if err == nil {
		_ = client.Close(limited(t))
		t.Fatal("New succeeds")
	}
	return err
}

// D11. A table that is missing, or has the wrong schema.
func TestDynamoWrongTable(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]dynamoserver.Key{
		"other name": {{Name: "key"}},
		"other type": {{Name: "id", Type: types.ScalarAttributeTypeN}},
		"sort key":   {{Name: "id"}, {Name: "sort"}},
	} {
		t.Run(name, func(t *testing.T) {
			start(t)
			d := newDynamo(t, keys...)
			err := d.open(t, nil)
			d.says(t, err, dynamolock.ErrTable, "")
			if last := keys[len(keys)-1]; !strings.Contains(err.Error(), `"`+last.Name+`"`) {
				t.Errorf("error does not name the key %q: %v", last.Name, err)
			}
		})
	}
	t.Run("missing", func(t *testing.T) {
		start(t)
		d := &dynamo{target: dynamoserver.Find(t), table: "holdfast-test-never-created"}
		d.says(t, d.open(t, nil), dynamolock.ErrTable, "DescribeTable")
	})
	t.Run("deleted later", func(t *testing.T) {
		start(t)
		d := newDynamo(t)
		client := d.client(t, shortLease)
		lock := client.take(t, newKey(t))
		if _, err := d.server.DeleteTable(limited(t), &dynamodb.DeleteTableInput{TableName: &d.table}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the table is gone", func() bool {
			_, err := client.Acquire(limited(t), newKey(t))
			return errors.Is(err, dynamolock.ErrTable)
		})
		_, err := client.Acquire(limited(t), newKey(t))
		d.says(t, err, dynamolock.ErrTable, "UpdateItem")
		_, err = client.Inspect(limited(t), newKey(t))
		d.says(t, err, dynamolock.ErrTable, "GetItem")
		for _, err := range client.List(limited(t), "") {
			d.says(t, err, dynamolock.ErrTable, "Scan")
		}
		receive(t, "the lock ends", lock.Done())
		if err := lock.Err(); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// D11. Credentials that are insufficient or missing.
func TestDynamoDenied(t *testing.T) {
	t.Parallel()
	t.Run("by the server", func(t *testing.T) {
		start(t)
		d := newDynamo(t)
		tr := faulthttp.New(d.target.Transport())
		t.Cleanup(tr.Close)
		tr.SetRule(faulthttp.All("DescribeTable", faulthttp.Denied()))
		d.says(t, d.open(t, tr), holdfast.ErrDenied, "DescribeTable")
	})
	t.Run("by the server later", func(t *testing.T) {
		start(t)
		d := newDynamo(t)
		client := d.client(t, longLease)
		key := newKey(t)
		lock := client.take(t, key)
		client.net.SetRule(faulthttp.All("", faulthttp.Denied()))
		_, err := client.Acquire(limited(t), newKey(t))
		d.says(t, err, holdfast.ErrDenied, "UpdateItem")
		_, err = client.Inspect(limited(t), key)
		d.says(t, err, holdfast.ErrDenied, "GetItem")
		if err := lock.Verify(limited(t)); !errors.Is(err, holdfast.ErrDenied) || errors.Is(err, holdfast.ErrLost) {
			t.Errorf("Verify: %v", err)
		}
		client.net.SetRule(nil)
		release(t, lock)
		d.isReleased(t, key)
	})
	for name, provider := range map[string]aws.CredentialsProvider{
		"no provider": nil,
		"anonymous":   aws.AnonymousCredentials{},
		"a provider that fails": aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("the vault is shut")
		}),
	} {
		t.Run(name, func(t *testing.T) {
			start(t)
			d := newDynamo(t)
			err := d.open(t, nil, func(o *dynamodb.Options) { o.Credentials = provider })
			d.says(t, err, holdfast.ErrDenied, "DescribeTable")
		})
	}
}

// D11. A server that throttles for longer than a lease.
func TestDynamoThrottled(t *testing.T) {
	start(t)
	d := newDynamo(t)
	client := d.client(t, dynamolock.MinLease)
	lock := client.take(t, newKey(t))
	client.net.SetRule(faulthttp.All("UpdateItem", faulthttp.Throttled()))
	_, err := client.Acquire(limited(t), newKey(t), holdfast.WithRetry(holdfast.Retry{Attempts: 2, Initial: time.Millisecond}))
	d.says(t, err, holdfast.ErrDisconnected, "UpdateItem")
	if !strings.Contains(err.Error(), "ProvisionedThroughputExceededException") {
		t.Errorf("error does not say why: %v", err)
	}
	receive(t, "the lock ends", lock.Done())
	if err := lock.Err(); !errors.Is(err, holdfast.ErrLeaseExpired) {
		t.Errorf("it ended with %v, want %v", err, holdfast.ErrLeaseExpired)
	}
}

// D11. The endpoint goes away during a hold, and comes back.
func TestDynamoEndpointGone(t *testing.T) {
	start(t)
	d := newDynamo(t)
	p, dialer := d.relay(t)
	client := d.clientBy(t, dialer, dynamolock.MinLease)
	events := client.Events()
	defer events.Close()
	receive(t, "Ready", events.Ready())
	lock := client.take(t, newKey(t))
	p.Cut() // connections are reset, and new ones refused
	receive(t, "Disconnected", events.Disconnected())
	_, err := client.Acquire(limited(t), newKey(t), holdfast.WithRetry(holdfast.Retry{Attempts: 1}))
	d.says(t, err, holdfast.ErrDisconnected, "UpdateItem")
	receive(t, "the lock ends", lock.Done())
	if err := lock.Err(); !errors.Is(err, holdfast.ErrLeaseExpired) {
		t.Errorf("it ended with %v, want %v", err, holdfast.ErrLeaseExpired)
	}
	if err := p.Heal(); err != nil {
		t.Fatal(err)
	}
	receive(t, "Ready", events.Ready())
	release(t, client.take(t, lock.Key()))
}

// relay returns a transport to the server through a proxy.
func (d *dynamo) relay(t *testing.T) (*faultproxy.Proxy, *http.Transport) {
	t.Helper()
	u, err := url.Parse(d.target.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	addr := u.Host
	if u.Port() == "" {
		addr = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	p, err := faultproxy.Start(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	tr := d.target.Transport()
	tr.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, p.Addr())
	}
	return p, tr
}
