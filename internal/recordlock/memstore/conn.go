package memstore

import (
	"context"
	"errors"
	"iter"
	"maps"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/recordlock"
)

// An Op is a request.
type Op struct {
	Name, Key string            // "Read", "Take", "Swap", "Renew", "Put" or "List"
	Fresh     bool              // of a Read
	Holder    recordlock.Holder // of a Take or a Renew
	Old, Next recordlock.Record // of a Swap or a Put
}

// A Fault is what happens to one request. A request that gets no answer blocks until its ctx ends, unless Err is set.
type Fault struct {
	Lose      bool          // it does not arrive
	LoseReply bool          // the store carries it out, and the answer does not arrive
	Late      time.Duration // it arrives so much later
	Copy      time.Duration // a copy arrives so much after the request; 0: there is no copy
	Delay     time.Duration // of the answer
	Err       error         // in place of the answer; of class Unknown unless it is a [*recordlock.Error] or Permanent
	Permanent bool
}

// A Conn is a client's connection to a store.
type Conn struct {
	store *Store

	mu            sync.Mutex
	cut           bool
	stalled       chan struct{} // closed when the stall ends; nil if there is none
	fault         func(Op) Fault
	behind        func() time.Duration
	calls         map[string]int // by the names of operations
	inFlight, top int
}

// Conn returns a new connection.
func (s *Store) Conn() *Conn { return &Conn{store: s, calls: make(map[string]int)} }

// Cut loses all requests and answers in flight, and those that follow.
func (c *Conn) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
}

// Stall holds up all requests and answers.
func (c *Conn) Stall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stalled == nil {
		c.stalled = make(chan struct{})
	}
}

// Heal ends Cut and Stall.
func (c *Conn) Heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = false
	if c.stalled != nil {
		close(c.stalled)
		c.stalled = nil
	}
}

// SetFault has f choose the fault of each request; nil: there is none.
func (c *Conn) SetFault(f func(Op) Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = f
}

// SetBehind has f choose how far a read that is not fresh is behind; nil: by the store's Lag.
func (c *Conn) SetBehind(f func() time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.behind = f
}

// Calls returns how many requests were sent since the last call, by the names of operations, and how many were in flight at once.
func (c *Conn) Calls() (calls map[string]int, peak int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls, peak = maps.Clone(c.calls), c.top
	clear(c.calls)
	c.top = c.inFlight
	return calls, peak
}

// begin notes a request, and chooses its fault.
func (c *Conn) begin(op Op) (f Fault) {
	c.mu.Lock()
	c.calls[op.Name]++
	c.inFlight++
	c.top = max(c.top, c.inFlight)
	choose := c.fault
	c.mu.Unlock()
	if choose != nil {
		f = choose(op)
	}
	return f
}

func (c *Conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight--
}

// pass carries a request or its answer over the connection. It returns false if that was lost.
func (c *Conn) pass(takes time.Duration) bool {
	time.Sleep(takes)
	for {
		c.mu.Lock()
		cut, stalled := c.cut, c.stalled
		c.mu.Unlock()
		if cut || stalled == nil {
			return !cut
		}
		<-stalled
	}
}

// request sends a request. It arrives also when ctx ends before.
func request[T any](ctx context.Context, c *Conn, op Op, serve func() T) (out T, err error) {
	if ctx.Err() != nil {
		return out, &recordlock.Error{Class: recordlock.NotDone, Err: ctx.Err()}
	}
	f := c.begin(op)
	defer c.end()
	answers := make(chan T, 1)
	go func() {
		if f.Lose || f.Err != nil && !f.LoseReply || !c.pass(c.store.Latency/2) {
			return
		}
		time.Sleep(f.Late)
		answer := serve()
		if !f.LoseReply && c.pass(c.store.Latency/2+f.Delay) {
			answers <- answer
		}
		if f.Copy > 0 {
			time.Sleep(f.Copy)
			serve()
		}
	}()
	if f.Err != nil && f.LoseReply && f.Late == 0 {
		time.Sleep(c.store.Latency)
	}
	unknown := errors.New("no answer")
	switch e := (*recordlock.Error)(nil); {
	case f.Permanent, errors.As(f.Err, &e):
		return out, f.Err
	case f.Err != nil:
		return out, &recordlock.Error{Class: recordlock.Unknown, Err: f.Err}
	}
	select {
	case out = <-answers:
		return out, nil
	case <-ctx.Done():
		return out, &recordlock.Error{Class: recordlock.Unknown, Err: errors.Join(unknown, ctx.Err())}
	}
}

