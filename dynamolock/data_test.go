package dynamolock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/dynamolock"
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

// TestDataThatIsThrottled tests hazard D32: the table has no capacity for the data, but for heartbeats. The lock lives on,
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

// If the request or the reply of a SetData is lost, it is repeated, and the lock lives on.
func TestDataReplyLost(t *testing.T) {
	inEachLoss(t, allModes, func(t *testing.T, h *harness, fault dynamofake.Fault) {
		a := h.client(t)
		lock := a.hold(t, "k")
		a.conn.SetFault(onData("new", 2, fault))
		mustSet(t, lock, "new")
		if got := dataOf(h.item("k")); got != "new" {
			t.Errorf("confirmed, and the data is %q", got)
		}
		time.Sleep(2 * lease)
		mustVerify(t, lock)
		mustRelease(t, lock)
	})
}

// single is an API that notes requests for one key that are under way at the same time.
type single struct {
	dynamolock.API
	t     *testing.T
	under atomic.Int64
}

func (s *single) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if s.under.Add(1) > 1 {
		s.t.Error("two writes of one lock at the same time")
	}
	defer s.under.Add(-1)
	return s.API.UpdateItem(ctx, in, opts...)
}

// SetData and heartbeats are one row of writes: none makes another fail, however they meet.
func TestDataOvertakesNothing(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		h.db.Latency = 700 * time.Millisecond
		var mu sync.Mutex
		var failed []error
		h.options.OnEvent = func(e holdfast.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == holdfast.Heartbeat && e.Err != nil {
				failed = append(failed, e.Err)
			}
		}
		a := h.clientOn(t, &drivertest.Clock{}, func(conn *dynamofake.Client) dynamolock.API {
			return &single{API: conn, t: t}
		})
		lock := a.hold(t, "k")
		var calls sync.WaitGroup
		for i := range 60 {
			calls.Go(func() { mustSet(t, lock, fmt.Sprint(i)) })
			time.Sleep(300 * time.Millisecond)
		}
		calls.Wait()
		if got := dataOf(h.item("k")); got != "59" {
			t.Errorf("the data is %q, want that of the last call", got)
		}
		time.Sleep(lease)
		mustVerify(t, lock)
		mustRelease(t, lock)
		mu.Lock()
		defer mu.Unlock()
		if len(failed) > 0 {
			t.Errorf("%d heartbeats failed: %v", len(failed), failed[0])
		}
	})
}

// A SetData renews the lease, and heartbeats keep their rhythm. One that the table refuses costs nothing else.
func TestDataAndHeartbeats(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		h.db.Latency = 0
		a := h.client(t)
		lock := a.hold(t, "k")
		time.Sleep(lease / 8)
		before := lock.Deadline()
		a.conn.ResetCounts()
		mustSet(t, lock, "new")
		if d := lock.Deadline().Sub(before); d <= 0 {
			t.Errorf("the Deadline moved by %v", d)
		}
		for range 11 {
			time.Sleep(lease / 4)
			mustSet(t, lock, strings.Repeat("x", 100))
		}
		time.Sleep(lease / 4)
		if calls := a.conn.Calls()["UpdateItem"]; calls != 12+12 {
			t.Errorf("%d writes of 12 calls and 12 heartbeats", calls)
		}
		a.conn.SetFault(onData("bad", 1, dynamofake.Fail(dynamofake.Denied())))
		if err := lock.SetData(within(t, lease), []byte("bad")); !errors.Is(err, holdfast.ErrDenied) {
			t.Errorf("denied: %v", err)
		}
		time.Sleep(2 * lease)
		mustVerify(t, lock)
		if got := dataOf(h.item("k")); got != strings.Repeat("x", 100) {
			t.Errorf("the data is %q", got)
		}
	})
}

// An outage ends a SetData with its ctx, and one that is called in it is carried out soon after.
func TestDataInAnOutage(t *testing.T) {
	inEach(t, allModes, func(t *testing.T, h *harness) {
		a := h.client(t)
		lock := a.hold(t, "k")
		a.conn.SetFault(always(dynamofake.Drop()))
		var err error
		if d := took(func() { err = lock.SetData(within(t, time.Second), []byte("1")) }); d != time.Second {
			t.Errorf("it took %v", d)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, holdfast.ErrDisconnected) {
			t.Error(err)
		}
		done := make(chan error, 1)
		go func() { done <- lock.SetData(t.Context(), []byte("2")) }()
		time.Sleep(2 * time.Second)
		a.conn.SetFault(nil)
		if d := took(func() { err = <-done }); d > a.Options().Heartbeat || err != nil {
			t.Errorf("after %v: %v", d, err)
		}
		if got := dataOf(h.item("k")); got != "2" {
			t.Errorf("the data is %q", got)
		}
		mustVerify(t, lock)
	})
}

// A SetData changes the guid, and nobody takes that for another grant.
func TestBreakAfterSetData(t *testing.T) {
	inEach(t, allModes, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k")
		before, err := b.Inspect(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		guid := guidOf(h.item("k"))
		mustSet(t, lock, "new")
		if guidOf(h.item("k")) == guid {
			t.Error("the guid is the same: a late request could not be told from a later one")
		}
		after, err := b.Inspect(t.Context(), "k")
		if err != nil || after.Grant != before.Grant || string(after.Data) != "new" {
			t.Errorf("%+v, %v; want the grant %s", after, err, before.Grant)
		}
		if err := b.Break(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		if err := lock.SetData(t.Context(), []byte("too late")); !errors.Is(err, holdfast.ErrBroken) {
			t.Errorf("SetData of a broken lock: %v", err)
		}
		if !errors.Is(lock.Err(), holdfast.ErrBroken) {
			t.Error(lock.Err())
		}
		next := b.hold(t, "k", holdfast.WithData([]byte("next")))
		time.Sleep(2 * lease)
		mustVerify(t, next)
		if err := b.Break(t.Context(), before); !errors.Is(err, holdfast.ErrChanged) {
			t.Errorf("of another grant by now: %v", err)
		}
	})
}
