// Package driver is what an engine of holdfast implements. Only authors of engines need it.
//
// A [holdfast.Client] validates a call, makes it a [Request], and hands it to the engine's [Driver], which returns a [Grant]. The
// [Lease] of the grant ends on the client's own clocks. The engine reports later changes to the [Host] and to the functions of the
// request. An engine starts with holdfast.New, and package locktest checks its contract. [Write an engine in a day] goes through the
// steps with an engine over a map.
//
// For all methods of a driver:
//
//   - A failure is transient if a retry may succeed: the engine is unreachable, silent or too busy, or has ended the session before a
//     grant. Acquire passes each to Request.Retry. All other methods retry, with growing pauses, until ctx ends; their error then
//     matches [ErrDisconnected]. Inspect, List, Ask and Break may fail so after one lease if ctx has no deadline.
//   - A refusal of the engine is returned at once: [ErrDenied], [ErrInvalid], [ErrNames] and the like.
//   - The end of ctx ends the call at once. The driver settles unknown outcomes in the background, in time for Close.
//   - A grant whose lease has run out when Acquire returns is void: the client calls Release on its Hold, and then Acquire again.
//
// [holdfast.Client]: https://pkg.go.dev/github.com/holdfast-go/holdfast#Client
// [Write an engine in a day]: https://github.com/holdfast-go/holdfast/blob/main/docs/engine.md
package driver

import (
	"context"
	"iter"
	"log/slog"
	"time"
)

// A Driver is one client's connection to an engine. holdfast.Client does everything that is the same on every engine.
//
// All methods may be called at the same time, after the open function of holdfast.New has returned. After Close only List may be
// called; it then fails with [ErrClosed]. Input has been validated. The client adds the operation and the key to errors.
type Driver interface {
	// CheckKey refuses, with an [*InvalidError], keys that the engine cannot take beyond the portable rules of [CheckKey] (with
	// Features.AnyKey, instead of them), and modes that it does not have. It sends nothing. mode is zero if the key is not to be
	// acquired.
	CheckKey(key string, mode Mode) error

	// Acquire takes the key, or fails.
	//  1. When ctx ends it returns at once, even if the engine does not answer, and undoes in the background what the call had begun.
	//  2. Its error then says what it was waiting for: a [*HeldError], or an error that matches [ErrDisconnected].
	//  3. With req.Wait unset, it waits for no holder and no waiter, but returns a [*HeldError] that describes the key. See Watcher.
	//  4. It passes each transient failure to req.Retry. It returns [ErrReclaimed] if its place in a queue was reclaimed.
	//  5. It never returns a grant that the engine does not have, and never leaves one in the engine that was not returned.
	//  6. If the engine has a queue, it calls req.Queued for a request that waits, at each entry and at each later look at the queue,
	//     if any requests are ahead.
	//  7. Of two grants of a key that exclude each other, the later has the greater token. Shared ones have different tokens.
	//  8. A request waits for every earlier request that does not share with it by [Mode.SharesWith], and holds when fewer than
	//     Mode.Limit that do are ahead. It calls req.Behind when a holder, or a request ahead, has another Limit.
	//  9. If the engine has a queue, its order applies to every mode: a later request never overtakes a waiter, even if it could be
	//     granted immediately.
	// 10. If it has none, every waiter gets the key in the end, even beside a client that wants the key again as soon as it has
	//     released it.
	// 11. It acquires a free key within three quarters of a lease even if one of its requests, or the answer, is lost: the time limits
	//     of requests have to be shorter.
	Acquire(ctx context.Context, req *Request) (Grant, error)

	// Inspect describes a key, held or free.
	Inspect(ctx context.Context, key string) (Info, error)

	// List describes the keys that begin with prefix and are held.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Observe reports the holders of a key to tell, until ctx ends.
	//  1. It calls tell with the state that it finds, and again after each change, one call after the other, in the order of the
	//     engine. A free key is a state. tell does not block.
	//  2. It may skip a state that another has followed, or repeat one, but tells the last. It tells no grant that was over when it
	//     asked the engine, and no waiter; Infos have no Queue.
	//  3. It goes on over outages and ends of sessions: after SetConnected(true) it tells what it finds then, even if nothing has
	//     changed, and nothing that it found before.
	//  4. It returns at once when ctx ends, and otherwise only if the key cannot be observed and a retry would not change that.
	//  5. It returns [ErrHistoryLost] if the engine was wiped or restored and a live grant has a lower token than it told before. It
	//     has verified that at the engine, not at a replica that may lag or a primary that may be deposed. The client then forgets
	//     the tokens and calls again.
	//
	// A client calls it once per key at a time, however many observe the key.
	Observe(ctx context.Context, key string, tell func(Info)) error

	// Break removes the grant that info describes and no other, with several holders that of info.Grant. It fails with [ErrChanged]
	// if the grant is gone.
	Break(ctx context.Context, info Info) error

	// Ask records a request to release the grant that info describes, and no other; the holder's client calls Request.Asked.
	//  1. It returns nil when the engine keeps the request for the holder, which may be cut off, and if it had been asked before;
	//     [ErrChanged] if the grant is gone.
	//  2. It changes nothing else of the grant, nor the cause of its end.
	//  3. A late duplicate of its request reaches no other grant.
	Ask(ctx context.Context, info Info) error

	// Close ends the session, or the heartbeats. Release has returned for all holds (but see Ender), and so have all calls but List.
	// Close leaves no goroutine behind. It waits for the engine's confirmation until ctx ends, and no longer than for the end of all
	// its leases.
	Close(ctx context.Context) error
}

