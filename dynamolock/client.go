package dynamolock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// A Client takes locks in one table. Its methods are those of
// [holdfast.Client], which the package documentation lists, and those below.
type Client struct {
	*holdfast.Client

	engine *engine
}

// New makes a client for a table that exists: see [CreateTable]. It looks at the
// table first, waits while it is being created, for as long as ctx or
// [Options.OpenTimeout] allows, and then is Ready.
//
// It fails with [holdfast.ErrInvalid] for options out of bounds, before anything
// is sent; with [ErrTable] if there is no such table, or one with other keys;
// with [holdfast.ErrDenied] if the credentials are missing or do not suffice;
// and with [holdfast.ErrDisconnected], and what ctx ended with, if nothing
// answers in time. ddb is used until Close, and is not closed.
func New(ctx context.Context, ddb API, options *Options) (*Client, error) {
	var o Options
	if options != nil {
		o = *options
	}
	if ddb == nil {
		return nil, fmt.Errorf("dynamolock: %w", driver.Invalid("ddb", "it is nil"))
	}
	if err := o.fill(); err != nil {
		return nil, fmt.Errorf("dynamolock: %w", err)
	}
	var b *engine
	portable, err := holdfast.New(driver.Config{
		Owner:  o.Owner,
		Margin: o.Margin,
		AnyKey: true,
		Logger: o.Logger,
		Clock:  clock.From(ctx),
	}, o.Hooks, func(host driver.Host) (driver.Driver, error) {
		b = newEngine(host, ddb, o)
		if err := b.open(ctx); err != nil {
			return nil, fmt.Errorf("dynamolock: %w", err)
		}
		host.SetConnected(true)
		return b, nil
	})
	if err != nil {
		return nil, err
	}
	return &Client{Client: portable, engine: b}, nil
}

// Options returns the options in force, defaults filled in.
func (c *Client) Options() Options { return c.engine.opts }

// engine implements [driver.Driver].
type engine struct {
	host  driver.Host
	api   API
	opts  Options
	id    string // the beginning of all guids of this client
	link  *link
	tasks *tasks
	beats atomic.Uint64 // numbers the holds, to spread their heartbeats
	ttl   timeToLive
	pulse pulse

	errands  *errands
	releases chan struct{} // has what is under way

	mu     sync.Mutex
	lines  map[string]*line
	grants map[string]*hold // those that somebody has; nil for one that somebody waits for
}

func newEngine(host driver.Host, api API, o Options) *engine {
	b := &engine{
		host:     host,
		api:      api,
		opts:     o,
		id:       newClientID(),
		tasks:    newTasks(),
		releases: make(chan struct{}, mostReleases),
		lines:    make(map[string]*line),
		grants:   make(map[string]*hold),
	}
	b.errands = newErrands(b)
	b.beats.Store(rand.Uint64())
	b.link = &link{host: host, first: o.Poll, most: max(o.Poll, o.Heartbeat), probe: b.probe}
	return b
}

// open waits until the table can be used.
func (b *engine) open(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.opts.OpenTimeout)
		defer cancel()
	}
	t := &table{ddb: b.api, name: b.opts.Table, keys: b.opts.Keys, timeout: b.opts.Timeout, heard: b.pulse.heard}
	if err := t.wait(ctx); err != nil {
		return err
	}
	b.learnTTL(ctx)
	return nil
}

// probe asks whether the table can be used; the call itself tells the link.
func (b *engine) probe(key attributes) {
	if b.tasks.begin() {
		defer b.tasks.end()
		_, _ = b.get(b.tasks.open, key, false)
	}
}

// CheckKey implements driver.Driver.
func (b *engine) CheckKey(key string) error {
	_, err := b.opts.Keys.encode(key)
	return err
}

// Close implements driver.Driver. Locks have been released, or are being so
// no longer; what may still be under way is the undoing of acquisitions that
// were given up. That takes two leases at the most.
func (b *engine) Close(ctx context.Context) error {
	b.link.close()
	limit, cancel := context.WithTimeout(ctx, 2*b.opts.Lease)
	defer cancel()
	b.errands.settle(limit)
	b.tasks.close(limit)
	err := b.errands.remaining()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	return err
}

// firstBeat says how long after its grant a lock's first heartbeat is due. The
// multiples of the golden ratio, less their whole parts, fill the period
// evenly, however many locks there are and however suddenly they came.
func (b *engine) firstBeat() time.Duration {
	const golden = 0x9E3779B97F4A7C15 // 2^64 / golden ratio
	part := float64(b.beats.Add(1)*golden) / (1 << 64)
	return time.Duration((1 - part) * float64(b.opts.Heartbeat))
}
