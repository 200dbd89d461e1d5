package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
)

// What a client may see instead of a reply.
var lostReplies = map[string]error{"reset": faulthttp.Reset, "EOF": faulthttp.EOF, "silence": faulthttp.Silence}

// D1, G6. The reply to a grant is lost. The next try recognises the item by the grant's
// guid; nobody waits for a lease to expire.
func TestDynamoGrantLost(t *testing.T) {
	t.Parallel()
	for name, seen := range lostReplies {
		t.Run(name, func(t *testing.T) {
			start(t)
			d := newDynamo(t)
			client := d.client(t, longLease)
			key := newKey(t)
			lost := client.net.Once("UpdateItem", faulthttp.LoseReply(seen))
			began := time.Now()
			lock := client.take(t, key)
			if took := time.Since(began); took > longLease/4 {
				t.Errorf("it took %v, the lease is %v", took, longLease)
			}
			var reply struct {
				Attributes struct{ FencingToken struct{ N string } }
			}
			out := receive(t, "loss", lost)
			if err := json.Unmarshal(out.Reply, &reply); err != nil || out.Status != 200 {
				t.Fatalf("the server has answered %d %s", out.Status, out.Reply)
			}
			if first := reply.Attributes.FencingToken.N; first != lock.Token().String() || d.tokenOf(t, key) != lock.Token() {
				t.Errorf("granted with token %s, then with %v; the item has %v", first, lock.Token(), d.tokenOf(t, key))
			}
			if err := lock.Verify(limited(t)); err != nil {
				t.Error(err)
			}
			release(t, lock)
			d.isReleased(t, key)
		})
	}
}

// D1, G2. The reply to a heartbeat is lost. Later heartbeats recognise the item by the
// part of the guid that stays.
func TestDynamoHeartbeatLost(t *testing.T) {
	t.Parallel()
	for name, seen := range lostReplies {
		t.Run(name, func(t *testing.T) {
			start(t)
			d := newDynamo(t)
			client := d.client(t, shortLease)
			key := newKey(t)
			lock := client.take(t, key)
			before := d.item(t, key)["guid"]
			lost := client.net.Once("UpdateItem", faulthttp.LoseReply(seen))
			if out := receive(t, "loss", lost); out.Status != 200 {
				t.Fatalf("the server has answered %d %s", out.Status, out.Reply)
			}
			if reflect.DeepEqual(d.item(t, key)["guid"], before) {
				t.Error("the heartbeat whose reply was lost has changed nothing")
			}
			for range 2 {
				renews(t, lock)
			}
			release(t, lock)
			d.isReleased(t, key)
		})
	}
}

// D1, G10. The reply to a release is lost. The client repeats the release and sees from
// the item that the first one succeeded. It does not touch the item of a holder that came
// in between.
func TestDynamoReleaseLost(t *testing.T) {
	t.Parallel()
	for name, seen := range lostReplies {
		for _, successor := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/successor=%v", name, successor), func(t *testing.T) {
				start(t)
				d := newDynamo(t)
				client, other := d.client(t, longLease), d.client(t, longLease)
				key := newKey(t)
				lock := client.take(t, key)
				again := make(chan struct{})
				lost := client.each(aRelease, faulthttp.LoseReply(seen), faulthttp.HoldRequest(again), faulthttp.Pass)
				released := make(chan error, 1)
				go func() { released <- lock.Release(limited(t)) }()
				receive(t, "loss", lost)
				eventually(t, "the item is released", func() bool { return d.released(t, key) })
				var theirs *holdfast.Lock
				if successor {
					theirs = other.take(t, key)
				}
				close(again)
				if err := receive(t, "Release returns", released); err != nil {
					t.Error(err)
				}
				if !successor {
					d.isReleased(t, key)
					return
				}
				if err := theirs.Verify(limited(t)); err != nil {
					t.Error(err)
				}
				release(t, theirs)
			})
		}
	}
}

// D2, G10. A heartbeat that was sent before the release arrives after it, or when the
// next holder has the key. Its condition demands that the item is held by its own grant.
func TestDynamoHeartbeatAfterRelease(t *testing.T) {
	t.Parallel()
	for _, successor := range []bool{false, true} {
		t.Run(fmt.Sprintf("successor=%v", successor), func(t *testing.T) {
			start(t)
			d := newDynamo(t)
			client, other := d.client(t, shortLease), d.client(t, longLease)
			key := newKey(t)
			lock := client.take(t, key)
			arrive := make(chan struct{})
			late := client.net.Once("UpdateItem", faulthttp.LateUntil(arrive, faulthttp.Silence))
			sent := client.net.Count("UpdateItem")
			eventually(t, "a heartbeat", func() bool { return client.net.Count("UpdateItem") > sent })
			release(t, lock)
			d.isReleased(t, key)
			if successor {
				other.take(t, key)
			}
			before := d.item(t, key)
			close(arrive)
			if out := receive(t, "the heartbeat arrives", late); out.Status != 400 {
				t.Errorf("the server has answered %d %s", out.Status, out.Reply)
			}
			// The successor's first heartbeat is due within a quarter of its lease.
			if after := d.item(t, key); !successor && !reflect.DeepEqual(after, before) {
				t.Errorf("the item was %v, and is %v", wire(before), wire(after))
			}
		})
	}
}

// D6, G5. ctx ends while a grant is under way; the reply is lost, or the request arrives
// only later. The client releases what it may have acquired, and goes on asking until the
// request must have arrived.
func TestDynamoCancelWhileTaking(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"reply held", "request late"} {
		t.Run(moment, func(t *testing.T) {
			start(t)
			d := newDynamo(t)
			client := d.client(t, longLease)
			key := newKey(t)
			arrive := make(chan struct{})
			fault := faulthttp.HoldReply(arrive)
			if moment == "request late" {
				fault = faulthttp.LateUntil(arrive, faulthttp.Silence)
			}
			hit := client.next(aGrant, fault)
			ctx, cancel := context.WithCancel(limited(t))
			defer cancel()
			got := client.taking(ctx, key)
			receive(t, "the grant", hit)
			if moment == "reply held" {
				eventually(t, "the item is held", func() bool { return d.item(t, key) != nil })
			}
			cancel()
			select {
			case o := <-got:
				if !errors.Is(o.err, context.Canceled) || !errors.Is(o.err, holdfast.ErrDisconnected) {
					t.Errorf("error is %v, want it to match %v and %v", o.err, context.Canceled, holdfast.ErrDisconnected)
				}
			case <-time.After(promptly):
				t.Fatal("Acquire does not return when its ctx ends")
			}
			if moment == "request late" {
				eventually(t, "the client asks once in vain", func() bool { return client.net.Count("GetItem") > 0 })
				if d.item(t, key) != nil {
					t.Fatal("the request has arrived already")
				}
			}
			close(arrive)
			eventually(t, "the item is released", func() bool { return d.released(t, key) })
			release(t, client.take(t, key))
		})
	}
}
