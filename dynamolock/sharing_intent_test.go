package dynamolock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// A request to share that a waiting writer refuses is no sign of a corrupt item: the reader, whose client has seen the
// writer, waits.
func TestReaderWritesDespiteAWriter(t *testing.T) {
	reclaim := []holdfast.Option{holdfast.WithOwner("me"), holdfast.WithReclaim()}
	type reader struct {
		opts   []holdfast.Option
		unsure bool // its first requests get no answer
		dead   bool // who has the key has died by then
	}
	forEach(t, map[string]reader{
		"reclaims, joins":        {opts: reclaim},
		"reclaims from the dead": {opts: reclaim, dead: true},
		"is not sure, and joins": {unsure: true},
	}, func(t *testing.T, h *harness, c reader) {
		a, b, w := h.client(t), h.client(t), h.client(t)
		a.hold(t, "k", shared)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for range b.Observe(ctx, "k") {
			}
		}()
		answered := time.Now()
		if c.unsure {
			answered = answered.Add(3 * dynamolock.DefaultPoll)
		}
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if in, ok := op.Input.(*dynamodb.UpdateItemInput); ok && isJoin(*in.UpdateExpression) && time.Now().Before(answered) {
				return dynamofake.Fail(dynamofake.Reset())
			}
			return dynamofake.Fault{}
		})
		time.Sleep(10 * time.Millisecond)
		ended := make(chan error, 2)
		take := func(of *client, opts ...holdfast.Option) {
			lock, err := of.Acquire(ctx, "k", opts...)
			if err == nil {
				mustRelease(t, lock)
			}
			ended <- err
		}
		reads := append(c.opts, shared)
		if c.unsure {
			go take(b, reads...)
		}
		go take(w)
		time.Sleep(2*dynamolock.DefaultPoll + time.Millisecond) // the observer has seen that the writer waits
		if c.dead {
			a.conn.Cut()
			time.Sleep(lease - dynamolock.DefaultPoll/2)
		}
		if !c.unsure {
			go take(b, reads...)
		}
		time.Sleep(lease)
		cancel()
		for range 2 {
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		a.conn.Heal()
		time.Sleep(lease)
	})
}

// A writer gives up between the request to join that it refuses and the reader's look at the item. On a server that does not
// send along what was in the way, the reader sees that nothing has changed, and joins.
func TestWriterGivesUpBeforeTheReaderLooks(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b, w := h.client(t), h.client(t), h.client(t)
		a.hold(t, "k", shared)
		ctx, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		gone, refused := make(chan struct{}), false
		b.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			in, ok := op.Input.(*dynamodb.UpdateItemInput)
			switch {
			case ok && isJoin(*in.UpdateExpression) && !refused:
				refused = true
				go func() {
					defer close(gone)
					if _, err := w.Acquire(ctx, "k"); !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				}()
				time.Sleep(2 * dynamolock.DefaultPoll) // the writer insists
				return dynamofake.LoseReply(&types.ConditionalCheckFailedException{})
			case refused && op.Name == "GetItem":
				giveUp()
				<-gone
				time.Sleep(time.Second) // it has withdrawn
			}
			return dynamofake.Fault{}
		})
		lock, err := b.TryAcquire(t.Context(), "k", shared)
		if err != nil {
			t.Fatal(err)
		}
		if !refused {
			t.Error("no writer was in the way")
		}
		mustRelease(t, lock)
	})
}