// An Ender is a Driver that can give back all that its client has in one step, as by ending a session.
type Ender interface {
	// EndSession gives back all that the client has in the engine. All locks have ended for their holders. Calls of Release under way
	// are given up when it has returned; then Close is called.
	//  1. It returns nil only if the engine has confirmed it, or nothing was left.
	//  2. It retries while the engine is unreachable, and returns soon after the end of ctx.
	//  3. Its error says what was not confirmed. Then Release is called once for each hold that has none yet, with a ctx that has
	//     ended: it returns nil if that hold is known to be given back, and does not wait.
	EndSession(ctx context.Context) error
}

// A Watcher is a Driver of an engine in which a dead holder keeps its key until a client has seen no heartbeat for a lease.
type Watcher interface {
	// Watch finds out whether the holders are dead, after Acquire has refused req. It returns nil when a retry may get the key, and a
	// [*HeldError] at once if the holders seem to live. Otherwise it watches the key for their longest lease at most; a heartbeat or
	// the end of ctx ends the watch with the same error. req.Retry is as for Acquire.
	Watch(ctx context.Context, req *Request) error
}

// A Request is what a Driver is asked to acquire. Its functions may be called from anywhere; only Retry blocks.
type Request struct {
	Key     string
	Owner   string
	Data    []byte
	Mode    Mode
	Wait    bool // wait for the present holders
	Reclaim bool // end other clients' grants under the same Owner, and their places in the queue if there is one
	Yield   bool // let all waiters look at the key first, since the client has just given it back for them; a queue does so anyway

	// Retry is called with each transient failure. It returns nil after the delay that the user's holdfast.Retry asks for, or sooner
	// when wake closes (nil never does), if there is to be another try; otherwise the error to return.
	Retry func(ctx context.Context, err error, wake <-chan struct{}) error

	// Queued is called as the sixth obligation of Acquire says, and not after Acquire has returned.
	Queued func(ahead int)

	// Behind is called with the mode of a holder or of an earlier request whose Limit differs from that of a waiting request. It may
	// be called often, but not after Acquire has returned: the client logs the first call.
	Behind func(other Mode)

	// Lost is called when the grant has ended in the engine: cause is [ErrBroken], [ErrReclaimed], [ErrTakenOver], or
	// [ErrSessionExpired] or [ErrLeaseExpired] of this grant alone ([Lease.End] is for all grants of a lease). It may be called
	// before Acquire has returned, and counts once.
	Lost func(cause error)

	// Asked is called when the grant has been asked for: see Driver.Ask. It may be called before Acquire has returned, and counts
	// once.
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
	// Verify asks the engine whether the grant stands. It returns nil, an error that matches a cause of [ErrLost], or what prevented
	// an answer. After a cause, here and in SetData, the client ends the lock, and Request.Lost need not be called.
	Verify(ctx context.Context) error

	// SetData replaces the data of the grant; empty data removes it. Calls come one at a time, none after Release; but Release may be
	// called while one is under way.
	//  1. It retries until the engine has confirmed, the grant is known to be gone, or ctx ends, which it does with the lock. It
	//     returns nil, an error that matches a cause of [ErrLost], a refusal, or what prevented the confirmation.
	//  2. It changes nothing but the data of this grant.
	//  3. A request that was given up may be executed late, but never over that of a later call.
	SetData(ctx context.Context, data []byte) error

	// Release gives the key back. It is called once, however the hold ended; Close calls it for all holds at the same time, and the
	// engine bounds its requests. It retries until the engine has confirmed, the grant is known to be gone, or ctx ends, when the
	// client is done closing. It returns nil, [ErrLost] if the grant was gone, or what prevented the confirmation. If the grant is found
	// gone after a request of Release had no answer, that request may have given it back: nil, unless another cause is known.
	// Release never touches another grant.
	Release(ctx context.Context) error
}

