package dynamolock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// TestLateAsk tests hazard D35: an ask that is repeated for want of a reply, or arrives late, is not told to a grant that
// came after the one asked for, although client and owner are the same.
func TestLateAsk(t *testing.T) {
	inEach(t, []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosed, dynamolock.FailClosedFenced}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		old := a.hold(t, "k")
		info, err := b.Inspect(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		sent := false
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			in, ok := op.Input.(*dynamodb.UpdateItemInput)
			if !ok || sent || !strings.Contains(*in.UpdateExpression, "holdfastAskedToken") {
				return dynamofake.Fault{}
			}
			sent = true
			return dynamofake.DeliverLate(lease/2, dynamofake.Reset())
		})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if err := b.Ask(ctx, info); !errors.Is(err, context.Canceled) {
			t.Errorf("Ask = %v", err)
		}
		mustRelease(t, old)
		lock := a.hold(t, "k")
		time.Sleep(2 * lease)
		if !sent || isClosed(old.Asked()) || isClosed(lock.Asked()) {
			t.Errorf("sent %v, asked %v and %v", sent, isClosed(old.Asked()), isClosed(lock.Asked()))
		}
		mustLive(t, lock)
	})
}

// TestAskedWhileDataIsSet tests hazard D35: a holder that has something to write all the time, so that no heartbeat is a
// mere read, hears of an ask too.
func TestAskedWhileDataIsSet(t *testing.T) {
	inEach(t, []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosed, dynamolock.FailClosedFenced}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := 0; ctx.Err() == nil; n++ {
				_ = lock.SetData(ctx, []byte{byte(n)})
				time.Sleep(a.Options().Heartbeat / 20)
			}
		}()
		time.Sleep(time.Second)
		info, err := b.Inspect(t.Context(), "k")
		if err == nil {
			err = b.Ask(t.Context(), info)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * a.Options().Heartbeat)
		if !isClosed(lock.Asked()) {
			t.Error("it has not been told")
		}
		cancel()
		<-done
		mustLive(t, lock)
	})
}

// What another program has left of an ask, or written in its place, is not told to the holder.
func TestAskedForeign(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		lock := a.hold(t, "k")
		for name, asked := range map[string]item{
			"of another grant": {"holdfastAskedToken": n("1")}, "text": {"holdfastAskedToken": s("x")},
			"none": {"holdfastAskedToken": n("0")}, "a fraction": {"holdfastAskedToken": n("0.5")},
		} {
			i := h.item("k")
			i["holdfastAskedToken"] = asked["holdfastAskedToken"]
			h.set("k", i)
			time.Sleep(lease)
			if isClosed(lock.Asked()) {
				t.Errorf("%s: asked", name)
			}
			mustLive(t, lock)
		}
		info, err := a.Inspect(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		for _, grant := range []string{"x", "leased:x:", "guid:B:!"} {
			info.Grant = grant
			if err := a.Ask(t.Context(), info); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("Ask of grant %q = %v", grant, err)
			}
		}
	})
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