// D85. A writer gives up, and what keeps the readers out for it arrives only then, or the request that removes it is lost: the readers do
// not wait until its lease is over.
func TestWriterGivesUpInAnOutage(t *testing.T) {
	forEach(t, map[string]struct{ insists, withdraws dynamofake.Fault }{
		"is late":         {insists: dynamofake.Delay(1500 * time.Millisecond)},
		"is under way":    {insists: dynamofake.DelayReply(1500 * time.Millisecond)},
		"has no answer":   {insists: dynamofake.DeliverLate(1500*time.Millisecond, dynamofake.Reset())},
		"is not removed":  {withdraws: dynamofake.Fail(dynamofake.Reset())},
		"denied":          {withdraws: dynamofake.Fail(dynamofake.Denied())},
		"is removed late": {withdraws: dynamofake.DeliverLate(time.Second, dynamofake.Reset())},
	}, func(t *testing.T, h *harness, c struct{ insists, withdraws dynamofake.Fault }) {
		a, b, w := h.client(t), h.client(t), h.client(t)
		held := a.hold(t, "k", shared)
		var intents atomic.Int64
		w.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if isIntent(op) {
				switch intents.Add(1) {
				case 1:
					return c.insists
				case 2:
					return c.withdraws
				}
			}
			return dynamofake.Fault{}
		})
		_, err := w.Acquire(within(t, time.Second), "k")
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, holdfast.ErrHeld) || errors.Is(err, holdfast.ErrDisconnected) {
			t.Error(err)
		}
		if intents.Load() == 0 {
			t.Error("the writer did not insist")
		}
		time.Sleep(time.Second)
		mustRelease(t, held)
		if d := took(func() { mustRelease(t, b.hold(t, "k", shared)) }); d > lease/4 {
			t.Errorf("a reader waited for %v", d)
		}
		time.Sleep(2 * lease)
		if n := dynamolock.Leftovers(w.Client); n != 0 {
			t.Errorf("%d leftovers", n)
		}
	})
}

// isIntent reports whether a request writes an intent, or removes it, and does nothing else.
func isIntent(op dynamofake.Op) bool {
	in, ok := op.Input.(*dynamodb.UpdateItemInput)
	return ok && strings.Contains(*in.UpdateExpression, "Intent") && !strings.Contains(*in.UpdateExpression, ",")
}

// D88. Many writers wait behind readers, each for another key, and give up at the same time: no reader waits long for that, nor does Close.
func TestManyWritersGiveUp(t *testing.T) {
	const keys, short = 300, 5 * time.Second
	type end struct {
		closes   bool
		from, to time.Duration // nothing is answered, in reckoning from the end
	}
	forEach(t, map[string]end{
		"their ctx ends":              {},
		"their client closes":         {closes: true},
		"their ctx ends in silence":   {from: -time.Second, to: time.Second},
		"their client closes in it":   {closes: true, from: -time.Second, to: time.Second},
		"silence begins as it closes": {closes: true, from: time.Second / 10, to: time.Second / 2},
	}, func(t *testing.T, h *harness, c end) {
		r := h.client(t)
		w := h.client(t, func(o *dynamolock.Options) { o.Lease = short })
		ctx, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		var all sync.WaitGroup
		for i := range keys {
			r.hold(t, fmt.Sprint("k", i), shared)
			all.Go(func() {
				if _, err := w.Acquire(ctx, fmt.Sprint("k", i)); err == nil {
					t.Error("granted, beside a reader")
				}
			})
		}
		time.Sleep(3 * poll)
		slow := always(dynamofake.Delay(200 * time.Millisecond))
		w.conn.SetFault(slow)
		time.Sleep(short) // its requests show it
		var unheard atomic.Int64
		if c.to != 0 {
			time.AfterFunc(time.Second+c.from, func() {
				w.conn.SetFault(func(dynamofake.Op) dynamofake.Fault {
					unheard.Add(1)
					return dynamofake.Fail(dynamofake.Reset())
				})
			})
			time.AfterFunc(time.Second+c.to, func() { w.conn.SetFault(slow) })
		}
		time.Sleep(time.Second)
		unheard.Store(0)
		most := short / 2
		if c.to != 0 {
			most = c.to + short // some of it goes until it is heard that the silence is over
		}
		if c.closes {
			if d := took(func() { w.close(t) }); d > most {
				t.Errorf("Close took %v", d)
			}
		} else {
			giveUp()
			time.Sleep(most)
		}
		all.Wait()
		if n := unheard.Load(); n > 60 && c.from < 0 {
			t.Errorf("%d requests in a second of silence, for %d keys", n, keys)
		}
		for i := range keys {
			if h.item(fmt.Sprint("k", i))["holdfastIntent"] != nil {
				t.Fatal("readers are still kept out")
			}
		}
	})
}

