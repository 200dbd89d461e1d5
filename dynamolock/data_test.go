package dynamolock_test

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

func mustSet(t testing.TB, lock *holdfast.Lock, data string) {
	t.Helper()
	if err := lock.SetData(t.Context(), []byte(data)); err != nil {
		t.Errorf("SetData: %v", err)
	}
}

func dataOf(i item) string {
	if v, ok := i["holdfastData"].(*types.AttributeValueMemberB); ok {
		return string(v.Value)
	}
	return ""
}

// onData injects a fault into the first requests that write some data.
func onData(data string, times int, fault dynamofake.Fault) func(dynamofake.Op) dynamofake.Fault {
	var sent atomic.Int64
	return func(op dynamofake.Op) dynamofake.Fault {
		in, ok := op.Input.(*dynamodb.UpdateItemInput)
		if !ok || purposeOf(op) != beat {
			return dynamofake.Fault{}
		}
		for _, v := range in.ExpressionAttributeValues {
			if b, ok := v.(*types.AttributeValueMemberB); ok && string(b.Value) == data && sent.Add(1) <= int64(times) {
				return fault
			}
		}
		return dynamofake.Fault{}
	}
}

// TestDataThatIsThrottled: the table has no capacity for the data, but for heartbeats. The lock lives on,
// and its holder hears of a break.
func TestDataThatIsThrottled(t *testing.T) {
	inEach(t, allModes, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k")
		a.conn.SetFault(onData("big", math.MaxInt, dynamofake.Fail(dynamofake.Throttled())))
		set := make(chan error, 1)
		began := time.Now()
		go func() { set <- lock.SetData(t.Context(), []byte("big")) }()
		a.conn.ResetCounts()
		time.Sleep(5 * lease)
		mustLive(t, lock)
		if n, most := a.requests(), 20*int(time.Since(began)/a.Options().Heartbeat); n > most {
			t.Errorf("%d requests, at most %d expected", n, most)
		}
		info, err := b.Inspect(t.Context(), "k")
		if err == nil {
			err = b.Break(t.Context(), info)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * a.Options().Heartbeat)
		if err := lock.Err(); !errors.Is(err, holdfast.ErrBroken) {
			t.Errorf("after a break: %v", err)
		}
		if err := <-set; !errors.Is(err, holdfast.ErrBroken) {
			t.Errorf("SetData: %v", err)
		}
		a.conn.SetFault(nil)
	})
}

// A request of SetData arrives late. It changes nothing once a later one, a heartbeat or the release was there.
func TestLateData(t *testing.T) {
	const late = 2 * time.Second
	for name, use := range map[string]func(t *testing.T, a, b *client, lock *holdfast.Lock) (want string){
		"repeated, then a later call": func(t *testing.T, _, _ *client, lock *holdfast.Lock) string {
			mustSet(t, lock, "old")
			mustSet(t, lock, "new")
			return "new"
		},
		"given up, then a later call": func(t *testing.T, _, _ *client, lock *holdfast.Lock) string {
			if err := lock.SetData(within(t, time.Millisecond), []byte("old")); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("given up: %v", err)
			}
			mustSet(t, lock, "new")
			return "new"
		},
		"given up, and a later call removed it": func(t *testing.T, _, _ *client, lock *holdfast.Lock) string {
			_ = lock.SetData(within(t, time.Millisecond), []byte("old"))
			mustSet(t, lock, "")
			return ""
		},
		"released, the next holder": func(t *testing.T, _, b *client, lock *holdfast.Lock) string {
			_ = lock.SetData(within(t, time.Millisecond), []byte("old"))
			mustRelease(t, lock)
			b.hold(t, "k", holdfast.WithData([]byte("next")))
			return "next"
		},
		"released, the same client again": func(t *testing.T, a, _ *client, lock *holdfast.Lock) string {
			_ = lock.SetData(within(t, time.Millisecond), []byte("old"))
			mustRelease(t, lock)
			a.hold(t, "k")
			return ""
		},
		"broken, the next holder": func(t *testing.T, _, b *client, lock *holdfast.Lock) string {
			_ = lock.SetData(within(t, time.Millisecond), []byte("old"))
			b.breakIt(t, "k", true)
			b.hold(t, "k", holdfast.WithData([]byte("next")))
			return "next"
		},
	} {
		t.Run(name, func(t *testing.T) {
			inEach(t, allModes, func(t *testing.T, h *harness) {
				a, b := h.pair(t)
				lock := a.hold(t, "k")
				a.conn.SetFault(onData("old", 1, dynamofake.DeliverLate(late, dynamofake.Reset())))
				want := use(t, a, b, lock)
				if got := dataOf(h.item("k")); got != want {
					t.Errorf("at first %q, want %q", got, want)
				}
				time.Sleep(2 * late)
				if got := dataOf(h.item("k")); got != want {
					t.Errorf("later %q, want %q", got, want)
				}
			})
		})
	}
}
