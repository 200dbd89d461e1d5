package dynamolock_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
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

// Who reclaims many and gives up meanwhile leaves nothing of its own.
func TestReclaimOfManyGivenUp(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b, x := h.client(t), h.client(t), h.client(t)
		me := holdfast.WithOwner("me")
		for range 12 {
			a.hold(t, "k", shared, me)
		}
		other := x.hold(t, "k", shared)
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if isRemoval(op) {
				return dynamofake.Delay(time.Second)
			}
			return dynamofake.Fault{}
		})
		var err error
		if d := took(func() {
			_, err = b.Acquire(within(t, 1500*time.Millisecond), "k", shared, me, holdfast.WithReclaim())
		}); d != 1500*time.Millisecond {
			t.Errorf("it took %v", d)
		}
		if !errors.Is(err, holdfast.ErrDisconnected) {
			t.Errorf("%v, want ErrDisconnected", err)
		}
		b.conn.SetFault(nil)
		time.Sleep(2 * lease)
		info, err := x.Inspect(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		for one := range info.Each() {
			if one.Token > other.Token() {
				t.Errorf("%q has a grant with token %d, of which nobody knows", one.Owner, one.Token)
			}
		}
	})
}

// Who reclaims, and learns late that it has the key, does not end what has been granted to the same owner since: that is no former self.
func TestReclaimSparesTheLater(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b, x := h.client(t), h.client(t), h.client(t)
		me := holdfast.WithOwner("me")
		former, other := a.hold(t, "k", shared, me), x.hold(t, "k", shared)
		began, joins := time.Now(), 0
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			in, ok := op.Input.(*dynamodb.UpdateItemInput)
			switch {
			case ok && isJoin(*in.UpdateExpression) && joins == 0:
				joins++
				return dynamofake.LoseReply(io.ErrUnexpectedEOF)
			case joins == 1 && time.Since(began) < lease/4:
				return dynamofake.Refuse()
			}
			return dynamofake.Fault{}
		})
		granted := make(chan *holdfast.Lock, 1)
		time.AfterFunc(lease/8, func() { granted <- x.hold(t, "k", shared, me) })
		lock := b.hold(t, "k", shared, me, holdfast.WithReclaim())
		later := <-granted
		if later.Token() < lock.Token() {
			t.Fatalf("%v was granted after %v", lock, later)
		}
		time.Sleep(lease)
		if err := former.Err(); !errors.Is(err, holdfast.ErrReclaimed) {
			t.Errorf("the former self: %v, want ErrReclaimed", err)
		}
		for _, k := range []*holdfast.Lock{lock, later, other} {
			mustVerify(t, k)
		}
	})
}

// Who reclaims and has to wait all the same, behind a writer or for others, ends what its former self has: nobody waits for that, which
// may be alive, nor for its lease.
func TestReclaimThatWaits(t *testing.T) {
	type wait struct {
		mode   []holdfast.Option // of who reclaims
		others int               // who share the key with the former self
		try    bool
		fault  dynamofake.Fault // of the first removal
	}
	reader := []holdfast.Option{shared}
	forEach(t, map[string]wait{
		"a reader behind a writer":    {mode: reader},
		"... tries":                   {mode: reader, try: true},
		"... beside others":           {mode: reader, others: 1},
		"... and tries":               {mode: reader, others: 1, try: true},
		"a writer for others":         {others: 1},
		"... tries, too":              {others: 1, try: true},
		"a removal is lost":           {mode: reader, fault: dynamofake.Fail(dynamofake.Reset())},
		"its answer is lost":          {mode: reader, fault: dynamofake.LoseReply(nil)},
		"a removal is lost to a try":  {mode: reader, try: true, fault: dynamofake.Fail(dynamofake.Reset())},
		"its answer is lost to a try": {mode: reader, try: true, fault: dynamofake.LoseReply(nil)},
	}, func(t *testing.T, h *harness, c wait) {
		a, b, w := h.client(t), h.client(t), h.client(t)
		me := holdfast.WithOwner("me")
		old := a.hold(t, "k", shared, me)
		var others []*holdfast.Lock
		for range c.others {
			others = append(others, h.client(t).hold(t, "k", shared))
		}
		written := w.waits(t, "k")
		time.Sleep(lease / 2)
		removals := 0
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			in, ok := op.Input.(*dynamodb.UpdateItemInput)
			if ok && strings.Contains(*in.UpdateExpression, "SET") && strings.Contains(*in.UpdateExpression, "#holdfastBrokenToken =") {
				if removals++; removals == 1 {
					return c.fault
				}
			}
			return dynamofake.Fault{}
		})
		opts := append(c.mode, me, holdfast.WithReclaim())
		again := make(chan *holdfast.Lock, 1)
		if c.try {
			if _, err := b.TryAcquire(t.Context(), "k", opts...); !errors.Is(err, holdfast.ErrHeld) {
				t.Errorf("the try: %v, want ErrHeld", err)
			}
			close(again)
		} else {
			go func() {
				defer close(again)
				again <- b.hold(t, "k", opts...)
			}()
		}
		time.Sleep(lease / 2) // a heartbeat, and what is lost
		if err := old.Err(); !errors.Is(err, holdfast.ErrBroken) && !errors.Is(err, holdfast.ErrReclaimed) {
			t.Errorf("the former self: %v", err)
		}
		for _, other := range others {
			mustLive(t, other)
			mustRelease(t, other)
		}
		time.Sleep(3 * poll)
		if c.mode == nil && len(again) == 1 { // whoever looks first
			mustRelease(t, <-again)
			time.Sleep(3 * poll)
		}
		if len(written) == 0 {
			t.Fatal("the writer still waits")
		}
		mustRelease(t, <-written)
		for lock := range again {
			mustRelease(t, lock)
		}
	})
}

// D66. A call's time is over while it removes what it reclaims from a key that it has to wait for all the same: it says who has the key.
func TestReclaimThatWaitsGivesUp(t *testing.T) {
	forEach(t, map[string]bool{"waits": false, "tries": true}, func(t *testing.T, h *harness, try bool) {
		a, b, x := h.client(t), h.client(t), h.client(t)
		me := holdfast.WithOwner("me")
		a.hold(t, "k", shared, me)
		x.hold(t, "k", shared)
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if isRemoval(op) {
				return dynamofake.Delay(time.Second)
			}
			return dynamofake.Fault{}
		})
		acquire := b.Acquire
		if try {
			acquire = b.TryAcquire
		}
		_, err := acquire(within(t, time.Second/2), "k", me, holdfast.WithReclaim())
		if !errors.Is(err, holdfast.ErrHeld) || errors.Is(err, holdfast.ErrDisconnected) {
			t.Error(err)
		}
	})
}
