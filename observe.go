package holdfast

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// Observe yields the holder of a key: first the present state, then each change of the holders or their data, until ctx ends. That
// the key is free is a state: Held is false. Waiters are not reported; an Info has no Queue.
//
//	for info, err := range client.Observe(ctx, "leader") {
//		if err != nil {
//			return err // of ctx, ErrClosed, ErrDenied or the engine's own; it is the last pair
//		}
//		route(info.Held && !info.Stale, info.Data)
//	}
//
// When the loop's body returns, the next pair is the newest state: states in between are skipped, the latest never. Nothing is
// yielded twice in a row. Tokens rise unless the engine was wiped or restored, and an ended grant does not come back; locks of
// some other programs are exceptions. ZooKeeper and memlock report a change at once, DynamoDB at the next poll. A dead holder is
// reported until the engine could give the key to another.
//
// Observe goes on over outages and ends of sessions. While the engine is unreachable, the last state is yielded again with Stale
// set; a state without Stale follows. Observe ends with the error of ctx, [ErrClosed], or an error that a retry would not change,
// such as [ErrInvalid] or [ErrDenied]. The loop's body may end the loop and call anything. The client asks the engine once per
// key, however many observe it.
func (c *Client) Observe(ctx context.Context, key string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := c.observe(ctx, key, yield); err != nil {
			yield(Info{}, failed("observe", key, err))
		}
	}
}

// observe returns nil when the loop has been left.
func (c *Client) observe(ctx context.Context, key string, yield func(Info, error) bool) error {
	if err := c.checkKey(key, driver.Mode{}); err != nil {
		return err
	}
	// It is not counted in: the loop's body may close the client.
	ctx, done, err := c.bind(ctx)
	if err != nil {
		return err
	}
	defer done()
	o, err := c.join(key)
	if err != nil {
		return err
	}
	defer c.leave(o)
	var told *Info
	for {
		state, connected, changed, err := o.present()
		if ctx.Err() != nil {
			return c.explain(ctx, driver.ContextError(ctx))
		}
		if state != nil && (told == nil || !state.Same(*told)) {
			told = state
			info := *state
			info.Data, info.Holders = bytes.Clone(info.Data), slices.Clone(info.Holders)
			for i := range info.Holders {
				info.Holders[i].Data = bytes.Clone(info.Holders[i].Data)
			}
			if !yield(info, nil) {
				return nil
			}
			continue
		}
		if err != nil {
			return err
		}
		select {
		case <-connected:
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// errNotObserved is for an engine that gives no reason.
var errNotObserved = errors.New("the engine does not observe it any more")

// An observation is one call of the engine's Observe, for all observers of a key.
type observation struct {
	key       string
	feed      *feed
	observers int // guarded by the client's mu; 0: it is ending, and no observer joins it
	end       context.CancelFunc
	ended     chan struct{} // closed after ObserveEnded

	mu        strict.Mutex[strict.Observation]
	state     *Info           // nil before the first
	connected <-chan struct{} // closed when state is stale
	changed   chan struct{}
	err       error // what has ended it

	newest Token // the greatest token of all states, of grants whose tokens rise
}

// join takes part in the observation of a key, or begins one.
func (c *Client) join(key string) (*observation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	o := c.observed[key]
	if o == nil || o.observers == 0 {
		before := o
		o = &observation{key: key, feed: c.feed, ended: make(chan struct{}), changed: make(chan struct{})}
		c.observed[key] = o
		var ctx context.Context
		ctx, o.end = context.WithCancel(c.closing)
		// Close waits for this call of the engine, which ends at once, but not for the observers.
		c.calls.Go(func() {
			if before != nil {
				<-before.ended // the engine observes a key once at a time
			}
			c.feed.emit(Event{Kind: ObserveBegan, Key: key}, time.Time{})
			err := c.engine.Observe(ctx, key, o.tell)
			for errors.Is(err, driver.ErrHistoryLost) {
				o.mu.Lock()
				o.newest = 0 // accept smaller tokens again
				o.mu.Unlock()
				err = c.engine.Observe(ctx, key, o.tell)
			}
			c.feed.emit(Event{Kind: ObserveEnded, Key: key}, time.Time{})
			close(o.ended)
			c.mu.Lock()
			if c.observed[key] == o {
				delete(c.observed, key)
			}
			c.mu.Unlock()
			o.fail(cmp.Or(c.explain(ctx, err), errNotObserved))
		})
	}
	o.observers++
	return o, nil
}

// leave ends the observation with the last observer. It stays known until it has ended: the next one of the key waits for that.
func (c *Client) leave(o *observation) {
	c.mu.Lock()
	o.observers--
	last := o.observers == 0
	c.mu.Unlock()
	if last {
		o.end()
	}
}

// present returns the newest state, nil before the first; a channel that closes when the state becomes stale, nil if it is; and a
// channel that closes when there is a newer state, or err.
func (o *observation) present() (state *Info, connected, changed <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.connected:
		stale := *o.state
		stale.Stale = true
		return &stale, nil, o.changed, o.err
	default:
		return o.state, o.connected, o.changed, o.err
	}
}

// tell stores a state for the observers. The engine calls it, perhaps with mutexes of its own locked.
func (o *observation) tell(info Info) {
	o.mu.Lock()
	defer o.mu.Unlock()
	info, ok := o.withoutEnded(info)
	if !ok {
		return
	}
	before := o.connected
	o.connected = o.feed.connected()
	if o.state != nil && info.Same(*o.state) {
		if o.connected != before {
			o.wakeLocked()
		}
		return
	}
	event := Event{Kind: Observed, Key: info.Key, Owner: info.Owner, Token: info.Token}
	for grant := range info.Each() {
		event.Holders++
		if !grant.Unfenced {
			o.newest = max(o.newest, grant.Token)
		}
	}
	info.Queue = nil
	o.state = &info
	o.feed.emit(event, time.Time{})
	o.wakeLocked()
}

// withoutEnded leaves out grants that had ended before a state that was told: an old answer, or a late renewal, may show them again. It
// reports false if no grant is left.
func (o *observation) withoutEnded(info Info) (Info, bool) {
	if !info.Held || info.Unfenced || info.Token == 0 {
		return info, true
	}
	var live []Token
	if o.state != nil {
		for grant := range o.state.Each() {
			live = append(live, grant.Token)
		}
	}
	var kept []Holder
	for grant := range info.Each() {
		if grant.Token > o.newest || slices.Contains(live, grant.Token) {
			kept = append(kept, grant.Holder)
		}
	}
	if len(kept) > 0 && len(kept) < len(info.Holders) {
		return driver.Together(info.Key, info.Limit, kept), true
	}
	return info, len(kept) > 0
}

// fail ends the observation for all.
func (o *observation) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
	o.wakeLocked()
}

func (o *observation) wakeLocked() {
	close(o.changed)
	o.changed = make(chan struct{})
}
