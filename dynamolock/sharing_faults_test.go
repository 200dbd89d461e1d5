package dynamolock_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// holdersOf is how many entries a shared item has.
func (h *harness) holdersOf(key string) int {
	m, _ := h.item(key)["holdfastHolders"].(*types.AttributeValueMemberM)
	if m == nil {
		return 0
	}
	return len(m.Value)
}

// A client without room to remember a key has not watched those who share it, and so knows nobody to be gone, neither a
// holder nor a writer that waits.
func TestSharingWithoutMemory(t *testing.T) {
	defer dynamolock.SetMaxLines(dynamolock.SetMaxLines(0))
	alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b, c := h.client(t), h.client(t), h.client(t)
		lock := a.hold(t, "k", shared)
		for range 3 {
			if _, err := b.TryAcquire(t.Context(), "k"); !errors.Is(err, holdfast.ErrHeld) {
				t.Fatalf("a writer beside a reader: %v", err)
			}
		}
		mustVerify(t, lock)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = c.Acquire(ctx, "k")
		}()
		time.Sleep(2 * poll)
		if _, err := b.TryAcquire(t.Context(), "k", shared); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("a reader before a writer that waits: %v", err)
		}
		cancel()
		<-done
		mustRelease(t, lock)
	})
}

// Who reclaims a permit and finds it released meanwhile has no more room than anybody else.
func TestReclaimOfAPermitThatWasReleased(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		two := holdfast.WithLimit(2)
		a, b, c, d := h.client(t), h.client(t), h.client(t), h.client(t)
		first, second := a.hold(t, "k", two, holdfast.WithOwner("o")), b.hold(t, "k", two)
		slow := false
		d.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if in, ok := op.Input.(*dynamodb.UpdateItemInput); ok && isJoin(*in.UpdateExpression) && strings.Contains(*in.UpdateExpression, "REMOVE #holdfastHolders.") && !slow {
				slow = true
				return dynamofake.Delay(time.Second)
			}
			return dynamofake.Fault{}
		})
		reclaimed := make(chan error, 1)
		go func() {
			_, err := d.TryAcquire(t.Context(), "k", two, holdfast.WithOwner("o"), holdfast.WithReclaim())
			reclaimed <- err
		}()
		time.Sleep(500 * time.Millisecond)
		mustRelease(t, first)
		third := c.hold(t, "k", two)
		err := <-reclaimed
		if !slow {
			t.Fatal("no request to reclaim")
		}
		if n := h.holdersOf("k"); n != 2 || !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("%d permits of 2 are held; the one who reclaims: %v", n, err)
		}
		mustVerify(t, second)
		mustVerify(t, third)
	})
}

// A reader waits at rest for a writer that died while it kept readers out of a key whose holders have died, too.
func TestReaderBehindTheDead(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b, c := h.client(t), h.client(t), h.client(t)
		lock := a.hold(t, "k", shared)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = b.Acquire(ctx, "k")
		}()
		time.Sleep(lease / 2)
		granted := make(chan *holdfast.Lock, 1)
		go func() { granted <- c.hold(t, "k", shared) }()
		time.Sleep(lease / 4)
		a.conn.Cut()
		time.Sleep(lease / 2)
		b.conn.Cut()
		<-granted
		cancel()
		<-done
		if lock.Err() == nil {
			t.Error("the dead reader believes in its lock")
		}
		a.conn.Heal()
		b.conn.Heal()
		time.Sleep(lease) // what was sent into the cut is given up, and sent again, before Close
	})
}

// Who reclaims waits behind a writer like anybody else, though its client has seen the key.
func TestReclaimBehindAWriter(t *testing.T) {
	forEach(t, map[string]int{"the only one": 0, "one of two": 1}, func(t *testing.T, h *harness, others int) {
		a, b, c := h.client(t), h.client(t), h.client(t)
		mine := a.hold(t, "k", shared, holdfast.WithOwner("o"))
		for range others {
			h.client(t).hold(t, "k", shared)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = b.Acquire(ctx, "k")
		}()
		time.Sleep(lease / 2)
		if _, err := c.TryAcquire(t.Context(), "k", shared); !errors.Is(err, holdfast.ErrHeld) {
			t.Fatal(err)
		}
		_, err := c.Acquire(t.Context(), "k", shared, holdfast.WithOwner("o"), holdfast.WithReclaim(), holdfast.WithWait(2*poll))
		if !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("%v, want ErrHeld", err)
		}
		cancel()
		<-done
		<-mine.Done()
	})
}

