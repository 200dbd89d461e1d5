package dynamolock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// isRemoval reports whether a request removes one of those who share a key, and does nothing else.
func isRemoval(op dynamofake.Op) bool {
	in, ok := op.Input.(*dynamodb.UpdateItemInput)
	return ok && !isJoin(*in.UpdateExpression) && strings.Contains(*in.UpdateExpression, "REMOVE #holdfastHolders.")
}

// Who reclaims ends all that the former incarnation has, beside others too, also if that is more than one request can remove, and
// the table does not answer each of those.
func TestReclaimOfMany(t *testing.T) {
	const many = 20
	type reclaim struct {
		mode  holdfast.Option
		fault dynamofake.Fault // of a removal
	}
	forEach(t, map[string]reclaim{
		"readers":            {mode: shared},
		"permits":            {mode: holdfast.WithLimit(many + 1)},
		"a request is lost":  {shared, dynamofake.Fail(dynamofake.Reset())},
		"its answer is lost": {shared, dynamofake.LoseReply(nil)},
		"it takes its time":  {shared, dynamofake.Delay(time.Second)},
	}, func(t *testing.T, h *harness, c reclaim) {
		a, b, x := h.client(t), h.client(t), h.client(t)
		me := holdfast.WithOwner("me")
		var old []*holdfast.Lock
		for range many {
			old = append(old, a.hold(t, "k", c.mode, me))
		}
		other := x.hold(t, "k", c.mode)
		removals := 0
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if isRemoval(op) {
				if removals++; removals == 3 {
					return c.fault
				}
			}
			return dynamofake.Fault{}
		})
		lock := b.hold(t, "k", c.mode, me, holdfast.WithReclaim())
		if n := h.holdersOf("k"); n != 2 {
			t.Errorf("%d hold the key, want 2", n)
		}
		time.Sleep(lease)
		for i, k := range old {
			if err := k.Err(); !errors.Is(err, holdfast.ErrReclaimed) {
				t.Errorf("hold %d: %v, want ErrReclaimed", i, err)
			}
		}
		mustLive(t, lock)
		mustVerify(t, other)
		mustRelease(t, lock)
		mustRelease(t, other)
		h.isFree(t, "k")
	})
}