// D89. A writer that has written no intent leaves none: it has nothing to see to when it closes.
func TestIntentThatWasNotWritten(t *testing.T) {
	forEach(t, map[string]dynamofake.Fault{
		"no connection": dynamofake.Refuse(),
		"throttled":     dynamofake.Fail(dynamofake.Throttled()),
	}, func(t *testing.T, h *harness, fault dynamofake.Fault) {
		a, w := h.client(t), h.client(t)
		a.hold(t, "k", shared)
		w.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if isIntent(op) {
				w.conn.SetFault(always(dynamofake.Refuse()))
				return fault
			}
			return dynamofake.Fault{}
		})
		if _, err := w.Acquire(within(t, 3*time.Second), "k"); err == nil {
			t.Error("granted, beside a reader")
		}
		var err error
		if d := took(func() { err = w.Close(context.WithoutCancel(t.Context())) }); d > lease/2 || err != nil {
			t.Errorf("Close took %v: %v", d, err)
		}
	})
}

// An intent is written once a heartbeat, also if its answers are lost, or reads do not show it yet.
func TestIntentsPerHeartbeat(t *testing.T) {
	type trouble struct {
		lag   time.Duration
		fault dynamofake.Fault
	}
	forEach(t, map[string]trouble{
		"none":              {},
		"lost answers":      {fault: dynamofake.LoseReply(io.ErrUnexpectedEOF)},
		"replicas that lag": {lag: 3 * poll},
	}, func(t *testing.T, h *harness, c trouble) {
		h.db.Lag = c.lag
		a, w := h.client(t), h.client(t)
		a.hold(t, "k", shared)
		var intents atomic.Int64
		w.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if isIntent(op) {
				intents.Add(1)
				return c.fault
			}
			return dynamofake.Fault{}
		})
		if _, err := w.Acquire(within(t, time.Minute), "k"); !errors.Is(err, holdfast.ErrHeld) {
			t.Error(err)
		}
		first := int64(c.lag / poll) // until one is seen
		if n, most := intents.Load(), int64(time.Minute/w.Options().Heartbeat)+2+first; n > most {
			t.Errorf("%d intents within a minute, want %d at most", n, most)
		}
	})
}

// An intent whose request is lost is sent with the next poll, so that the writer keeps its turn; also if the table refuses the one after it.
func TestIntentIsLost(t *testing.T) {
	forEach(t, map[string]int{"lost": 0, "lost, then throttled": 1}, func(t *testing.T, h *harness, throttled int) {
		a, w := h.client(t), h.client(t)
		a.hold(t, "k", shared)
		var mu sync.Mutex
		var sent []time.Time
		w.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if isIntent(op) {
				mu.Lock()
				defer mu.Unlock()
				switch sent = append(sent, time.Now()); {
				case len(sent) == 2:
					return dynamofake.Fail(dynamofake.Reset())
				case len(sent) > 2 && len(sent) <= 2+throttled:
					return dynamofake.Fail(dynamofake.Throttled())
				}
			}
			return dynamofake.Fault{}
		})
		if _, err := w.Acquire(within(t, time.Minute), "k"); !errors.Is(err, holdfast.ErrHeld) {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(sent) < 3+throttled {
			t.Fatalf("%d intents within a minute", len(sent))
		}
		for i := 2; i <= 2+throttled; i++ {
			if d := sent[i].Sub(sent[i-1]); d > 2*poll {
				t.Errorf("the one that was lost was sent again after %v", d)
			}
		}
	})
}
