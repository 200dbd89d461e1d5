package integration_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
)

// D3, G2. The heartbeats of one of many locks never get a reply. Each lock has its own
// heartbeats, which do not wait for those of others.
func TestDynamoSilentHeartbeat(t *testing.T) {
	start(t)
	d := newDynamo(t)
	client := d.client(t, longLease, quickBeats)
	prefix := newKey(t)
	var locks []*holdfast.Lock
	for i := range 20 {
		locks = append(locks, client.take(t, fmt.Sprintf("%s.%d", prefix, i)))
	}
	silent, others := locks[0], locks[1:]
	hit := make(chan struct{}, 1)
	client.net.SetRule(func(r faulthttp.Request) faulthttp.Fault {
		if purpose(r) != aBeat || keyOf(r) != silent.Key() {
			return faulthttp.Pass
		}
		select {
		case hit <- struct{}{}:
		default:
		}
		return faulthttp.LoseRequest(faulthttp.Silence)
	})
	receive(t, "the silent heartbeat", hit)
	was := make(map[*holdfast.Lock]time.Time)
	for _, lock := range locks {
		was[lock] = lock.Deadline()
	}
	for _, lock := range others {
		eventually(t, "the others are renewed", func() bool { return lock.Deadline().After(was[lock]) })
	}
	if err := silent.Err(); err != nil || !silent.Deadline().Equal(was[silent]) {
		t.Errorf("the silent lock: %v; its deadline has moved from %v to %v", err, was[silent], silent.Deadline())
	}
}

// D3, G11. Close ends an Acquire that waits for a holder and one whose request gets no
// reply, without waiting for them.
func TestDynamoCloseWhileOthersWait(t *testing.T) {
	start(t)
	d := newDynamo(t)
	client, other := d.client(t, longLease, func(o *dynamolock.Options) { o.Timeout = longLease / 4 }), d.client(t, longLease)
	key, silent, held := newKey(t), newKey(t), newKey(t)
	other.take(t, key)
	lock := client.take(t, held)
	waits := client.taking(limited(t), key)
	eventually(t, "the waiter polls", func() bool { return client.net.Count("GetItem") > 0 })
	hit := client.next(aGrant, faulthttp.LoseRequest(faulthttp.Silence))
	asks := client.taking(limited(t), silent)
	receive(t, "the request", hit)
	ctx, cancel := context.WithTimeout(context.Background(), promptly/10)
	defer cancel()
	began := time.Now()
	_ = client.Close(ctx) // the outcome of the silent request cannot be confirmed
	if took := time.Since(began); took > promptly {
		t.Errorf("Close took %v", took)
	}
	for name, got := range map[string]<-chan outcome{"waiter": waits, "silent": asks} {
		if o := receive(t, name+" returns", got); !errors.Is(o.err, holdfast.ErrClosed) {
			t.Errorf("%s: %v, want %v", name, o.err, holdfast.ErrClosed)
		}
	}
	if err := lock.Err(); !errors.Is(err, holdfast.ErrReleased) {
		t.Errorf("the lock that was held ended with %v", err)
	}
	d.isReleased(t, held)
}

// D4, G2. A failed heartbeat does not end the lock; the client repeats it.
func TestDynamoHeartbeatsFail(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faulthttp.Fault{
		"500": faulthttp.ServerError(), "throttled": faulthttp.Throttled(), "rate limited": faulthttp.RateLimited(),
		"reset": faulthttp.LoseRequest(faulthttp.Reset), "reply reset": faulthttp.LoseReply(faulthttp.Reset),
	} {
		t.Run(name, func(t *testing.T) {
			start(t)
			d := newDynamo(t)
			client := d.client(t, shortLease)
			key := newKey(t)
			lock := client.take(t, key)
			for _, failures := range [][]faulthttp.Fault{{fault, faulthttp.Pass}, {fault, fault, faulthttp.Pass}} {
				receive(t, "a failure", client.each(aBeat, failures...))
				renews(t, lock)
			}
			renews(t, lock)
			release(t, lock)
			d.isReleased(t, key)
		})
	}
}

// D4, G2. Heartbeats fail for longer than the lease. The lock ends on its holder's own
// clock, at the deadline that the last success set, and before anyone else can get the
// key.
func TestDynamoHeartbeatsFailForLong(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faulthttp.Fault{
		"500": faulthttp.ServerError(), "throttled": faulthttp.Throttled(), "denied": faulthttp.Denied(),
		"reset": faulthttp.LoseRequest(faulthttp.Reset), "silence": faulthttp.LoseRequest(faulthttp.Silence),
	} {
		t.Run(name, func(t *testing.T) {
			start(t)
			d := newDynamo(t)
			client, other := d.client(t, dynamolock.MinLease), d.client(t, dynamolock.MinLease)
			key := newKey(t)
			lock := client.take(t, key)
			done := lock.Done()
			known := make(chan bool, 1)
			go func() {
				next, err := other.Acquire(limited(t), key)
				select {
				case <-done:
					known <- err == nil && next.Token() > lock.Token()
				default:
					known <- false
				}
			}()
			client.net.SetRule(faulthttp.All("UpdateItem", fault))
			var deadline time.Time
			eventually(t, "no more heartbeat succeeds", func() bool {
				before := deadline
				deadline = lock.Deadline()
				return client.net.Count("UpdateItem") >= 3 && deadline.Equal(before)
			})
			receive(t, "the lock ends", done)
			if early := time.Until(deadline); early > 0 {
				t.Errorf("it ended %v before its deadline", early)
			}
			if err := lock.Err(); !errors.Is(err, holdfast.ErrLeaseExpired) {
				t.Errorf("it ended with %v, want %v", err, holdfast.ErrLeaseExpired)
			}
			if !receive(t, "the other is granted the key", known) {
				t.Error("the other was granted the key before the holder knew, or without a greater token")
			}
		})
	}
}

// D8. A waiter polls; it does not sleep until the lease is over.
func TestDynamoEarlyRelease(t *testing.T) {
	start(t)
	d := newDynamo(t)
	client, other := d.client(t, longLease), d.client(t, longLease)
	key := newKey(t)
	lock := client.take(t, key)
	got := other.taking(limited(t), key)
	eventually(t, "the waiter polls", func() bool { return other.net.Count("GetItem") >= 3 })
	began := time.Now()
	release(t, lock)
	granted(t, got)
	if took := time.Since(began); took > longLease/6 {
		t.Errorf("it took %v, the lease is %v", took, longLease)
	}
}

// G9. A client reports failing heartbeats, and their next success, even if it holds
// nothing and has no call under way.
func TestDynamoEvents(t *testing.T) {
	t.Parallel()
	for _, idle := range []bool{false, true} {
		t.Run(fmt.Sprintf("idle=%v", idle), func(t *testing.T) {
			start(t)
			d := newDynamo(t)
			client := d.client(t, longLease, quickBeats)
			events := client.Events()
			defer events.Close()
			receive(t, "Ready", events.Ready())
			key := newKey(t)
			if !idle {
				client.take(t, key)
			}
			client.net.SetRule(faulthttp.All("", faulthttp.ServerError()))
			if idle {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second/10)
				defer cancel()
				if _, err := client.Inspect(ctx, key); err == nil {
					t.Error("Inspect succeeds")
				}
			}
			receive(t, "Disconnected", events.Disconnected())
			silent(t, "Ready while every request fails", events.Ready())
			client.net.SetRule(nil)
			receive(t, "Ready again", events.Ready())
		})
	}
}
