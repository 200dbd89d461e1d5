package dynamolock_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// crowd are many clients of one table, with a count of their requests.
type crowd struct {
	clients []*client

	mu     sync.Mutex
	counts map[string]int // by operation
	beats  []int          // in each part of a heartbeat period
	busy   map[int64]int  // requests in each tenth of a second
}

// newCrowd makes the clients, all within one moment.
func newCrowd(t *testing.T, h *harness, n int) *crowd {
	t.Helper()
	o := &crowd{clients: make([]*client, n), counts: map[string]int{}, beats: make([]int, 20), busy: map[int64]int{}}
	for i := range o.clients {
		c := h.client(t)
		c.closed = true // by close
		period := c.Options().Heartbeat
		c.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			o.mu.Lock()
			defer o.mu.Unlock()
			now := time.Now()
			o.counts[op.Name]++
			o.busy[now.UnixMilli()/100]++
			if purposeOf(op) == beat {
				o.beats[now.UnixMilli()%period.Milliseconds()*int64(len(o.beats))/period.Milliseconds()]++
			}
			return dynamofake.Fault{}
		})
		o.clients[i] = c
	}
	t.Cleanup(func() { o.each(func(_ int, c *client) { _ = c.Close(context.Background()) }) })
	return o
}

// crowded is how many clients a test has: HOLDFAST_CLIENTS, or as many as usual.
func crowded(t *testing.T, usual int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("HOLDFAST_CLIENTS"), strconv.Itoa(usual)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// each runs f for all clients at the same time.
func (o *crowd) each(f func(i int, c *client)) {
	var all sync.WaitGroup
	for i, c := range o.clients {
		all.Go(func() { f(i, c) })
	}
	all.Wait()
}

// count returns what is sent while f runs, and the most within a tenth of a second.
func (o *crowd) count(f func()) (reads, writes, beats, busiest int) {
	o.mu.Lock()
	clear(o.counts)
	clear(o.beats)
	clear(o.busy)
	o.mu.Unlock()
	f()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range o.beats {
		beats += n
	}
	for _, n := range o.busy {
		busiest = max(busiest, n)
	}
	return o.counts["GetItem"], o.counts["UpdateItem"], beats, busiest
}

// Clients that all begin in the same moment spread their heartbeats over the period, and lose nothing.
func TestManyClients(t *testing.T) {
	alone(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		n := crowded(t, 200)
		before := heap()
		all := newCrowd(t, h, n)
		locks := make([]*holdfast.Lock, n)
		reads, writes, beats, _ := all.count(func() {
			all.each(func(i int, c *client) { locks[i] = c.hold(t, fmt.Sprint("key", i)) })
		})
		if reads > 0 || writes-beats > n {
			t.Errorf("%d reads and %d writes to acquire %d locks", reads, writes-beats, n)
		}
		period := all.clients[0].Options().Heartbeat
		time.Sleep(period)
		const periods = 4
		var busiest int
		_, writes, beats, busiest = all.count(func() { time.Sleep(periods * period) })
		synctest.Wait()
		t.Logf("%d clients with a lock each: %d bytes of heap each, %.2f heartbeats per lock and period, at most %d requests in 100 ms, %d on average",
			n, (heap()-before)/uint64(n), float64(beats)/float64(n*periods), busiest, writes/int(periods*period/(100*time.Millisecond)))
		if writes != beats || beats < n*periods || beats > n*periods*101/100+10 {
			t.Errorf("%d writes, %d heartbeats, of %d locks in %d periods", writes, beats, n, periods)
		}
		// The phases are random: six standard deviations.
		part := n / len(all.beats)
		if least, most := slices.Min(all.beats)/periods, slices.Max(all.beats)/periods; most-part > spread(part) || part-least > spread(part) {
			t.Errorf("heartbeats in each twentieth of the period, of %d on average: %v", part*periods, all.beats)
		}
		for _, lock := range locks {
			mustLive(t, lock)
		}
	})
}

// spread is how far a count of independent events may be from its mean.
func spread(mean int) int { return int(6*math.Sqrt(float64(mean))) + 1 }

