package dynamolock_test

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

var shared = holdfast.WithShared()

// What each step of sharing costs: one call, if the client knows that the key is shared.
func TestCostOfSharing(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		h.db.Latency = 0
		a, b := h.pair(t)
		var first, second *holdfast.Lock
		one := map[string]int{"UpdateItem": 1}
		for _, step := range []struct {
			name  string
			of    *client
			do    func()
			calls map[string]int
		}{
			{"the first reader", a, func() { first = a.hold(t, "k", shared) }, one},
			{"the second, who does not know", b, func() { second = b.hold(t, "k", shared) }, map[string]int{"UpdateItem": 2}},
			{"a heartbeat of each", a, func() { time.Sleep(lease / 4) }, one},
			{"release of one of two", a, func() { mustRelease(t, first) }, one},
			{"again", a, func() { first = a.hold(t, "k", shared) }, one},
			{"a third of the same client", a, func() { mustRelease(t, a.hold(t, "k", shared)) }, map[string]int{"UpdateItem": 2}},
			{"release of one of two again", a, func() { mustRelease(t, first) }, one},
			{"a heartbeat of the other", b, func() { time.Sleep(lease / 4) }, one},
			{"release of the last", b, func() { mustRelease(t, second) }, one},
			{"a reader of a free key", b, func() { second = b.hold(t, "k", shared) }, one},
			{"a try of a writer", a, func() { _, _ = a.TryAcquire(t.Context(), "k") }, map[string]int{"GetItem": 1}},
			{"release", b, func() { mustRelease(t, second) }, one},
			{"a permit", b, func() { second = b.hold(t, "k", holdfast.WithLimit(3)) }, one},
			{"its release", b, func() { mustRelease(t, second) }, one},
		} {
			step.of.conn.ResetCounts()
			step.do()
			if calls := step.of.conn.Calls(); !maps.Equal(calls, step.calls) {
				t.Errorf("%s: %v, want %v", step.name, calls, step.calls)
			}
		}
	})
}

// An exclusive lock leaves nothing of those who shared the key before it, nor does the release of the last of them.
func TestSharedItem(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		plain := a.hold(t, "k")
		want := h.item("k")
		mustRelease(t, plain)
		r, q := a.hold(t, "k", shared), b.hold(t, "k", shared)
		i := h.item("k")
		if leaseOf(i) != lease.Milliseconds() || i["owner"] == nil || len(i["holdfastHolders"].(*types.AttributeValueMemberM).Value) != 2 {
			t.Errorf("the shared item: %v", i)
		}
		guids := make(map[string]bool)
		for range 40 { // with 4 heartbeats of each
			guids[string(h.item("k")["guid"].(*types.AttributeValueMemberB).Value)] = true
			time.Sleep(lease / 40)
		}
		if len(guids) < 4 { // both may renew at the same time
			t.Errorf("%d guids in a lease of two holders: other programs would take the key over", len(guids))
		}
		mustRelease(t, r)
		mustRelease(t, q)
		h.isFree(t, "k")
		for name := range h.item("k") {
			if strings.HasPrefix(name, "holdfast") {
				t.Errorf("released, and %q is left", name)
			}
		}
		exclusive := func() {
			t.Helper()
			for name := range h.item("k") {
				if want[name] == nil && name != "holdfastBrokenToken" {
					t.Errorf("an exclusive lock has %q", name)
				}
			}
		}
		lock := b.hold(t, "k")
		exclusive()
		mustRelease(t, lock)
		dead := a.hold(t, "k", shared)
		a.conn.Cut()
		b.hold(t, "k") // when that is over
		exclusive()
		if dead.Err() == nil {
			t.Error("both hold the key")
		}
		a.conn.Heal()
		time.Sleep(lease)
	})
}

