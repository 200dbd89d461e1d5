package holdfast

import (
	"context"
	"log/slog"
	"time"
)

// Hooks are functions that a client calls as things happen in it: for metrics,
// traces and logs. They go into the Options of an engine. Any of them may be nil; a nil
// hook costs neither memory nor a goroutine. [JoinHooks] combines several values.
//
// They are called one at a time, on a goroutine of their own, in the order of
// what happened, and their Times never go back. So
//
//   - Started comes before everything else of an acquisition, and exactly one of Granted
//     and Failed ends it, before Close returns;
//   - Queued comes between Started and that;
//   - Ended comes after the Granted of the same hold, once, before Close returns;
//   - Asked comes between Granted and Ended, once at most;
//   - Observed comes between the two calls of Observing for its key, of which the second
//     comes before Close returns;
//   - Connection is called once for each change, beginning with the first state.
//
// A hook may run later than what it reports: Acquire may return before Granted is
// called, and Done may close before Ended is. Only the next hook, and Close, wait for a
// slow hook; what it has not seen yet is kept in memory, without limit. A hook must not
// call Close. It may call anything else. A panic in a hook is not recovered.
type Hooks struct {
	// Started is called when Acquire, TryAcquire or AcquireAny begins: its input is
	// valid, its ctx not done, and the client not closed. A call that fails before that
	// reaches no hook. Do calls Acquire. AcquireAll and TryAcquireAll make an acquisition
	// for each key, when its turn comes, and anew in each pass.
	Started func(Acquisition)

	// Queued is called when a waiter learns its place in the queue for a key: when it
	// joins, which it does again after its session has ended, and whenever it has to
	// look again. It is not called for each step forward, nor when nobody is ahead.
	// DynamoDB keeps no queue and never calls it.
	Queued func(Place)

	// Granted is called when an acquisition has its lock. A grant that was over
	// before it could be handed out does not count.
	Granted func(Acquisition)

	// Failed is called when an acquisition ends with an error.
	Failed func(Acquisition)

	// Asked is called when somebody has asked for a live lock: see [Lock.Asked].
	Asked func(Wish)

	// Ended is called when a lock has ended for its holder, for whatever reason. It does
	// not wait for the engine to confirm a release.
	Ended func(Ending)

	// TermBegan is called when an [Election] is about to call lead, after the Granted of
	// the same ID.
	TermBegan func(Term)

	// TermEnded is called when lead has returned, or has panicked, once for each
	// TermBegan. The key is given back after that; so the Ended of the same ID comes later,
	// unless the lock ended while lead ran. It is not called for a lead that Close stopped
	// waiting for.
	TermEnded func(Term)

	// Observing is called when the first of any concurrent loops over [Client.Observe] for a
	// key begins, and again when the last of them has ended.
	Observing func(Observing)

	// Observed is called for each state of a key that observers are to be told of, once
	// however many they are. A loop whose body is slow may skip it. That a state is Stale, Connection tells.
	Observed func(Sight)

	// Heartbeat is called with the outcome of each request that was to keep a lease
	// alive. On ZooKeeper a session sends heartbeats while it holds locks, unless they
	// are turned off; on DynamoDB each lock has its own, unless it never expires
	// (FailClosed); memlock sends none. A heartbeat still under way when the lock is
	// released or the client closed is left out. On ZooKeeper one that is due without a
	// connection counts as failed; its error says why there is none, such as a refused certificate.
	Heartbeat func(Heartbeat)

	// Connection is called when the engine becomes reachable or unreachable.
	Connection func(Connection)
}

// An Acquisition is one call of Acquire, TryAcquire or AcquireAny, or what AcquireAll or
// TryAcquireAll does for one key.
type Acquisition struct {
	// ID numbers the acquisitions of a client, from 1. The Places, the Wish and the Ending
	// that come of an acquisition have its ID.
	ID    uint64
	Time  time.Time     // when it started, was granted, or failed
	Key   string        // for AcquireAny only in Granted; else ""
	Owner string        // the owner name of the hold
	Wait  bool          // it waits for holders: Acquire, AcquireAll, or AcquireAny with WithWait or WithRetry
	Took  time.Duration // from Started to Time; 0 in Started
	Token Token         // in Granted; else 0
	Err   error         // in Failed: what the call returns, or of AcquireAll the part about this key; else nil

	Shared bool // others may hold the key too: WithShared or WithLimit
	Limit  int  // of WithLimit; 0 without it
}

// A Place is where a waiter stands in the queue for a key.
type Place struct {
	ID    uint64 // of the acquisition
	Time  time.Time
	Key   string
	Owner string
	Ahead int // how many are ahead, holders included: 1 or more
}

// An Ending is the end of a hold.
type Ending struct {
	ID    uint64 // of the acquisition
	Time  time.Time
	Key   string
	Owner string
	Token Token
	Held  time.Duration // from the grant to the end
	// Err is what Lock.Err returns: ErrReleased, ErrTTLExpired, or a [*LostError]
	// with the cause.
	Err error
}

// A Term is one call of an election's lead.
type Term struct {
	ID    uint64 // of the acquisition
	Time  time.Time
	Key   string
	Owner string
	Token Token
	Led   time.Duration // how long lead ran; 0 in TermBegan
	Over  time.Duration // how long lead ran on after the end of its ctx; 0 in TermBegan
	// Cause is what ended the term before lead returned: what Lock.Err returns, or the cause
	// of lead's ctx. nil if lead returned by itself, and in TermBegan.
	Cause error
	// Err is what lead returned, unless that is no more than that the term had ended.
	Err error

	canceled bool // with the ctx of Run, of which Cause is the cause
}

// Observing says whether the client observes a key.
type Observing struct {
	Time time.Time
	Key  string
	On   bool // false: not any longer
}

