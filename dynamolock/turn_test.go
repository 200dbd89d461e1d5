package dynamolock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// turnAttribute is the attribute by which a client asks for a turn.
const turnAttribute = "holdfastIntent"

func asksForTurn(op dynamofake.Op) bool {
	in, ok := op.Input.(*dynamodb.UpdateItemInput)
	return ok && strings.Contains(*in.UpdateExpression, "SET #"+turnAttribute)
}

// TestShares tests hazard D55: of clients that want a key again and again, without a pause, none has it much more often than another,
// however long they hold it and however many workers they have.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		mode             dynamolock.Mode
		clients, workers int
		hold, pause      time.Duration
		opts             []holdfast.Option
	}{
		{clients: 2, workers: 3, hold: poll},
		{clients: 2, workers: 3, hold: poll * 3 / 2},
		{clients: 2, workers: 1, hold: poll},
		{clients: 2, workers: 1, hold: poll, pause: poll / 10},
		{clients: 2, workers: 1, hold: poll / 10}, // as long as reads lag behind
		{clients: 2, workers: 3, hold: poll / 10},
		{clients: 5, workers: 1, hold: poll},
		{clients: 5, workers: 2, hold: poll / 3},
		{clients: 2, workers: 1, hold: poll / 10, mode: dynamolock.FailClosed},
		{clients: 2, workers: 1, hold: poll / 3, mode: dynamolock.FailClosedFenced},
		{clients: 2, workers: 1, hold: poll, opts: []holdfast.Option{holdfast.WithLimit(1)}},
		{clients: 3, workers: 2, hold: poll / 3, opts: []holdfast.Option{holdfast.WithLimit(2)}},
	} {
		t.Run(fmt.Sprintf("%v, %d clients, %d workers, %v and %v, %d options", c.mode, c.clients, c.workers, c.hold, c.pause, len(c.opts)), func(t *testing.T) {
			bubble(t, dynamolock.Options{Mode: c.mode}, func(t *testing.T, h *harness) {
				var mu sync.Mutex
				shares := make([]int, c.clients)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				var workers sync.WaitGroup
				for k := range shares {
					client := h.client(t)
					for range c.workers {
						workers.Go(func() {
							for {
								lock, err := client.Acquire(ctx, "k", c.opts...)
								if err != nil {
									return
								}
								mu.Lock()
								shares[k]++
								mu.Unlock()
								time.Sleep(c.hold)
								mustRelease(t, lock)
								time.Sleep(c.pause)
							}
						})
					}
				}
				workers.Wait()
				least, most := slices.Min(shares), slices.Max(shares)
				t.Logf("%v: %.2f", shares, float64(least)/float64(most))
				if least < most/3 {
					t.Errorf("they have had the key %v times", shares)
				}
			})
		})
	}
}

// TestPace tests hazard D55: who waits sees the key free now and then, although a row of programs has it once per poll, in step, and
// none of them lives on to let others go first.
func TestPace(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		const keys = 10
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		var others, waiters sync.WaitGroup
		for k := range keys {
			key := fmt.Sprint(k)
			first := h.client(t).hold(t, key)
			waiters.Go(func() {
				if lock, err := h.client(t).Acquire(ctx, key); err != nil {
					t.Errorf("never granted: %v", err)
				} else {
					mustRelease(t, lock)
				}
			})
			others.Go(func() {
				began := time.Now()
				for lock := first; ctx.Err() == nil; began = began.Add(poll) {
					time.Sleep(time.Until(began.Add(poll * 7 / 10)))
					if lock != nil {
						mustRelease(t, lock)
					}
					time.Sleep(time.Until(began.Add(poll)))
					lock, _ = h.client(t).TryAcquire(ctx, key)
				}
			})
		}
		waiters.Wait()
		cancel()
		others.Wait()
	})
}

// Whoever waits for long, while nobody else wants the key, writes once.
func TestTurnIsAskedForOnce(t *testing.T) {
	inEach(t, allModes, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k")
		granted := b.waits(t, "k")
		time.Sleep(poll)
		b.conn.ResetCounts()
		time.Sleep(time.Hour)
		if n := b.conn.Calls()["UpdateItem"]; n != 1 {
			t.Errorf("%d writes", n)
		}
		mustRelease(t, lock)
		mustRelease(t, <-granted)
		if i := h.item("k"); i[turnAttribute] != nil {
			t.Error("the key was taken, and somebody asks for a turn")
		}
	})
}

