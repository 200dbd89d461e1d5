// Package driver is what an engine of holdfast implements. Only authors of engines
// need it: programs that use locks import the engine's package, such as zklock, and
// package holdfast.
//
// A program calls a [holdfast.Client]. The client validates the call, makes it a
// [Request], and hands it to the engine's [Driver]. The engine returns a [Grant], whose
// [Lease] ends on the client's own clocks; what happens to it later it reports to the
// [Host] and to the functions of the request. An engine starts with holdfast.New, and
// package locktest says whether it keeps the contract. Package memlock is the shortest
// engine to read, and [CONTRIBUTING.md] goes through the steps.
//
// What is the same for all methods of a driver:
//
//   - A failure is transient if another try may not meet it: the engine cannot be reached, does not answer, is too
//     busy, or has ended the session before there was a grant. Acquire passes each to Request.Retry, which knows
//     what the user wants. All other methods try again by themselves, with growing pauses, until ctx ends; their
//     error then matches [ErrDisconnected]. The client adds what ctx ended with. Inspect, List, Ask and Break may
//     fail so after a lease if ctx has no deadline.
//   - What the engine refuses for good is returned at once: [ErrDenied], [ErrInvalid], [ErrMismatch] and the like.
//   - A ctx that ends ends the call at once. What it has begun and cannot know the outcome of, it settles in the
//     background, in time for Close.
//   - A grant whose lease has run out by the time that Acquire returns is void: the client calls Release on its Hold,
//     and then Acquire again. An engine need not look for that.
//
// [holdfast.Client]: https://pkg.go.dev/github.com/holdfast-go/holdfast#Client
// [CONTRIBUTING.md]: https://github.com/holdfast-go/holdfast/blob/main/CONTRIBUTING.md#writing-an-engine
package driver

import (
	"context"
	"iter"
	"log/slog"
	"time"
)

// A Driver is one client's connection to an engine. It grants, verifies, releases,
// inspects, lists, asks and breaks; everything that must be the same on every engine is
// done by holdfast.Client.
//
// All methods may be called at the same time. None is called before the open
// function of holdfast.New has returned; after Close only List may be, and then fails
// with [ErrClosed]. Input has been validated. Errors match the sentinels of
// package holdfast; the client adds the operation and the key.
type Driver interface {
	// CheckKey refuses keys that the engine cannot take, beyond the portable
	// rules of driver.CheckKey or, with Config.AnyKey, instead of them, and modes that
	// it cannot give the key in, with an [*InvalidError]. It sends nothing. mode is the
	// zero Mode where the key is not to be acquired.
	CheckKey(key string, mode Mode) error

	// Acquire takes the key, or fails.
	//  1. When ctx ends it returns at once, also if the engine does not
	//      answer, and sees to it in the background that nothing stays behind.
	//  2. Its error then says what it was waiting for: a [*HeldError], or
	//      something that matches [ErrDisconnected].
	//  3. With req.Wait unset, it does not wait for another holder, nor for those who
	//      wait, but returns a [*HeldError] that describes the key. See also Watcher.
	//  4. It passes each transient failure to req.Retry.
	//  5. It never returns a grant of which the engine knows nothing, and
	//      never leaves one in the engine that was not returned.
	//  6. If the engine has a queue, it calls req.Queued with how many are ahead of
	//      the request, holders included, when a request that waits has
	//      learned that there are any: at each entry, and whenever it looks again.
	//  7. Of two grants of a key that exclude each other, the later has the greater
	//     token. Shared ones have different tokens.
	//  8. A key is a lock or a semaphore of one limit for as long as it is held or waited
	//     for: what does not fit is refused with a [*MismatchError], and leaves nothing.
	//  9. If the engine has a queue, it holds for all modes alike: who waits lets nobody
	//     pass who came later, also if that one could be granted at once.
	// 10. If it has none, whoever waits gets the key in the end all the same, also beside
	//     a client that wants it again as soon as it has released it. On DynamoDB, one that has
	//     looked in vain for some polls asks for a turn in the item, and who then releases
	//     the key lets all others look before it takes the key again.
	// 11. It acquires a free key within three quarters of a lease even if one of its requests, or the answer, is
	//     lost: the time limits of requests have to be shorter.
	Acquire(ctx context.Context, req *Request) (Grant, error)

	// Inspect describes a key. A key that nobody holds is no error.
	Inspect(ctx context.Context, key string) (Info, error)

	// List describes the keys that begin with prefix and are held.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Observe tells who holds a key, for as long as ctx lasts.
	//  1. It calls tell with what it finds, and again each time that it has learned of a
	//     change, also if that is that nobody holds the key. Calls come one after the
	//     other, in the order of the engine; tell does not block.
	//  2. It may leave out a state that another has followed by then, and may tell one
	//     twice, but in the end it tells the last one. It tells of no grant that was over
	//     when it asked the engine, and of nobody who only waits. Infos have no Queue.
	//  3. It goes on over outages and the ends of sessions: it waits until the engine can
	//     be reached, and tells what it finds then, also if nothing has changed. It tells that
	//     after SetConnected(true), and nothing that it found before.
	//  4. When ctx ends it returns at once, also if the engine does not answer. Otherwise
	//     it returns only if the key cannot be observed, and another try would not
	//     change that, with the reason.
	//  5. It returns [ErrHistoryLost] if the engine was wiped or restored, and a live grant has a lower token
	//     than it told of before. It has made sure of that at the engine: not by a replica that may lag
	//     behind, or a primary that may be deposed. The client then forgets the tokens, and calls again.
	//
	// A client calls it once per key at a time, however many observe the key, and again
	// soon after it has returned.
	Observe(ctx context.Context, key string, tell func(Info)) error

	// Break removes the grant that info describes, and no other;
	// [ErrChanged] if it is not there any more. Of several who share
	// the key it is the one that info.Grant names.
	Break(ctx context.Context, info Info) error

	// Ask tells the holder of the grant that info describes, and of no other, that somebody
	// wants it to let go: that holder's client calls Request.Asked.
	//  1. It returns nil when the engine keeps the wish for that holder, who may be cut off
	//     and is told later, and if it had been asked before; [ErrChanged] if the
	//     grant is not there any more. info is as for Break.
	//  2. It changes nothing else: neither owner, data, token and lease, nor what is said of
	//     the end of the grant, whatever ends it.
	//  3. No repetition of its request, however late it arrives, reaches another grant.
	Ask(ctx context.Context, info Info) error

	// Close ends the session, or the heartbeats; Release has been called and has
	// returned for all holds (but see Ender), and all calls have returned but those of
	// List: the body of a loop over it may be what closes the client. It leaves no
	// goroutine behind. It waits for the engine's confirmation until ctx ends, which may
	// be never, and no longer than until the leases of all that may be left are over:
	// the engine sees to that itself.
	Close(ctx context.Context) error
}