// copyOf returns the first request of a client with a purpose, to be sent again.
func copyOf(c *client, is func(update string) bool) <-chan *dynamodb.UpdateItemInput {
	found := make(chan *dynamodb.UpdateItemInput, 1)
	c.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
		if in, ok := op.Input.(*dynamodb.UpdateItemInput); ok && is(*in.UpdateExpression) {
			select {
			case found <- in:
			default: // not the first
			}
		}
		return dynamofake.Fault{}
	})
	return found
}

func isJoin(update string) bool {
	return strings.Contains(update, "#fencingToken = #fencingToken + ")
}

// arrives sends a request once more, and insists that it is refused.
func (h *harness) arrives(t *testing.T, in *dynamodb.UpdateItemInput) {
	t.Helper()
	_, err := h.db.Client().UpdateItem(t.Context(), in)
	var refused *types.ConditionalCheckFailedException
	if !errors.As(err, &refused) {
		t.Errorf("the copy: %v, want that its condition fails; %v", err, h.item("k"))
	}
}

// A copy of a request to join that arrives when its grant is over makes no entry that nobody renews: a writer would wait
// for that, and a permit be lost, for a lease.
func TestLateJoin(t *testing.T) {
	forEach(t, map[string]func(*testing.T, *harness, *client, *client){
		"the others go on": func(*testing.T, *harness, *client, *client) {},
		"another joins": func(t *testing.T, h *harness, _, b *client) {
			h.client(t).hold(t, "k", shared)
		},
		"a writer, and readers again": func(t *testing.T, h *harness, opener, b *client) {
			c := h.client(t)
			c.breakIt(t, "k", true)
			mustRelease(t, c.hold(t, "k"))
			time.Sleep(lease / 2) // who was broken knows
			c.hold(t, "k", shared)
		},
	}, func(t *testing.T, h *harness, then func(*testing.T, *harness, *client, *client)) {
		a, b := h.pair(t)
		a.hold(t, "k", shared)
		joins := copyOf(b, isJoin)
		lock := b.hold(t, "k", shared)
		join := <-joins
		h.arrives(t, join) // while it holds
		mustRelease(t, lock)
		then(t, h, a, b)
		h.arrives(t, join)
	})
}

// A reader's request to join got no answer, another joins, and then its client reads its entry. The reader has the key, by
// the token of its own entry. It does not ask again: that request would have seen its own token, and could be carried out
// when the grant is over.
func TestJoinIsNotSentAgain(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b, c := h.client(t), h.client(t), h.client(t)
		a.hold(t, "k", shared)
		joins := 0
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if in, ok := op.Input.(*dynamodb.UpdateItemInput); ok && isJoin(*in.UpdateExpression) {
				if joins++; joins == 1 {
					return dynamofake.LoseReply(dynamofake.Reset())
				}
			}
			return dynamofake.Fault{}
		})
		sent := time.Now()
		granted := make(chan *holdfast.Lock, 1)
		go func() { granted <- b.hold(t, "k", shared) }()
		time.Sleep(20 * time.Millisecond)
		other := c.hold(t, "k", shared)
		if _, err := b.TryAcquire(t.Context(), "k"); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("a writer: %v, want ErrHeld", err)
		}
		lock := <-granted
		if joins != 1 {
			t.Errorf("%d requests to join", joins)
		}
		if lock.Token() == other.Token() {
			t.Errorf("two readers have token %d", lock.Token())
		}
		if most := lease - lease/20 + 10*time.Millisecond; lock.Deadline().After(sent.Add(most)) { // less the margin; it asks twice
			t.Errorf("the lease counts from a later request than the one that joined: until %v, the first was sent at %v", lock.Deadline(), sent)
		}
		mustVerify(t, lock)
		mustRelease(t, lock)
		if n := len(h.item("k")["holdfastHolders"].(*types.AttributeValueMemberM).Value); n != 2 {
			t.Errorf("%d holders, want 2", n)
		}
	})
}

