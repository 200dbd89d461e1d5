package holdfast

import (
	"context"
	"log/slog"
	"time"
)

// Hooks are functions that a client calls as things happen in it: for metrics,
// traces and logs. They go into the Options of an engine. Any may be nil, as all
// are by default; what nobody asked for costs neither memory nor a goroutine.
// [JoinHooks] makes one value of several.
//
// They are called one at a time, on a goroutine of their own, in the order of
// what happened, and the Time of what they are told never goes back. So
//
//   - Started comes before all else of an acquisition, and exactly one of Granted
//     and Failed ends it, before Close returns;
//   - Queued comes between the two;
//   - Ended comes after the Granted of the same hold, once, before Close returns;
//   - Connection tells each change once, beginning with the first state.
//
// By when a call is made is not promised: Acquire may return before Granted is
// called, and Done may close before Ended is. Nothing waits for a hook but the
// next one, and Close, which returns when all that were due have been called: so
// a hook must not call Close. Anything else it may do. What waits for a slow hook
// is kept in memory, without limit. A panic in a hook is not recovered.
type Hooks struct {
	// Started tells that Acquire, TryAcquire or AcquireAny has been called and has
	// begun: its input is valid, its ctx not done, and the client not closed.
	// Calls that fail before that are told of nowhere. Do calls Acquire.
	Started func(Acquisition)

	// Queued tells that a waiter has learned its place in the queue for a key: as
	// it enters, which it does again when its session has ended, and whenever it
	// has to look again. It is not told of each step forward, nor when nobody is
	// ahead. On DynamoDB there is no queue, and this is never called.
	Queued func(Place)

	// Granted tells that an acquisition has come to its lock. A grant that was over
	// before it could be handed out is none.
	Granted func(Acquisition)

	// Failed tells that an acquisition has come to an error.
	Failed func(Acquisition)

	// Ended tells that a lock has ended for its holder, in whatever way. That the
	// engine has confirmed a release is not waited for.
	Ended func(Ending)

	// Heartbeat tells what came of a request that was to keep a lease alive. On
	// ZooKeeper a session has heartbeats while it holds locks, unless they are
	// turned off; on DynamoDB each lock has its own, unless it never expires
	// (FailClosed); memlock sends none. What was still on its way when the lock was
	// given back or the client closed is left out.
	Heartbeat func(Heartbeat)

	// Connection tells that the engine has become reachable, or unreachable.
	Connection func(Connection)
}

// An Acquisition is one call of Acquire, TryAcquire or AcquireAny.
type Acquisition struct {
	// ID numbers the acquisitions of a client, from 1. A Place and an Ending have
	// that of the acquisition which they belong to.
	ID    uint64
	Time  time.Time     // when it started, was granted, or failed
	Key   string        // for AcquireAny only in Granted; else ""
	Owner string        // the owner name of the hold
	Wait  bool          // it waits for holders: Acquire, or AcquireAny with WithWait or WithRetry
	Took  time.Duration // from Started to Time; 0 in Started
	Token Token         // in Granted; else 0
	Err   error         // in Failed: what the call returns; else nil
}

// A Place is where a waiter stands in the queue for a key.
type Place struct {
	ID    uint64 // of the acquisition
	Time  time.Time
	Key   string
	Owner string
	Ahead int // how many are before it, the holder included: 1 or more
}

// An Ending is the end of a hold.
type Ending struct {
	ID    uint64 // of the acquisition that it stems from
	Time  time.Time
	Key   string
	Owner string
	Token Token
	Held  time.Duration // from the grant to the end
	// Err is what Lock.Err returns: ErrReleased, ErrTTLExpired, or a [*LostError]
	// with the cause.
	Err error
}

// A Heartbeat is a request that was to keep a lease alive.
type Heartbeat struct {
	Time time.Time     // when its outcome was known
	Key  string        // of the lock; "" if it is for a session with all its locks
	Took time.Duration // from its sending to Time
	Err  error         // why it failed; nil if the engine has acknowledged it
}

// A Connection is a change of whether the engine can be reached, like the events
// [Ready] and [Disconnected].
type Connection struct {
	Time  time.Time
	Ready bool // false: disconnected; locks live on until their Deadline
}