// Config is what a holdfast.Client needs to know of its engine. Engines fill it from their own Options.
type Config struct {
	Owner        string        // default owner name; "": host:pid:random
	Margin       time.Duration // see [Margin]
	Logger       *slog.Logger  // nil: silent
	AbsoluteKeys bool          // keys may start with a slash, which the engine interprets
	Features     Features
	Clock        Clock // nil: the machine's; for tests of engines
	// Lease is the present length of the session or of a lease. It bounds a try; nil: only ctx bounds it.
	Lease func() time.Duration
}

// Features are what engines differ in. Programs read them, and the conformance suite checks what they promise.
type Features struct {
	Ordered      bool // waiters are served in the order of arrival, Info.Queue lists them, and OnEvent receives their places
	Shares       bool // keys can be shared; otherwise CheckKey refuses all modes but that of an exclusive lock
	Tokenless    bool // every token is 0
	NeverExpires bool // no lock ends because its holder is silent: only Break frees the key of a dead holder
	AnyKey       bool // the engine alone has rules for keys and prefixes; a key is not empty
}

// A Host is the client as its Driver sees it. No method blocks.
type Host interface {
	// Clock is the only clock for leases and heartbeats, so that tests can stop both.
	Clock

	// Logger never returns nil.
	Logger() *slog.Logger

	// Owner is the client's default owner name.
	Owner() string

	// Margin returns the margin of the client's leases of the given length.
	Margin(lease time.Duration) time.Duration

	// SetConnected reports whether the engine is reachable. The first report and each change become events.
	SetConnected(connected bool)

	// Heartbeat reports the outcome of an attempt to renew a lease, once, when it is known: sent is when its first request was sent,
	// err why it failed. key is that of the lock, "" for a session. An attempt that was called off is not reported.
	Heartbeat(key string, sent Instant, err error)
}

// Margin returns the part of a lease that allows for drift between the clocks of holder and engine: the configured margin, by default
// max(50 ms, lease/20); at most half the lease.
func Margin(configured, lease time.Duration) time.Duration {
	if configured == 0 {
		configured = max(50*time.Millisecond, lease/20)
	}
	return min(configured, lease/2)
}
