package dynamolock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/task"
)

// engine implements [driver.Driver].
type engine struct {
	host   driver.Host
	api    API
	opts   Options
	times  times
	id     string // the beginning of all guids of this client
	health *health
	tasks  *task.Group
	beats  atomic.Uint64 // numbers the holds, to spread their heartbeats
	ttl    timeToLive
	pulse  pulse
	reach  reach

	calendar calendar

	leftovers *leftovers
	releases  limiter

	grants  *grants
	lines   *lines
	streaks *streaks
	turns   *turns
}

func newEngine(host driver.Host, api API, o Options) *engine {
	e := &engine{
		host:   host,
		api:    api,
		opts:   o,
		times:  timesOf(&o),
		id:     newClientID(),
		tasks:  task.NewGroup(),
		grants: newGrants(),
		reach:  reach{timeout: o.Timeout},
	}
	e.lines = newLines(e)
	e.streaks = newStreaks(e)
	e.turns = newTurns(e)
	e.leftovers = newLeftovers(e)
	e.releases = limiter{engine: e, most: maxReleases, mostSlow: maxSlow, mostLate: maxLate}
	e.beats.Store(rand.Uint64())
	e.health = newHealth(e)
	return e
}

// open waits until the table can be used.
func (e *engine) open(ctx context.Context) error {
	rounds := roundsOf(ctx)
	ctx, cancel := e.opts.open(ctx)
	defer cancel()
	t := &table{rounds: rounds, ddb: e.api, name: e.opts.Table, keys: e.opts.Keys, timeout: e.opts.Timeout, reach: &e.reach, heard: e.pulse.heard, dated: e.dated, log: e.host.Logger()}
	if err := t.wait(ctx); err != nil {
		e.reach.close()
		return ended(ctx, err)
	}
	e.learnTTL(ctx)
	return nil
}

// dated notes the date of an answer.
func (e *engine) dated(out any) { e.calendar.heard(out, e.host.Now()) }

// probe reads a key to find out whether the table can be used. The call itself reports
// the result to health.
func (e *engine) probe(key attributes) {
	if e.tasks.Begin() {
		defer e.tasks.End()
		_, _ = e.get(e.tasks.Open(), key, false)
	}
}

// CheckKey implements driver.Driver.
func (e *engine) CheckKey(key string, mode driver.Mode) error {
	if mode.Shared && e.opts.Mode != FailOpen {
		return driver.Invalid(mode.Option(), "in mode %v keys cannot be shared: the entry of a holder that died would stay", e.opts.Mode)
	}
	_, err := e.opts.Keys.encode(key)
	return err
}

// Close implements driver.Driver. All releases have come to an end. What may still be
// under way is the undoing of acquisitions that were given up, which takes two leases at
// most.
func (e *engine) Close(ctx context.Context) error {
	e.health.close()
	limit, cancel := context.WithTimeout(ctx, e.times.close)
	defer cancel()
	e.leftovers.settle(limit)
	e.tasks.Close(limit)
	e.reach.close()
	err := e.leftovers.remaining()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	return err
}

// detach returns a context that has the values of ctx, but ends with the tasks.
func (e *engine) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(e.tasks.Context(), cancel)
	return ctx, func() { stop(); cancel() }
}