// A holder is told that it was reclaimed, whether it or who reclaimed shares the key.
func TestReclaimedInAnotherMode(t *testing.T) {
	forEach(t, map[string][2][]holdfast.Option{
		"reader by reader": {{shared}, {shared}},
		"reader by writer": {{shared}, {}},
		"writer by reader": {{}, {shared}},
		"writer by permit": {{}, {holdfast.WithLimit(2)}},
	}, func(t *testing.T, h *harness, modes [2][]holdfast.Option) {
		a, b := h.pair(t)
		owner := holdfast.WithOwner("o")
		lock := a.hold(t, "k", append(modes[0], owner)...)
		b.hold(t, "k", append(modes[1], owner, holdfast.WithReclaim())...)
		<-lock.Done()
		if err := lock.Err(); !errors.Is(err, holdfast.ErrReclaimed) {
			t.Errorf("%v, want ErrReclaimed", err)
		}
	})
}

// Data that somebody may have read by now stays, although the call that set it got no answer: a heartbeat does not bring
// back what there was before.
func TestUnansweredDataOfAReader(t *testing.T) {
	forEach(t, map[string][]holdfast.Option{"exclusive": nil, "shared": {shared}}, func(t *testing.T, h *harness, opts []holdfast.Option) {
		a, b := h.pair(t)
		lock := a.hold(t, "k", append(opts, holdfast.WithData([]byte("old")))...)
		a.conn.SetFault(on(beat, 1, dynamofake.LoseReply(nil)))
		if err := lock.SetData(within(t, 100*time.Millisecond), []byte("new")); err == nil {
			t.Fatal("the call has got an answer")
		}
		data := func() string {
			info, err := b.Inspect(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			return string(info.Data)
		}
		if got := data(); got != "new" {
			t.Fatalf("%q, want that the request was carried out", got)
		}
		time.Sleep(lease)
		if got := data(); got != "new" {
			t.Errorf("%q is there again", got)
		}
		mustLive(t, lock)
	})
}

// A release says that the lock was broken, whether or not a heartbeat has found it out before.
func TestReleaseOfABroken(t *testing.T) {
	forEach(t, map[string][]holdfast.Option{"exclusive": nil, "shared": {shared}}, func(t *testing.T, h *harness, opts []holdfast.Option) {
		a, b := h.pair(t)
		lock := a.hold(t, "k", opts...)
		b.breakIt(t, "k", false)
		if err := lock.Release(t.Context()); !errors.Is(err, holdfast.ErrBroken) {
			t.Errorf("%v, want ErrBroken", err)
		}
		h.isFree(t, "k")
	})
}

// A waiting writer that is granted the key has nothing to withdraw.
func TestGrantedWriterWithdrawsNothing(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k", shared)
		granted := b.waits(t, "k")
		time.Sleep(2 * poll)
		mustRelease(t, lock)
		var withdrawn atomic.Int32
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if in, ok := op.Input.(*dynamodb.UpdateItemInput); ok && !strings.Contains(*in.UpdateExpression, "SET") {
				withdrawn.Add(1)
			}
			return dynamofake.Fault{}
		})
		<-granted
		time.Sleep(poll / 10)
		if n := withdrawn.Load(); n > 0 {
			t.Errorf("withdrawn %d times after the grant", n)
		}
	})
}

// A key that nobody holds is not kept from readers that try once, and have seen nothing before, by a writer that died
// while it waited.
func TestTryAfterADeadWriter(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k", shared)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = b.Acquire(ctx, "k")
		}()
		time.Sleep(lease / 2)
		b.conn.Cut()
		mustRelease(t, lock)
		if _, err := h.client(t).TryAcquire(t.Context(), "k", shared); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("at once: %v, want ErrHeld", err)
		}
		time.Sleep(lease + time.Second)
		if _, err := h.client(t).TryAcquire(t.Context(), "k", shared); err != nil {
			t.Error(err)
		}
		cancel()
		<-done
		b.conn.Heal()
	})
}

// A grant of which its client has not heard is broken at once. The call goes on with another: what it sends for the first one is
// refused from then on.
func TestBrokenBeforeItWasKnown(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.client(t), h.client(t)
		for name, options := range map[string][]holdfast.Option{"alone": nil, "shared": {shared}, "permit": {holdfast.WithLimit(2)}} {
			var written atomic.Bool
			a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
				if op.Name == "UpdateItem" && written.CompareAndSwap(false, true) {
					return dynamofake.LoseReply(nil)
				}
				return dynamofake.Refuse()
			})
			granted := make(chan *holdfast.Lock, 1)
			go func() {
				lock, err := a.Acquire(t.Context(), name, options...)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				granted <- lock
			}()
			time.Sleep(time.Second)
			info, err := b.Inspect(t.Context(), name)
			if err != nil || !info.Held {
				t.Fatal(name, info, err)
			}
			if err := b.BreakNow(t.Context(), info); err != nil {
				t.Fatal(name, err)
			}
			a.conn.SetFault(nil)
			if lock := <-granted; lock != nil {
				if lock.Token() <= info.Token {
					t.Errorf("%s: token %d after %d", name, lock.Token(), info.Token)
				}
				mustRelease(t, lock)
			}
		}
	})
}
