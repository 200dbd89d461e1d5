package dynamolock_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
	"github.com/holdfast-go/holdfast/internal/logtest"
)

// TestLogs checks the records that only this engine logs; memlock tests those that all engines share.
func TestLogs(t *testing.T) {
	const secret = "SECRET"
	logs := &logtest.Recorder{}
	bubble(t, dynamolock.Options{Logger: logs.Logger()}, func(t *testing.T, h *harness) {
		a := h.client(t)
		lock := a.hold(t, "k", holdfast.WithData([]byte(secret)))
		a.conn.SetFault(on(beat, 1, dynamofake.Drop()))
		time.Sleep(lease)
		mustLive(t, lock)

		a.conn.SetFault(always(dynamofake.Fail(dynamofake.ServerError())))
		time.Sleep(lease / 2)
		a.conn.SetFault(nil)
		time.Sleep(lease)

		// The reply to an acquisition is lost, and then the right to undo it.
		a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			switch purposeOf(op) {
			case acquire:
				return dynamofake.LoseReply(nil)
			case release:
				return dynamofake.Fail(dynamofake.Denied())
			}
			return dynamofake.Fault{}
		})
		if _, err := a.TryAcquire(t.Context(), "unanswered", once); err == nil {
			t.Fatal("granted without an answer")
		}
		time.Sleep(time.Second)
		a.conn.SetFault(nil)
	})
	logs.Check(
		t, []string{secret},
		logtest.Want{Text: "connected", Level: slog.LevelInfo},
		logtest.Want{Text: "disconnected", Level: slog.LevelWarn},
		logtest.Want{Text: "heartbeat failed", Level: slog.LevelDebug, Attrs: "key owner token error"},
		logtest.Want{
			Text: "an orphaned grant cannot be removed", Level: slog.LevelError, Attrs: "key error",
		},
	)
}

// replicated is a table that has replicas.
type replicated struct{ dynamolock.API }

func (r replicated) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	out, err := r.API.DescribeTable(ctx, in, opts...)
	if err == nil {
		out.Table.Replicas = []types.ReplicaDescription{{RegionName: aws.String("eu-west-1")}}
	}
	return out, err
}

// A global table does not exclude: whoever opens one is warned.
func TestGlobalTable(t *testing.T) {
	const text = "a global table: locks that are taken in one region do not exclude in another"
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		for name, api := range map[string]dynamolock.API{"one region": h.client(t).conn, "two": replicated{h.client(t).conn}} {
			var logs logtest.Recorder
			client, err := dynamolock.New(t.Context(), api, &dynamolock.Options{Table: tableName, Logger: logs.Logger()})
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if got := logs.Has(text); got != (name == "two") {
				t.Errorf("%s: a warning: %v", name, got)
			}
			logs.Check(t, nil)
		}
	})
}

// calls is a log handler that calls the client.
type calls struct {
	slog.Handler
	text string
	call func()
}

func (c calls) Enabled(context.Context, slog.Level) bool { return true }

func (c calls) Handle(_ context.Context, r slog.Record) error {
	if r.Message == c.text {
		c.call()
	}
	return nil
}

// R14. A log handler is called with nothing locked: it may call the client, and one that is slow keeps nobody from a lock.
func TestLogHandlerCallsTheClient(t *testing.T) {
	const unknown, refused = "Time to Live is not known", "an orphaned grant cannot be removed"
	for _, text := range []string{unknown, refused} {
		t.Run(text, func(t *testing.T) { // in real time: who waits for a mutex stops that of a bubble
			h := newHarness(t, &dynamolock.Options{Mode: dynamolock.FailClosed})
			called := make(chan error, 1)
			var c *client
			h.options.Logger = slog.New(calls{text: text, call: sync.OnceFunc(func() {
				c.conn.SetFault(nil)
				_, err := c.TryAcquire(context.Background(), "other")
				called <- err
			})})
			clock := &ahead{}
			c = h.clientOn(t, clock, nil)
			c.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
				switch {
				case text == unknown && op.Name == "DescribeTimeToLive":
					return dynamofake.Drop()
				case text == refused && purposeOf(op) == release:
					return dynamofake.Fail(dynamofake.Denied())
				}
				return dynamofake.Fault{}
			})
			clock.by.Store(int64(time.Hour)) // Time to Live is looked at again
			lock := c.hold(t, "k")
			if text == refused {
				_ = lock.Release(t.Context())
			}
			select {
			case err := <-called:
				if err != nil {
					t.Errorf("TryAcquire in the handler: %v", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("TryAcquire in the handler has not returned within a minute")
			}
		})
	}
}

// ahead is a clock that can be put forward by both of its times.
type ahead struct {
	drivertest.Clock
	by atomic.Int64
}

func (a *ahead) Now() driver.Instant { return a.Clock.Now().Add(time.Duration(a.by.Load())) }
