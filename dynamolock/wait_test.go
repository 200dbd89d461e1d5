package dynamolock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

const poll = dynamolock.DefaultPoll

// A waiter notices a release within a poll period, give or take an eighth, however long the lease.
func TestReleaseIsNoticed(t *testing.T) {
	bubble(t, dynamolock.Options{Lease: time.Hour}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		for i := range 20 {
			lock := a.hold(t, "k")
			granted := b.waits(t, "k")
			time.Sleep(poll + time.Duration(i)*poll/7)
			mustRelease(t, lock)
			var next *holdfast.Lock
			late := took(func() { next = <-granted })
			if most := poll + poll/8 + h.db.Lag + 2*h.db.Latency; late > most {
				t.Errorf("noticed after %v, at most %v is allowed", late, most)
			}
			mustRelease(t, next)
		}
	})
}

// However many waiters a client has, one of them reads, once per period, and none writes.
func TestWaitersShareOnePoller(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.client(t), h.client(t)
		lock := a.hold(t, "k")
		time.Sleep(h.db.Lag)
		const waiters = 100
		var mu sync.Mutex
		var tokens []holdfast.Token
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() {
				lock, err := b.Acquire(t.Context(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				tokens = append(tokens, lock.Token())
				mu.Unlock()
				mustRelease(t, lock)
			})
		}
		time.Sleep(time.Minute)
		if calls := b.conn.Calls(); calls["UpdateItem"] != 2 {
			t.Errorf("only the first has reason to write, and asks for a turn: %v", calls)
		}
		b.conn.ResetCounts()
		const periods = 60
		time.Sleep(periods * poll)
		if calls := b.conn.Calls(); calls["GetItem"] > periods+3 || calls["GetItem"] < periods-3 || len(calls) != 1 {
			t.Errorf("%d waiters, %d periods: %v", waiters, periods, calls)
		}
		if read, _ := b.conn.Consumed(); read > (periods+3)*0.5 {
			t.Errorf("they cost %v read units", read)
		}
		mustRelease(t, lock)
		wg.Wait()
		for i := range tokens[1:] {
			if tokens[i] >= tokens[i+1] {
				t.Fatalf("tokens do not rise: %v", tokens)
			}
		}
	})
}

// If the first waiter gives up, the next one continues, and asks no sooner than the first would have.
func TestTheLineGoesOn(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.client(t), h.client(t)
		lock := a.hold(t, "k")
		var cancels []context.CancelFunc
		results := make(chan error)
		for range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			go func() {
				_, err := b.Acquire(ctx, "k")
				results <- err
			}()
			synctest.Wait()
		}
		time.Sleep(2 * poll)
		b.conn.ResetCounts()
		for _, cancel := range cancels[:9] {
			time.Sleep(poll / 10)
			cancel()
			if err := <-results; !errors.Is(err, context.Canceled) || !errors.Is(err, holdfast.ErrHeld) {
				t.Error(err)
			}
		}
		if calls := b.conn.Calls(); calls["GetItem"] > 2 || calls["UpdateItem"] != 0 {
			t.Errorf("nine gave up within a period: %v", calls)
		}
		mustRelease(t, lock)
		if err := <-results; err != nil {
			t.Error(err)
		}
		cancels[9]()
	})
}

// Waiters that begin at the same moment do not stay in step.
func TestPollsAreSpread(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		a.hold(t, "k")
		var mu sync.Mutex
		reads := make(map[int64]int) // tenth of a period: reads
		var clients []*client
		for range 40 {
			c := h.client(t)
			clients = append(clients, c)
			c.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
				if op.Name == "GetItem" {
					mu.Lock()
					defer mu.Unlock()
					reads[time.Now().UnixMilli()%poll.Milliseconds()*10/poll.Milliseconds()]++
				}
				return dynamofake.Fault{}
			})
			go func() { _, _ = c.Acquire(t.Context(), "k") }()
		}
		time.Sleep(20 * poll)
		mu.Lock()
		for tenth, n := range reads {
			if n > 40*20/2 {
				t.Errorf("%d of some 800 reads fall into tenth %d of the period: %v", n, tenth, reads)
			}
		}
		if len(reads) < 5 {
			t.Errorf("all reads fall into few parts of the period: %v", reads)
		}
		mu.Unlock()
		for _, c := range clients {
			c.close(t)
		}
	})
}