// A Sight is a state of a key that observers are told of.
type Sight struct {
	Time  time.Time // when the client heard of it
	Key   string
	Held  bool   // false: nobody holds the key
	Owner string // of the holder, the oldest of several
	Token Token

	Holders int // how many there are: more than 1 only if they share the key
}

// A Heartbeat is the outcome of a request that was to keep a lease alive.
type Heartbeat struct {
	Time time.Time     // when the outcome was known
	Key  string        // of the lock; "" if it is for a session with all its locks
	Took time.Duration // from sending the request to Time
	Err  error         // why it failed; nil if the engine has acknowledged it
}

// A Connection says whether the engine can be reached, like the events [Ready] and
// [Disconnected].
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
		j.Asked = join(j.Asked, h.Asked)
		j.Ended = join(j.Ended, h.Ended)
		j.TermBegan = join(j.TermBegan, h.TermBegan)
		j.TermEnded = join(j.TermEnded, h.TermEnded)
		j.Observing = join(j.Observing, h.Observing)
		j.Observed = join(j.Observed, h.Observed)
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
	return func(v T) {
		defer second(v) // also if the first ends its goroutine
		first(v)
	}
}

// acquisition is a call as hooks see it; nil if no hook needs it.
type acquisition struct {
	feed  *feed
	began time.Time
	info  Acquisition // what every hook gets
	over  bool        // granted or failed; guarded by feed.mu
}

// started reports a call that has begun. If there is no hook for acquisitions or what
// comes of them, it returns nil, on which the methods do nothing.
func (f *feed) started(key string, r *request, wait bool) *acquisition {
	h := &f.hooks
	if h.Started == nil && h.Queued == nil && h.Granted == nil && h.Failed == nil && h.Asked == nil && h.Ended == nil &&
		h.TermBegan == nil && h.TermEnded == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acquisitions++
	a := &acquisition{feed: f, began: f.clock.Now().Mono}
	a.info = Acquisition{
		ID: f.acquisitions, Time: a.began, Key: key, Owner: r.owner, Wait: wait, Shared: r.mode().Shared, Limit: r.limit,
	}
	callLocked(f, h.Started, a.info)
	return a
}

// granted reports the grant. It is called before anything can end the lock.
func (a *acquisition) granted(k *Lock) {
	if a == nil {
		return
	}
	a.feed.mu.Lock()
	defer a.feed.mu.Unlock()
	k.id, k.grantedAt = a.info.ID, a.feed.clock.Now().Mono
	info := a.finishLocked(k.grantedAt)
	info.Key, info.Token = k.key, k.token
	callLocked(a.feed, a.feed.hooks.Granted, info)
}

// failed reports the error that the call returns.
func (a *acquisition) failed(err error) {
	if a == nil {
		return
	}
	a.feed.mu.Lock()
	defer a.feed.mu.Unlock()
	info := a.finishLocked(a.feed.clock.Now().Mono)
	info.Err = err
	callLocked(a.feed, a.feed.hooks.Failed, info)
}

// finishLocked notes the end of the acquisition.
func (a *acquisition) finishLocked(t time.Time) Acquisition {
	a.over = true
	info := a.info
	info.Time, info.Took = t, t.Sub(a.began)
	return info
}

// queued reports a place in the queue for a key.
func (a *acquisition) queued(key string, ahead int) {
	if a == nil || a.feed.hooks.Queued == nil {
		return
	}
	a.feed.mu.Lock()
	defer a.feed.mu.Unlock()
	if !a.over {
		callLocked(a.feed, a.feed.hooks.Queued, Place{
			ID: a.info.ID, Time: a.feed.clock.Now().Mono, Key: key, Owner: a.info.Owner, Ahead: ahead,
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

// termBegan reports that lead is about to be called.
func (f *feed) termBegan(k *Lock) {
	f.term(f.hooks.TermBegan, Term{ID: k.id, Key: k.key, Owner: k.owner, Token: k.token})
}

// termEnded reports that lead has returned.
func (f *feed) termEnded(k *Lock, led, over time.Duration, cause, err error, canceled bool) {
	f.term(f.hooks.TermEnded, Term{
		ID: k.id, Key: k.key, Owner: k.owner, Token: k.token, Led: led, Over: over, Cause: cause, Err: err, canceled: canceled,
	})
}

// observing reports that the client observes a key, or does not any longer.
func (f *feed) observing(key string, on bool) {
	if f.hooks.Observing == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	callLocked(f, f.hooks.Observing, Observing{Time: f.clock.Now().Mono, Key: key, On: on})
}

// observed reports a state of a key.
func (f *feed) observed(i Info) {
	if f.hooks.Observed == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	holders := len(i.Holders)
	if i.Held {
		holders = max(holders, 1)
	}
	callLocked(f, f.hooks.Observed, Sight{
		Time: f.clock.Now().Mono, Key: i.Key, Held: i.Held, Owner: i.Owner, Token: i.Token, Holders: holders,
	})
}

func (f *feed) term(hook func(Term), t Term) {
	if hook == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t.Time = f.clock.Now().Mono
	callLocked(f, hook, t)
}

// heartbeat reports the outcome of a heartbeat.
func (f *feed) heartbeat(key string, sent time.Time, err error) {
	if f.hooks.Heartbeat == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now().Mono
	callLocked(f, f.hooks.Heartbeat, Heartbeat{Time: now, Key: key, Took: now.Sub(sent), Err: err})
}

// callLocked has a hook called later; f.mu decides the order.
func callLocked[T any](f *feed, hook func(T), about T) {
	if hook != nil && !f.closed {
		f.calls.push(func() { hook(about) })
	}
}