// JoinHooks returns Hooks that call those of each argument, in the order given.
// A function that none of them has is nil.
func JoinHooks(hooks ...Hooks) Hooks {
	var j Hooks
	for _, h := range hooks {
		j.Started = join(j.Started, h.Started)
		j.Queued = join(j.Queued, h.Queued)
		j.Granted = join(j.Granted, h.Granted)
		j.Failed = join(j.Failed, h.Failed)
		j.Ended = join(j.Ended, h.Ended)
		j.Heartbeat = join(j.Heartbeat, h.Heartbeat)
		j.Connection = join(j.Connection, h.Connection)
	}
	return j
}

func join[T any](first, second func(T)) func(T) {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(v T) { first(v); second(v) }
}

// acquisition is a call as hooks are told of it; nil if none wants to know.
type acquisition struct {
	feed  *feed
	began time.Time
	told  Acquisition // what is always told
	over  bool        // granted or failed; guarded by feed.mu
}

// started tells of a call that has begun. If no hook is for acquisitions or what
// comes of them, it returns nil, on which the methods do nothing.
func (f *feed) started(key, owner string, wait bool) *acquisition {
	h := &f.hooks
	if h.Started == nil && h.Queued == nil && h.Granted == nil && h.Failed == nil && h.Ended == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acquisitions++
	a := &acquisition{feed: f, began: f.clock.Now().Mono}
	a.told = Acquisition{ID: f.acquisitions, Time: a.began, Key: key, Owner: owner, Wait: wait}
	tellLocked(f, h.Started, a.told)
	return a
}

// granted tells of the grant. It is called before anything can end the lock.
func (a *acquisition) granted(k *Lock) {
	if a == nil {
		return
	}
	a.feed.mu.Lock()
	defer a.feed.mu.Unlock()
	k.id, k.grantedAt = a.told.ID, a.feed.clock.Now().Mono
	told := a.overLocked(k.grantedAt)
	told.Key, told.Token = k.key, k.token
	tellLocked(a.feed, a.feed.hooks.Granted, told)
}

// failed tells of what the call returns in place of a lock.
func (a *acquisition) failed(err error) {
	if a == nil {
		return
	}
	a.feed.mu.Lock()
	defer a.feed.mu.Unlock()
	told := a.overLocked(a.feed.clock.Now().Mono)
	told.Err = err
	tellLocked(a.feed, a.feed.hooks.Failed, told)
}

// overLocked notes that the acquisition has come to something.
func (a *acquisition) overLocked(t time.Time) Acquisition {
	a.over = true
	told := a.told
	told.Time, told.Took = t, t.Sub(a.began)
	return told
}

// queued tells of a place in the queue for a key.
func (a *acquisition) queued(key string, ahead int) {
	if a == nil || a.feed.hooks.Queued == nil {
		return
	}
	a.feed.mu.Lock()
	defer a.feed.mu.Unlock()
	if !a.over {
		tellLocked(a.feed, a.feed.hooks.Queued, Place{
			ID: a.told.ID, Time: a.feed.clock.Now().Mono, Key: key, Owner: a.told.Owner, Ahead: ahead,
		})
	}
}

// queued returns what an engine calls: see Request.Queued.
func (c *Client) queued(r *request, a *acquisition) func(ahead int) {
	verbose := c.log.Enabled(context.Background(), slog.LevelDebug)
	if !verbose && (a == nil || a.feed.hooks.Queued == nil) {
		return ignorePlace
	}
	return func(ahead int) {
		a.queued(r.key, ahead)
		if verbose {
			c.log.Debug("waiting in the queue", "key", r.key, "owner", r.owner, "ahead", ahead)
		}
	}
}

func ignorePlace(int) {}

// heartbeat tells what came of a heartbeat.
func (f *feed) heartbeat(key string, sent time.Time, err error) {
	if f.hooks.Heartbeat == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now().Mono
	tellLocked(f, f.hooks.Heartbeat, Heartbeat{Time: now, Key: key, Took: now.Sub(sent), Err: err})
}

// tellLocked has a hook called, in the order in which this is, which f.mu decides.
func tellLocked[T any](f *feed, hook func(T), about T) {
	if hook != nil && !f.closed {
		f.calls.push(func() { hook(about) })
	}
}