// A late copy of a reader's heartbeat changes nothing, while it holds and afterwards.
func TestLateSharedHeartbeat(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		a.hold(t, "k", shared)
		beats := copyOf(b, func(update string) bool {
			return strings.Contains(update, "#holdfastHolders.") && !isJoin(update) && !strings.Contains(update, "REMOVE")
		})
		lock := b.hold(t, "k", shared)
		first := <-beats
		time.Sleep(lease / 2)
		h.arrives(t, first)
		mustRelease(t, lock)
		h.arrives(t, first)
	})
}

// Who does not know of those who share a key, and takes it when they are all silent, has it alone: what is left of them
// in the item does not count. A reader that was only cut off is told.
func TestTakenByWhoKnowsNoSharing(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k", shared)
		a.conn.Cut()
		time.Sleep(lease / 2)
		i := h.item("k")
		i["guid"] = &types.AttributeValueMemberB{Value: []byte(strings.Repeat("x", 64))}
		i["owner"] = s("another program")
		i["fencingToken"] = &types.AttributeValueMemberN{Value: strconv.FormatUint(uint64(lock.Token())+1, 10)}
		h.set("k", i)
		a.conn.Heal()
		<-lock.Done()
		if err := lock.Err(); !errors.Is(err, holdfast.ErrTakenOver) {
			t.Errorf("%v, want ErrTakenOver", err)
		}
		info, err := b.Inspect(t.Context(), "k")
		if err != nil || !info.Held || info.Shared || info.Owner != "another program" || info.Token != lock.Token()+1 {
			t.Errorf("%+v, %v", info, err)
		}
		if _, err := b.TryAcquire(t.Context(), "k", shared); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("%v, want ErrHeld", err)
		}
	})
}

// BreakNow removes one of those who share a key, who is told at its next heartbeat, and no other.
func TestBreakNowOfOne(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		first, second := a.hold(t, "k", shared), b.hold(t, "k", shared)
		b.breakIt(t, "k", true) // describes the oldest
		if n := len(h.item("k")["holdfastHolders"].(*types.AttributeValueMemberM).Value); n != 1 {
			t.Errorf("%d holders, want 1", n)
		}
		<-first.Done()
		if err := first.Err(); !errors.Is(err, holdfast.ErrBroken) {
			t.Errorf("%v, want ErrBroken", err)
		}
		mustVerify(t, second)
		b.breakIt(t, "k", true)
		h.isFree(t, "k")
		<-second.Done()
		if err := second.Err(); !errors.Is(err, holdfast.ErrBroken) {
			t.Errorf("%v, want ErrBroken", err)
		}
	})
}

// A check for a transaction covers one of those who share a key.
func TestConditionCheckOfAReader(t *testing.T) {
	forEach(t, map[string]func(*testing.T, *client, *holdfast.Lock){
		"released": func(t *testing.T, _ *client, lock *holdfast.Lock) { mustRelease(t, lock) },
		"broken":   func(t *testing.T, other *client, _ *holdfast.Lock) { other.breakIt(t, "k", false) },
		"removed":  func(t *testing.T, other *client, _ *holdfast.Lock) { other.breakIt(t, "k", true) },
	}, func(t *testing.T, h *harness, lose func(*testing.T, *client, *holdfast.Lock)) {
		a, b := h.pair(t)
		lock, other := a.hold(t, "k", shared), b.hold(t, "k", shared)
		check, others := a.check(t, lock), b.check(t, other)
		time.Sleep(lease / 2) // heartbeats do not invalidate it
		if err := errors.Join(h.commit(t, a, check), h.commit(t, b, others)); err != nil {
			t.Errorf("held: %v", err)
		}
		lose(t, b, lock)
		var cancelled *types.TransactionCanceledException
		if err := h.commit(t, a, check); !errors.As(err, &cancelled) || aws.ToString(cancelled.CancellationReasons[0].Code) != "ConditionalCheckFailed" {
			t.Errorf("over: %v", err)
		}
		<-lock.Done()
		if err := h.commit(t, b, others); err != nil {
			t.Errorf("the other, who still holds: %v", err)
		}
	})
}