// An Ender is a Driver that can give back in one step all that its client has, as
// by ending a session. Where it can, holdfast.Client.Close does not release each hold.
type Ender interface {
	// EndSession gives back all that the client has in the engine. All locks have
	// ended for their holders; calls of Release may be under way, and are given up when
	// it has returned. Then Close is called.
	//  1. It returns nil only if the engine has confirmed it, or nothing was left.
	//  2. It goes on trying while the engine cannot be reached, and returns soon after
	//      the end of ctx, having sent what it can by then.
	//  3. Its error says what was not confirmed. Release is not called for holds that Close has ended.
	EndSession(ctx context.Context) error
}

// A Watcher is a Driver of an engine in which a dead holder keeps its key until a client has seen no heartbeat for a lease.
type Watcher interface {
	// Watch finds out whether the holders of a key are dead, after Acquire has refused req. It returns nil when another try may get
	// the key. If they seem to live, it returns a [*HeldError] or [*MismatchError] at once. Otherwise it watches the key, for their
	// longest lease at most; a heartbeat, or the end of ctx, ends that with the same. req.Retry is as for Acquire.
	Watch(ctx context.Context, req *Request) error
}

// A Request is what a Driver is asked to acquire. Its functions may be called from
// anywhere; only Retry blocks.
type Request struct {
	Key     string
	Owner   string
	Data    []byte
	Mode    Mode
	Wait    bool // wait for the present holders
	Reclaim bool // end other clients' grants under the same Owner, and their places in the queue if there is one
	// Yield asks an engine without a queue to let all others who wait look at the key
	// first: the client has just given it back so that another can have it.
	Yield bool

	// Retry is called with each transient failure. It returns nil after the delay that
	// the user's holdfast.Retry asks for, or sooner when wake closes (nil never does),
	// if there is to be another try; otherwise the error to return.
	Retry func(ctx context.Context, err error, wake <-chan struct{}) error

	// Queued is called as the sixth obligation of Acquire says, and not after Acquire
	// has returned.
	Queued func(ahead int)

	// Lost is called when the grant is found to have ended in the engine: cause is
	// [ErrBroken], [ErrReclaimed], [ErrTakenOver], or [ErrSessionExpired] or [ErrLeaseExpired] where it is this
	// grant alone that has. (What ends all grants of a lease is told by [Lease.End].) It may be called
	// before Acquire has returned, and counts only once.
	Lost func(cause error)

	// Asked is called when the grant that Acquire returns, or is about to return, is found
	// to have been asked for: see Driver.Ask. Like Lost, it may be called before Acquire has
	// returned, and counts only once.
	Asked func()
}