// A holder whose client does not want the key again, or not before long, does not wait for others. One that does waits for two polls of
// whoever asked, for a lease at most, and not at all if it cannot wait for so long.
func TestGap(t *testing.T) {
	for name, c := range map[string]struct {
		turn   string
		before time.Duration
		opts   []holdfast.Option
		want   time.Duration
	}{
		"nobody asks":         {"", 0, nil, 0},
		"somebody has asked":  {"1000", 0, nil, 2 * time.Second},
		"who looks often":     {"10", 0, nil, 20 * time.Millisecond},
		"who looks seldom":    {"3600000", 0, nil, lease},
		"more than there is":  {"99999999999999999999", 0, nil, 0},
		"a very long time":    {"18446744073709551615", 0, nil, lease},
		"later":               {"1000", 3 * time.Second, nil, 0},
		"a short wait":        {"1000", 0, []holdfast.Option{holdfast.WithWait(time.Second)}, 0},
		"who reclaims":        {"1000", 0, []holdfast.Option{holdfast.WithReclaim(), holdfast.WithOwner("other")}, 0},
		"a reader":            {"1000", 0, []holdfast.Option{holdfast.WithShared()}, 2 * time.Second},
		"one of the permits":  {"1000", 0, []holdfast.Option{holdfast.WithLimit(3)}, 2 * time.Second},
		"a longer wait":       {"1000", 0, []holdfast.Option{holdfast.WithWait(time.Minute)}, 2 * time.Second},
		"what is no number":   {"x", 0, nil, 0},
		"what is no duration": {"-1", 0, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a := h.client(t)
				lock := a.hold(t, "k")
				if i := h.item("k"); c.turn != "" {
					i[turnAttribute] = n(c.turn)
					if c.turn == "x" {
						i[turnAttribute] = s(c.turn)
					}
					h.set("k", i)
				}
				mustRelease(t, lock)
				time.Sleep(c.before)
				var again *holdfast.Lock
				waited := took(func() { again = a.hold(t, "k", c.opts...) })
				if waited < c.want || waited > c.want+100*time.Millisecond {
					t.Errorf("granted after %v, want %v", waited, c.want)
				}
				time.Sleep(lease)
				mustRelease(t, again)
				if waited := took(func() { mustRelease(t, a.hold(t, "k")) }); waited > 100*time.Millisecond {
					t.Errorf("and then after %v", waited)
				}
			})
		})
	}
}

// A turn that cannot be asked for costs whoever waits nothing, and the table no more than a write per poll.
func TestTurnRefused(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k")
		var mu sync.Mutex
		asked := 0
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if !asksForTurn(op) {
				return dynamofake.Fault{}
			}
			mu.Lock()
			defer mu.Unlock()
			asked++
			return dynamofake.Fail(dynamofake.Denied())
		})
		granted := b.waits(t, "k")
		time.Sleep(time.Minute)
		mustRelease(t, lock)
		if late := took(func() { mustRelease(t, <-granted) }); late > 2*poll {
			t.Errorf("granted after %v", late)
		}
		if asked == 0 || asked > 60 {
			t.Errorf("asked %d times in a minute", asked)
		}
	})
}

// A request for a turn that arrives late is for the holder that it was sent to: the next one does not wait for anybody.
func TestLateTurn(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k")
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if asksForTurn(op) {
				return dynamofake.DeliverLate(lease/4, dynamofake.Reset())
			}
			return dynamofake.Fault{}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := b.Acquire(ctx, "k"); err == nil {
			t.Fatal("granted")
		}
		mustRelease(t, lock)
		lock = a.hold(t, "k")
		time.Sleep(lease)
		if i := h.item("k"); i[turnAttribute] != nil {
			t.Error("somebody asks for a turn of whoever came later")
		}
		mustRelease(t, lock)
	})
}