// CheckKey implements recordlock.Store.
func (c *Conn) CheckKey(key string) error { return checkKey("key", key) }

func checkKey(field, key string) error {
	switch {
	case len(key) > 2048:
		return driver.Invalid(field, "%d bytes, at most 2048 are allowed", len(key))
	case !utf8.ValidString(key):
		return driver.Invalid(field, "it is not valid UTF-8")
	}
	return nil
}

// An answer is what the store says to a write.
type answer struct {
	now  recordlock.Record
	done bool
}

// Read implements recordlock.Store.
func (c *Conn) Read(ctx context.Context, key string, fresh bool) (recordlock.Record, error) {
	return request(ctx, c, Op{Name: "Read", Key: key, Fresh: fresh}, func() recordlock.Record {
		if fresh {
			return c.store.record(key, 0)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.behind == nil {
			return c.store.record(key, c.store.Lag)
		}
		return c.store.record(key, c.behind())
	})
}

// Take implements recordlock.Store.
func (c *Conn) Take(ctx context.Context, key string, h recordlock.Holder, m driver.Mode) (recordlock.Record, bool, error) {
	a, err := request(ctx, c, Op{Name: "Take", Key: key, Holder: h}, func() (a answer) { a.now, a.done = c.store.take(key, h, m); return a })
	return a.now, a.done, err
}

// Swap implements recordlock.Store.
func (c *Conn) Swap(ctx context.Context, key string, old, next recordlock.Record) (recordlock.Record, bool, error) {
	op := Op{Name: "Swap", Key: key, Old: old, Next: next}
	a, err := request(ctx, c, op, func() (a answer) { a.now, a.done = c.store.swap(key, old, next); return a })
	return a.now, a.done, err
}

// Renew implements recordlock.Store.
func (c *Conn) Renew(ctx context.Context, key string, h recordlock.Holder, m driver.Mode) (recordlock.Record, bool, error) {
	a, err := request(ctx, c, Op{Name: "Renew", Key: key, Holder: h}, func() (a answer) { a.now, a.done = c.store.renew(key, h, m); return a })
	return a.now, a.done, err
}

// Put implements recordlock.RevisionStore.
func (c *Conn) Put(ctx context.Context, key string, version any, next recordlock.Record) (recordlock.Record, bool, error) {
	op := Op{Name: "Put", Key: key, Old: c.store.Record(key), Next: next}
	a, err := request(ctx, c, op, func() (a answer) { a.now, a.done = c.store.replace(key, version, next); return a })
	return a.now, a.done, err
}

// Now implements recordlock.RevisionStore.
func (c *Conn) Now() time.Time { return time.Now() }

// List implements recordlock.Store.
func (c *Conn) List(ctx context.Context, prefix string) iter.Seq2[recordlock.Keyed, error] {
	return func(yield func(recordlock.Keyed, error) bool) {
		err := checkKey("prefix", prefix)
		var all []recordlock.Keyed
		if err == nil {
			all, err = request(ctx, c, Op{Name: "List"}, func() []recordlock.Keyed { return c.store.list(prefix) })
		}
		if err != nil {
			yield(recordlock.Keyed{}, err)
			return
		}
		for _, k := range all {
			if !yield(k, nil) {
				return
			}
		}
	}
}
