package dynamolock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// harness is one table of a fake, and the settings of its clients.
type harness struct {
	db      *dynamofake.DB
	options dynamolock.Options
}

const tableName = "locks"

func newHarness(t testing.TB, o *dynamolock.Options) *harness {
	t.Helper()
	h := &harness{db: dynamofake.New(), options: *o}
	h.db.Latency = 4 * time.Millisecond
	h.db.Lag = 100 * time.Millisecond
	h.options.Table = tableName
	if err := dynamolock.CreateTable(t.Context(), h.db.Client(), &h.options); err != nil {
		t.Fatal(err)
	}
	return h
}

// client is one client, its connection, and its clock if that is a fake.
type client struct {
	*dynamolock.Client
	conn   *dynamofake.Client
	clock  *drivertest.Clock
	closed bool // by the test itself
}

// Close marks the client as closed by the test, which has looked at the result.
func (c *client) Close(ctx context.Context) error {
	c.closed = true
	return c.Client.Close(ctx)
}

// client returns a client that is closed when the test ends.
func (h *harness) client(t testing.TB, change ...func(*dynamolock.Options)) *client {
	t.Helper()
	fake := &drivertest.Clock{}
	c := h.clientOn(t, fake, nil, change...)
	c.clock = fake
	return c
}

// clientOn is client on another clock and, unless wrap is nil, on what that makes of the connection.
func (h *harness) clientOn(
	t testing.TB, on driver.Clock, wrap func(*dynamofake.Client) dynamolock.API, change ...func(*dynamolock.Options),
) *client {
	t.Helper()
	c, o := &client{conn: h.db.Client()}, h.options
	for _, f := range change {
		f(&o)
	}
	var api dynamolock.API = c.conn
	if wrap != nil {
		api = wrap(c.conn)
	}
	var err error
	if c.Client, err = dynamolock.New(clock.With(t.Context(), on), api, &o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !c.closed {
			c.close(t)
		}
	})
	return c
}

func (h *harness) pair(t testing.TB) (a, b *client) { return h.client(t), h.client(t) }

func number(v types.AttributeValue) int64 {
	var n int64
	if v, ok := v.(*types.AttributeValueMemberN); ok {
		_, _ = fmt.Sscan(v.Value, &n)
	}
	return n
}
