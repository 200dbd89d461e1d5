package dynamolock_test

import (
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

// A late copy of a heartbeat changes nothing: while it is the latest, after others, after the release, and for the next grant.
func TestLateHeartbeat(t *testing.T) {
	forEach(t, map[string][]holdfast.Option{"lock": nil, "reader": {shared}}, func(t *testing.T, h *harness, opts []holdfast.Option) {
		a, b := h.pair(t)
		if opts != nil {
			a.hold(t, "k", opts...)
		}
		beats := copyOf(b, func(update string) bool {
			return !isJoin(update) && !strings.Contains(update, "#fencingToken") && !strings.Contains(update, "#leaseDurationMs")
		})
		lock := b.hold(t, "k", opts...)
		first := <-beats
		time.Sleep(100 * time.Millisecond)
		h.arrives(t, first)
		time.Sleep(lease / 2)
		h.arrives(t, first)
		mustRelease(t, lock)
		h.arrives(t, first)
		b.hold(t, "k", opts...)
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

// An item of which the map cannot be read is neither taken nor changed.
func TestCorruptSharing(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		a.hold(t, "k", shared)
		good := h.item("k")
		for name, v := range map[string]types.AttributeValue{
			"holdfastHolders": s("none"),
			"holdfastAsked":   nil,
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