// What a call that was given up has joined is given back.
func TestGivenUpJoin(t *testing.T) {
	forEach(t, map[string]dynamofake.Fault{
		"slow":     dynamofake.DelayReply(time.Second),
		"late":     dynamofake.Delay(time.Second),
		"no reply": dynamofake.LoseReply(nil),
	}, func(t *testing.T, h *harness, fault dynamofake.Fault) {
		a, b := h.pair(t)
		lock := a.hold(t, "k", shared)
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if in, ok := op.Input.(*dynamodb.UpdateItemInput); ok && isJoin(*in.UpdateExpression) {
				return fault
			}
			return dynamofake.Fault{}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := b.Acquire(ctx, "k", shared); err == nil {
			t.Fatal("granted")
		}
		time.Sleep(lease)
		if n := len(h.item("k")["holdfastHolders"].(*types.AttributeValueMemberM).Value); n != 1 {
			t.Errorf("%d holders, want 1", n)
		}
		mustVerify(t, lock)
		mustRelease(t, lock)
		h.isFree(t, "k")
	})
}

// An item of which the map cannot be read is neither taken nor changed.
func TestCorruptSharing(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		a.hold(t, "k", shared)
		good := h.item("k")
		for name, v := range map[string]types.AttributeValue{
			"holdfastHolders":     s("none"),
			"holdfastTokens":      nil,
			"holdfastOpenedToken": s("1"),
		} {
			bad := maps.Clone(good)
			if bad[name] = v; v == nil {
				delete(bad, name)
			}
			h.set("k", bad)
			for _, opts := range [][]holdfast.Option{nil, {shared}} {
				var corrupt *dynamolock.ItemError
				if _, err := b.TryAcquire(t.Context(), "k", opts...); !errors.As(err, &corrupt) || corrupt.Attribute != name {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		h.set("k", good)
	})
}

// A permit of a dead holder is had again, while others hold theirs and renew them.
func TestPermitOfTheDead(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		two := holdfast.WithLimit(2)
		a, b, c := h.client(t), h.client(t), h.client(t)
		dead, live := a.hold(t, "k", two), b.hold(t, "k", two)
		a.conn.Cut()
		if took := took(func() { c.hold(t, "k", two) }); took > lease+2*dynamolock.DefaultPoll+time.Second {
			t.Errorf("after %v", took)
		}
		if dead.Err() == nil {
			t.Error("the silent holder believes in its permit")
		}
		mustVerify(t, live)
		a.conn.Heal()
		time.Sleep(lease)
	})
}

// The heartbeats of as many as may share a key are within what DynamoDB carries out for one item, 1000 units a second,
// with as much left for those that come and go.
func TestBudgetOfSharing(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		h.db.Latency = 0
		a := h.client(t)
		heartbeat := a.Options().Heartbeat
		for n := 1; n <= holdfast.MaxLimit; n++ {
			a.hold(t, "k", shared)
			switch n {
			case 10, holdfast.MaxLimit: // docs/dynamodb.md has more
				time.Sleep(heartbeat) // until all have had their first
				a.conn.ResetCounts()
				time.Sleep(heartbeat)
				_, units := a.conn.Consumed()
				each := units / heartbeat.Seconds()
				t.Logf("%d holders: %v units a heartbeat, %v a second in all", n, units/float64(n), each)
				if each > 500 {
					t.Errorf("%d holders: %v units a second", n, each)
				}
			}
		}
		if _, err := h.client(t).TryAcquire(t.Context(), "k", shared); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("one more than may share a key: %v, want ErrHeld", err)
		}
		if _, err := h.client(t).TryAcquire(t.Context(), "k2", holdfast.WithLimit(holdfast.MaxLimit+1)); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("a limit of more: %v, want ErrInvalid", err)
		}
	})
}
