package dynamolock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// A request to share that a waiting writer refuses is no sign of a corrupt item: the reader, whose client has seen the
// writer, waits.
func TestReaderWritesDespiteAWriter(t *testing.T) {
	reclaim := []holdfast.Option{holdfast.WithOwner("me"), holdfast.WithReclaim()}
	type reader struct {
		opts   []holdfast.Option
		unsure bool // its first requests get no answer
		dead   bool // who has the key has died by then
	}
	forEach(t, map[string]reader{
		"reclaims, joins":        {opts: reclaim},
		"reclaims from the dead": {opts: reclaim, dead: true},
		"is not sure, and joins": {unsure: true},
	}, func(t *testing.T, h *harness, c reader) {
		a, b, w := h.client(t), h.client(t), h.client(t)
		a.hold(t, "k", shared)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for range b.Observe(ctx, "k") {
			}
		}()
		answered := time.Now()
		if c.unsure {
			answered = answered.Add(3 * dynamolock.DefaultPoll)
		}
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if in, ok := op.Input.(*dynamodb.UpdateItemInput); ok && isJoin(*in.UpdateExpression) && time.Now().Before(answered) {
				return dynamofake.Fail(dynamofake.Reset())
			}
			return dynamofake.Fault{}
		})
		time.Sleep(10 * time.Millisecond)
		ended := make(chan error, 2)
		take := func(of *client, opts ...holdfast.Option) {
			lock, err := of.Acquire(ctx, "k", opts...)
			if err == nil {
				mustRelease(t, lock)
			}
			ended <- err
		}
		reads := append(c.opts, shared)
		if c.unsure {
			go take(b, reads...)
		}
		go take(w)
		time.Sleep(2*dynamolock.DefaultPoll + time.Millisecond) // the observer has seen that the writer waits
		if c.dead {
			a.conn.Cut()
			time.Sleep(lease - dynamolock.DefaultPoll/2)
		}
		if !c.unsure {
			go take(b, reads...)
		}
		time.Sleep(lease)
		cancel()
		for range 2 {
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		a.conn.Heal()
		time.Sleep(lease)
	})
}

// A writer gives up between the request to join that it refuses and the reader's look at the item. On a server that does not
// send along what was in the way, the reader sees that nothing has changed, and joins.
func TestWriterGivesUpBeforeTheReaderLooks(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b, w := h.client(t), h.client(t), h.client(t)
		a.hold(t, "k", shared)
		ctx, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		gone, refused := make(chan struct{}), false
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			in, ok := op.Input.(*dynamodb.UpdateItemInput)
			switch {
			case ok && isJoin(*in.UpdateExpression) && !refused:
				refused = true
				go func() {
					defer close(gone)
					if _, err := w.Acquire(ctx, "k"); !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				}()
				time.Sleep(2 * dynamolock.DefaultPoll) // the writer insists
				return dynamofake.LoseReply(&types.ConditionalCheckFailedException{})
			case refused && op.Name == "GetItem":
				giveUp()
				<-gone
				time.Sleep(time.Second) // it has withdrawn
			}
			return dynamofake.Fault{}
		})
		lock, err := b.TryAcquire(t.Context(), "k", shared)
		if err != nil {
			t.Fatal(err)
		}
		if !refused {
			t.Error("no writer was in the way")
		}
		mustRelease(t, lock)
	})
}
