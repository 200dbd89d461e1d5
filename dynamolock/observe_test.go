package dynamolock_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// observing collects what a client is told of a key, until end is called.
type observing struct {
	mu   sync.Mutex
	told []holdfast.Info
	at   []time.Time
	end  context.CancelFunc
}

func (c *client) observe(t testing.TB, key string) *observing {
	ctx, cancel := context.WithCancel(t.Context())
	o := &observing{end: cancel}
	go func() {
		for info, err := range c.Observe(ctx, key) {
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			o.mu.Lock()
			o.told, o.at = append(o.told, info), append(o.at, time.Now())
			o.mu.Unlock()
		}
	}()
	return o
}

// tokens are those told, 0 for nobody; it returns when the last of them was told, too.
func (o *observing) tokens() (tokens []holdfast.Token, last time.Time) {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, info := range o.told {
		tokens = append(tokens, info.Token)
	}
	if len(o.at) > 0 {
		last = o.at[len(o.at)-1]
	}
	return tokens, last
}

// A silent holder is told of until the end of its lease, and not a poll longer; whoever was told that it is gone can
// have the key at once.
func TestObserveExpiry(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		h.db.Latency = 0
		a, b := h.client(t), h.client(t)
		o := b.observe(t, "k")
		time.Sleep(time.Second) // it has told that nobody holds the key
		lock := a.hold(t, "k")
		time.Sleep(b.Options().Poll)
		a.conn.Cut()
		silent := time.Now()
		<-lock.Done()
		time.Sleep(lease)
		told, at := o.tokens()
		if len(told) != 3 || told[1] != lock.Token() || told[2] != 0 {
			t.Fatalf("told %v", told)
		}
		// It was seen within a poll of its last heartbeat.
		if d := at.Sub(silent); d < lease-a.Options().Heartbeat || d > lease+b.Options().Poll {
			t.Errorf("told after %v, the lease is %v", d, lease)
		}
		next, err := b.TryAcquire(t.Context(), "k")
		if err != nil {
			t.Fatalf("nobody holds the key, and a try fails: %v", err)
		}
		a.conn.Heal()
		time.Sleep(2 * lease)
		if told, _ := o.tokens(); len(told) != 4 || told[3] != next.Token() {
			t.Errorf("told %v", told)
		}
		o.end()
	})
}

// stopping is a connection whose process is stopped when the n-th answer to a read has arrived.
type stopping struct {
	dynamolock.API
	reads atomic.Int64
	n     int64
	while time.Duration
}

func (c *stopping) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out, err := c.API.GetItem(ctx, in, opts...)
	if c.reads.Add(1) == c.n {
		time.Sleep(c.while)
	}
	return out, err
}

// An observer that was stopped for longer than a lease does not take what it saw before for the state of now.
func TestObserveAfterAPause(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a := h.client(t)
		b := h.clientOn(t, nil, func(conn *dynamofake.Client) dynamolock.API {
			return &stopping{API: conn, n: 3, while: 2 * lease}
		})
		lock := a.hold(t, "k")
		o := b.observe(t, "k")
		time.Sleep(6 * lease)
		if told, _ := o.tokens(); len(told) != 1 || told[0] != lock.Token() {
			t.Errorf("told %v; the holder lives", told)
		}
		mustLive(t, lock)
		o.end()
	})
}

// TestObserveStrangers: another program's holder is silent for a lease, so that the key could be had, and
// goes on when nobody has taken it; and one begins to count at 1, since the item was deleted.
func TestObserveStrangers(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		h.db.Latency = 0
		c := h.client(t)
		o := c.observe(t, "k")
		time.Sleep(time.Second)
		h.set("k", npm("7", "10000", "a"))
		time.Sleep(20 * time.Second)
		h.set("k", npm("7", "10000", "b"))
		time.Sleep(c.Options().Poll)
		if told, _ := o.tokens(); !slices.Equal(told, []holdfast.Token{0, 7, 0, 7}) {
			t.Errorf("told %v of a holder that has come back to life", told)
		}
		h.set("k", npm("1", "10000", "c"))
		time.Sleep(c.Options().Poll)
		if told, _ := o.tokens(); !slices.Equal(told, []holdfast.Token{0, 7, 0, 7, 1}) {
			t.Errorf("told %v of a holder that counts from 1", told)
		}
		o.end()
	})
}

// An observer that survives a wiped or restored table tells of the new holder, whose token is lower; a replica that lags behind changes
// nothing.
func TestObserveLostHistory(t *testing.T) {
	forEach(t, map[string]bool{"restored": false, "wiped": true}, func(t *testing.T, h *harness, wiped bool) {
		a, o := h.client(t), h.client(t)
		mustRelease(t, a.hold(t, "k"))
		backup := h.item("k")
		for range 5 {
			mustRelease(t, a.hold(t, "k"))
		}
		lock := a.hold(t, "k")
		told := o.observe(t, "k")
		time.Sleep(2 * poll)
		stale := npm("1", "20000", "g") // of a replica
		live := h.item("k")
		h.set("k", stale)
		var reads atomic.Int64
		o.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if reads.Add(1) == 2 {
				h.db.SetItem(tableName, live)
			}
			return dynamofake.Fault{}
		})
		time.Sleep(4 * poll)
		if tokens, _ := told.tokens(); !slices.Equal(tokens, []holdfast.Token{lock.Token()}) {
			t.Errorf("a stale read: told %v", tokens)
		}
		a.dies(t)
		if wiped {
			backup["fencingToken"] = n("7")
		}
		h.db.SetItem(tableName, backup)
		b := h.client(t)
		next := b.hold(t, "k", holdfast.WithOwner("the next"))
		time.Sleep(3 * poll)
		told.mu.Lock()
		last := told.told[len(told.told)-1]
		told.mu.Unlock()
		if last.Token != next.Token() || next.Token() >= lock.Token() || last.Owner != "the next" {
			t.Errorf("told %+v, the holder's token is %d, and was %d", last, next.Token(), lock.Token())
		}
		told.end()
	})
}
