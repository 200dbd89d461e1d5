package holdfast_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// Readers that come and go never see an event twice, out of order or after a gap.
func TestQueueUnderConcurrency(t *testing.T) {
	const n, writers = 2000, 4
	l := new(engine).open(t, driver.Config{})
	events := l.Events()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range n / writers {
				acquire(t, l, fmt.Sprintf("%d/%d", w, i), holdfast.WithTTL(1))
			}
		})
	}
	last := uint64(0)
	for i := range n {
		select {
		case event := <-events.TTLExpired():
			if event.Seq <= last {
				t.Fatalf("event %d has number %d after %d", i, event.Seq, last)
			}
			last = event.Seq
		case <-time.After(10 * time.Second):
			t.Fatalf("%d of %d events came", i, n)
		}
	}
	wg.Wait()
	events.Close()
}

// Close of the subscription, or of the client, while events pour in.
func TestCloseOfEventsWhilePushing(t *testing.T) {
	for range 20 {
		l := new(engine).open(t, driver.Config{})
		var wg sync.WaitGroup
		for range 4 {
			events := l.Events()
			wg.Go(func() {
				for range 50 {
					acquire(t, l, "k", holdfast.WithTTL(1))
				}
				events.Close()
				ended(t, events)
			})
		}
		wg.Wait()
		rest := l.Events()
		mustClose(t, l)
		ended(t, rest)
	}
}

// ended insists that a subscription is over and that none of its channels can be read.
func ended(t testing.TB, events *holdfast.Events) {
	t.Helper()
	select {
	case <-events.Done():
	default:
		t.Error("Done is open")
	}
	for _, ch := range []<-chan holdfast.Event{events.TTLExpired(), events.Lost(), events.Ready(), events.Disconnected()} {
		select {
		case event, open := <-ch:
			t.Errorf("after the end there is %+v, %v", event, open)
		default:
		}
	}
}

func TestEventKindNames(t *testing.T) {
	for kind, want := range map[holdfast.EventKind]string{
		holdfast.Ready: "ready", holdfast.Disconnected: "disconnected", holdfast.TTLExpired: "ttl expired",
		holdfast.Lost: "lost", holdfast.Heartbeat: "heartbeat", 0: "unknown", -1: "unknown", 99: "unknown",
	} {
		if kind.String() != want {
			t.Errorf("%d: %q, want %q", kind, kind, want)
		}
	}
}

// The connection is reported for as long as Close waits for a lead, whose lock lives on.
func TestConnectionWhileCloseWaitsForLead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{}
		var told []bool
		c := renewing(t, b, driver.Config{}, only(func(e holdfast.Event) { told = append(told, e.Kind == holdfast.Ready) }, holdfast.Ready, holdfast.Disconnected))
		b.host.SetConnected(true)
		events := c.Events()
		<-events.Ready()
		result := make(chan error, 1)
		go func() {
			result <- election(t, c, nil).Run(t.Context(), func(ctx context.Context, term *holdfast.Lock) error {
				<-ctx.Done()
				b.host.SetConnected(false)
				select {
				case <-events.Disconnected():
				default:
					t.Error("the connection is gone, and the lock lives on: no event")
				}
				if term.Err() != nil {
					t.Errorf("the lock: %v", term.Err())
				}
				b.host.SetConnected(true)
				return ctx.Err()
			})
		}()
		synctest.Wait()
		stop := b.stop
		b.stop = func(ctx context.Context) error { b.host.SetConnected(false); return stop(ctx) } // as engines do that hang up
		mustClose(t, c)
		<-result
		if want := []bool{true, false, true}; !slices.Equal(told, want) {
			t.Errorf("OnEvent receives %v, want %v", told, want)
		}
	})
}