// When the holders of many keys die at once, the key of each goes to its waiter, for a constant number of requests.
func TestManyExpireAtOnce(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		n := crowded(t, 40)
		dying, waiting := newCrowd(t, h, n), newCrowd(t, h, n)
		key := func(i int) string { return fmt.Sprint("key", i) }
		dying.each(func(i int, c *client) { c.hold(t, key(i)) })
		granted := make([]<-chan *holdfast.Lock, n)
		for i, c := range waiting.clients {
			granted[i] = c.waits(t, key(i))
		}
		time.Sleep(2 * lease)
		poll := waiting.clients[0].Options().Poll
		var took time.Duration
		reads, writes, beats, busiest := waiting.count(func() {
			for _, c := range dying.clients {
				c.conn.Cut()
			}
			began := time.Now()
			for _, got := range granted {
				mustLive(t, <-got)
			}
			took = time.Since(began)
		})
		polls := n * int(took/poll+1)
		t.Logf("%d holders died at once: all waiters had their locks after %v; %d reads (a poll per second: %d), %d writes besides %d heartbeats, at most %d requests in 100 ms",
			n, took, reads, polls, writes-beats, beats, busiest)
		if most := lease + 2*poll; took > most {
			t.Errorf("the last was granted after %v, want %v at most", took, most)
		}
		if reads > polls || writes-beats > 2*n {
			t.Error("that is more than is affected")
		}
		if mean := n / 10; busiest > 2*mean+spread(2*mean) {
			t.Errorf("%d requests in 100 ms, of %d on average: polls are not spread", busiest, mean)
		}
		for _, c := range dying.clients {
			c.conn.Heal()
		}
	})
}

// When the table can be reached again after an outage, clients do not all come at once, and none sends more than a few requests.
func TestManyReturnAtOnce(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		n := crowded(t, 100)
		all := newCrowd(t, h, n)
		locks := make([]*holdfast.Lock, n)
		all.each(func(i int, c *client) { locks[i] = c.hold(t, fmt.Sprint("key", i)) })
		time.Sleep(lease)
		// While it lasts, the fake does not ask the function that counts.
		for _, c := range all.clients {
			c.conn.ResetCounts()
			c.conn.Cut()
		}
		time.Sleep(lease / 2)
		during := 0
		for _, c := range all.clients {
			during += c.requests()
			c.conn.Heal()
		}
		period := all.clients[0].Options().Heartbeat
		_, writes, _, busiest := all.count(func() { time.Sleep(period) })
		t.Logf("%d clients cut off for %v sent %.1f requests each; in the %v after, %.2f each, at most %d in 100 ms",
			n, lease/2, float64(during)/float64(n), period, float64(writes)/float64(n), busiest)
		if during > 12*n || writes > 3*n {
			t.Error("that is too many")
		}
		if busiest > n/4+spread(n/4) {
			t.Errorf("%d of %d clients came within 100 ms", busiest, n)
		}
		for _, lock := range locks {
			mustLive(t, lock)
		}
	})
}

// When many clients want one key at once, a try costs each a constant number of requests, a poll one read per period,
// and a release a write of those few who see the key free before they can see that another has taken it.
func TestManyWantOneKey(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		n := crowded(t, 150)
		all := newCrowd(t, h, n)
		var mu sync.Mutex
		var won *holdfast.Lock
		try := func() {
			all.each(func(_ int, c *client) {
				lock, err := c.TryAcquire(t.Context(), "k")
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && won == nil:
					won = lock
				case !errors.Is(err, holdfast.ErrHeld):
					t.Errorf("%v", err)
				}
			})
		}
		reads, writes, _, _ := all.count(try)
		t.Logf("%d clients try a free key at once: %d reads, %d writes", n, reads, writes)
		if reads > 0 || writes > n {
			t.Error("that is more than one request each")
		}
		reads, writes, beats, _ := all.count(try)
		t.Logf("... and again, when they know it is held: %d reads, %d writes", reads, writes-beats)
		if reads > n || writes-beats > 1 {
			t.Error("that is more than one read each")
		}

		ctx, giveUp := context.WithCancel(t.Context())
		granted := make(chan *holdfast.Lock, n)
		var waiting sync.WaitGroup
		for _, c := range all.clients {
			waiting.Go(func() {
				if lock, err := c.Acquire(ctx, "k"); err == nil {
					granted <- lock
				}
			})
		}
		poll := all.clients[0].Options().Poll
		time.Sleep(20 * poll) // they have asked for a turn
		const periods = 10
		reads, writes, beats, busiest := all.count(func() { time.Sleep(periods * poll) })
		t.Logf("%d wait: %.2f reads each per poll, at most %d in 100 ms, %d writes besides the holder's heartbeats", n, float64(reads)/float64(n*periods), busiest, writes-beats)
		if reads > n*(periods+1) || writes != beats || busiest > n/10+spread(n/10)+1 {
			t.Errorf("that is too many")
		}
		var late time.Duration
		reads, writes, beats, _ = all.count(func() {
			mustRelease(t, won)
			late = took(func() { won = <-granted })
			time.Sleep(poll)
		})
		seeFree := n * int((h.db.Lag+2*h.db.Latency)/time.Millisecond) / int(poll/time.Millisecond)
		t.Logf("a release: granted after %v, %d reads, %d writes besides %d heartbeats", late, reads, writes-beats, beats)
		if reads > 3*n || writes-beats > seeFree+spread(seeFree)+2 {
			t.Errorf("that is too many, about %d writes are to be expected", seeFree)
		}
		mustLive(t, won)
		giveUp()
		waiting.Wait()
	})
}