// The state of the connection, of clients that hold, wait, or do nothing.
func TestConnectionEvents(t *testing.T) {
	forEach(t, map[string]func(t *testing.T, c *client){
		"holding": func(t *testing.T, c *client) { c.hold(t, "k") },
		"waiting": func(t *testing.T, c *client) {
			go func() { _, _ = c.Acquire(t.Context(), "theirs") }()
			time.Sleep(poll)
		},
		"idle": func(t *testing.T, c *client) {
			time.AfterFunc(poll, func() {
				retry := once
				if _, err := c.TryAcquire(context.Background(), "k", retry); !errors.Is(err, holdfast.ErrDisconnected) {
					t.Error(err)
				}
			})
		},
	}, func(t *testing.T, h *harness, use func(t *testing.T, c *client)) {
		a, b := h.client(t), h.client(t)
		b.hold(t, "theirs")
		events := a.Events()
		<-events.Ready()
		use(t, a)
		a.conn.Cut()
		<-events.Disconnected()
		time.Sleep(lease)
		a.conn.Heal()
		d := took(func() { <-events.Ready() })
		if most := a.Options().Heartbeat + a.Options().Timeout + poll; d > most {
			t.Errorf("Ready after %v, want at most %v", d, most)
		}
		for leaseOf(h.item("k")) > 1 { // lost and not yet released: Close would not wait that long
			time.Sleep(poll)
		}
		time.Sleep(a.Options().Timeout)
	})
}

// A waiter reclaims a key that another client gets under its owner name; its own client's it does not wait for.
func TestReclaimWhileWaiting(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, c := h.pair(t)
		stranger := c.hold(t, "k")
		type result struct {
			lock *holdfast.Lock
			err  error
		}
		results := make(chan result, 2)
		wait := func(opts ...holdfast.Option) {
			go func() {
				lock, err := a.Acquire(t.Context(), "k", append(opts, holdfast.WithOwner("worker"))...)
				results <- result{lock, err}
			}()
			synctest.Wait()
		}
		wait(holdfast.WithReclaim())
		time.Sleep(poll)
		i := h.item("k")
		i["owner"], i["guid"] = &types.AttributeValueMemberS{Value: "worker"}, &types.AttributeValueMemberB{Value: []byte("another process")}
		h.set("k", i)
		var r result
		if d := took(func() { r = <-results }); r.err != nil || d > poll+time.Second {
			t.Fatalf("after %v: %v, %v", d, r.lock, r.err)
		}
		<-stranger.Done()
		mustRelease(t, r.lock)

		stranger = c.hold(t, "k")
		wait()
		time.Sleep(poll)
		wait(holdfast.WithReclaim())
		time.Sleep(poll)
		mustRelease(t, stranger)
		first, second := <-results, <-results
		if first.err != nil {
			first, second = second, first
		}
		if first.err != nil || !errors.Is(second.err, holdfast.ErrHeld) {
			t.Errorf("%v, %v; one has it, the other is told ErrHeld", first.err, second.err)
		}
		mustVerify(t, first.lock)
	})
}

// A waiter that rests long after a failure keeps nobody else of its client from the key.
func TestOthersGoOnWhileTheFirstRests(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		lock := a.hold(t, "k")
		type grant struct {
			who  string
			lock *holdfast.Lock
		}
		grants := make(chan grant)
		wait := func(who string, initial time.Duration) {
			go func() {
				lock, err := b.Acquire(t.Context(), "k", holdfast.WithRetry(holdfast.Retry{Initial: initial, Max: initial}))
				if err != nil {
					t.Error(err)
				}
				grants <- grant{who, lock}
			}()
			synctest.Wait()
		}
		wait("patient", time.Hour)
		wait("quick", time.Second)
		var asked atomic.Int32
		b.conn.SetFault(func(dynamofake.Op) dynamofake.Fault {
			if asked.Add(1) <= 2 {
				return dynamofake.Fail(dynamofake.Throttled())
			}
			return dynamofake.Fault{}
		})
		time.Sleep(5 * poll)
		wait("last", time.Second)
		if asked.Load() < 2 {
			t.Fatal("nobody was throttled")
		}
		mustRelease(t, lock)
		for _, want := range []string{"quick", "last", "patient"} {
			var got grant
			d := took(func() { got = <-grants })
			if most := 3 * poll; got.who != want || want != "patient" && d > most {
				t.Errorf("%s after %v, want %s", got.who, d, want)
			}
			mustRelease(t, got.lock)
		}
	})
}
