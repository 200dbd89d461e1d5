package dynamolock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// engine implements [driver.Driver].
type engine struct {
	host   driver.Host
	api    API
	opts   Options
	id     string // the beginning of all guids of this client
	health *health
	tasks  *tasks
	beats  atomic.Uint64 // numbers the holds, to spread their heartbeats
	ttl    timeToLive
	pulse  pulse

	errands  *errands
	releases chan struct{} // has what is under way

	mu     sync.Mutex
	lines  map[string]*line
	grants map[string]*hold // those that somebody has; nil for one that somebody waits for
}

func newEngine(host driver.Host, api API, o Options) *engine {
	e := &engine{
		host:     host,
		api:      api,
		opts:     o,
		id:       newClientID(),
		tasks:    newTasks(),
		releases: make(chan struct{}, mostReleases),
		lines:    make(map[string]*line),
		grants:   make(map[string]*hold),
	}
	e.errands = newErrands(e)
	e.beats.Store(rand.Uint64())
	e.health = &health{host: host, first: o.Poll, most: max(o.Poll, o.Heartbeat), probe: e.probe}
	return e
}

// open waits until the table can be used.
func (e *engine) open(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.opts.OpenTimeout)
		defer cancel()
	}
	t := &table{ddb: e.api, name: e.opts.Table, keys: e.opts.Keys, timeout: e.opts.Timeout, heard: e.pulse.heard}
	if err := t.wait(ctx); err != nil {
		return err
	}
	e.learnTTL(ctx)
	return nil
}

// probe asks whether the table can be used; the call itself tells health.
func (e *engine) probe(key attributes) {
	if e.tasks.begin() {
		defer e.tasks.end()
		_, _ = e.get(e.tasks.open, key, false)
	}
}

// CheckKey implements driver.Driver.
func (e *engine) CheckKey(key string) error {
	_, err := e.opts.Keys.encode(key)
	return err
}

// Close implements driver.Driver. Locks have been released, or are being so
// no longer; what may still be under way is the undoing of acquisitions that
// were given up. That takes two leases at the most.
func (e *engine) Close(ctx context.Context) error {
	e.health.close()
	limit, cancel := context.WithTimeout(ctx, 2*e.opts.Lease)
	defer cancel()
	e.errands.settle(limit)
	e.tasks.close(limit)
	err := e.errands.remaining()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	return err
}

// firstBeat says how long after its grant a lock's first heartbeat is due. The
// multiples of the golden ratio, less their whole parts, fill the period
// evenly, however many locks there are and however suddenly they came.
func (e *engine) firstBeat() time.Duration {
	const golden = 0x9E3779B97F4A7C15 // 2^64 / golden ratio
	part := float64(e.beats.Add(1)*golden) / (1 << 64)
	return time.Duration((1 - part) * float64(e.opts.Heartbeat))
}

// enter notes a grant that somebody waits for.
func (e *engine) enter(grant string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.grants[grant] = nil
}

// forget notes that nobody has a grant any more, nor will.
func (e *engine) forget(grant string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.grants, grant)
}

// alive reports whether somebody has a grant, or waits for it.
func (e *engine) alive(grant string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.grants[grant]
	return ok
}

// holding reports whether this client has the key under an owner name.
func (e *engine) holding(name, owner string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.grants {
		if h != nil && h.name == name && h.owner == owner {
			return true
		}
	}
	return false
}