// A Grant is a key that the engine has given to this client.
type Grant struct {
	Token Token  // 0 only where a foreign format has none
	Lease *Lease // may be shared by many grants
	Hold  Hold
}

// A Hold is a Driver's side of one granted lock.
type Hold interface {
	// Verify asks the engine whether the grant stands. It returns nil, an error
	// that matches one of the causes of [ErrLost], or whatever kept it from
	// finding out. The client ends the lock if it matches a cause, here and in SetData: Request.Lost
	// need not be called then. Verify may renew the lease, and need not.
	Verify(ctx context.Context) error

	// SetData replaces the data of the grant; empty data removes it. It is not called
	// again before it has returned, nor after Release; but Release may be called while
	// it is under way.
	//  1. It tries until the engine has confirmed, the grant is known to be gone, or ctx
	//     ends, which it does with the lock. It returns nil, an error that matches one
	//     of the causes of [ErrLost], what the engine refused it for, or what
	//     kept it from finding out.
	//  2. It changes no other grant of the key, and nothing else of its own: not owner,
	//     token, since when it is held, or the name in Info.Grant.
	//  3. A request that was given up may be carried out late, but not after a later one,
	//     nor in the place of what a later one wrote.
	SetData(ctx context.Context, data []byte) error

	// Release gives the key back, and is called exactly once, however the hold
	// ended. Close calls it for all holds at the same time: the
	// engine bounds its requests. It tries until the engine
	// has confirmed, the grant is known to be gone, or ctx ends, which is when the client
	// is done closing: it does not wait longer than for the end of its leases. It returns
	// nil, [ErrLost] if the grant turned out to have been gone already, or what kept it
	// from finding out. It never touches another holder's grant.
	Release(ctx context.Context) error
}

// Config is what a holdfast.Client needs to know of its engine. Engines fill it from
// their own Options.
type Config struct {
	Owner  string        // default owner name; "": host:pid:random
	Margin time.Duration // see [Margin]
	Logger *slog.Logger  // nil: silent
	// AbsoluteKeys allows keys that start with a slash; what they mean is up to
	// the engine.
	AbsoluteKeys bool
	// AnyKey leaves it to the engine alone what a key is, and the beginning of one:
	// the portable rules are not applied, but that a key is not empty.
	AnyKey bool
	Clock  Clock // nil: the machine's; for tests of engines
	// Lease is the present length of the session or of a lease: a try fails when it has met nothing but transient failures for as long.
	// nil: a try goes on until its ctx ends.
	Lease func() time.Duration
}

// A Host is the client as its Driver sees it: what the engine reports to. No method
// blocks.
type Host interface {
	// Clock is that of the whole client. An engine measures leases by no other, and times
	// its heartbeats by its AfterFunc, so that tests can stop both.
	Clock

	// Logger never returns nil.
	Logger() *slog.Logger

	// Owner is the client's default owner name.
	Owner() string

	// Margin returns the margin of the client's leases of the given length.
	Margin(lease time.Duration) time.Duration

	// SetConnected tells whether the engine can be reached. The first report, and
	// each one that differs from the last, becomes an event.
	SetConnected(connected bool)

	// Heartbeat tells what came of an attempt to keep a lease alive, of which the first request
	// was sent at sent: err is why it failed, nil if it was acknowledged. key is that of
	// the lock, or "" if the lease is for all locks of a session. It is to be called
	// once per attempt, when the outcome is known, and not for what was called off
	// since nothing is left to be kept alive.
	Heartbeat(key string, sent Instant, err error)
}

// Margin returns the part of a lease that is given up for the drift between the
// clocks of holder and engine: the one configured, or, if that is 0,
// max(50 ms, lease/20); at most half the lease either way.
func Margin(configured, lease time.Duration) time.Duration {
	if configured == 0 {
		configured = max(50*time.Millisecond, lease/20)
	}
	return min(configured, lease/2)
}
