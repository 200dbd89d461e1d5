package locktest

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// An Engine is what [Run] tests.
type Engine struct {
	// Start prepares one case: a namespace, a store, connections. It registers its
	// clean-up with t.Cleanup. It is called inside Bubble. Required.
	Start func(t testing.TB) Harness

	// Bubble, if set, runs each case. An engine that can live in virtual time sets it to
	// [testing/synctest.Test]. Nil runs cases as plain subtests.
	Bubble func(t *testing.T, run func(t *testing.T))

	// Lanes is how many cases run at a time, whatever -parallel says: a case spends most
	// of its time waiting. Default 0: one after the other, as with Bubble.
	Lanes int

	// Lease is how long the engine waits for a silent client before it gives its locks
	// away: on ZooKeeper the negotiated session timeout. It is the same for all clients of
	// NewClient. Where locks never expire, it is the period of the engine's own checks. Required.
	Lease time.Duration

	// Soon bounds every step that waits for nothing but the engine's reply, or some polls where a client learns of a release
	// by polling. It is an upper bound, so be generous where time is real; a few cases wait for a part of it. Default 0: 10 s.
	Soon time.Duration

	// Late bounds the time from the end of a lease to the grant of the key to another
	// client. Default 0: Lease + Soon.
	Late time.Duration

	// Notice bounds how long a holder may take to learn that another client ended its live lease
	// on purpose (Break, reclaim), or asked for its lock. Default 0: Soon, which is right for engines that notify
	// their clients; for engines that poll, set it to the polling period.
	Notice time.Duration

	// Unknown names the fields of holdfast.Info, Holder and Waiter that the engine does not know.
	Unknown []string

	// Heartbeats says which heartbeats the engine reports ([driver.Host.Heartbeat]);
	// it sends several per lease.
	Heartbeats Heartbeats
}

// Heartbeats says what the heartbeats of an engine keep alive.
type Heartbeats int

// The kinds of heartbeats.
const (
	NoHeartbeats Heartbeats = iota // the engine reports none
	PerSession                     // one for all locks of a client, reported without a key
	PerLock                        // each lock has its own, reported with its key
)

// A Harness is the engine as one case uses it.
type Harness interface {
	// NewClient connects a client. The suite closes it. Its helpers, such as a proxy or a pool of
	// connections of its own, end with t's clean-up or Context.
	NewClient(t testing.TB, o ClientOptions) *Client

	// Residue names what the engine still stores for key but must remove when no client holds
	// it or waits for it: znodes, queue entries, a live item.
	Residue(t testing.TB, key string) []string
}

// ClientOptions is what a case sets for a client. All other settings must be the same for
// all clients.
type ClientOptions struct {
	Owner   string // default owner name; "" for the engine's default
	OnEvent func(holdfast.Event)
}

// A Client is one client with the faults that the suite can inject into it. Injecting one
// twice is the same as once, except for Jump and Lose.
type Client struct {
	API

	// Cut partitions the client from the engine, both ways and silently: no connection is
	// refused, no request gets a reply, and messages that are under way or sent meanwhile are
	// lost. Heal undoes it, and Stall, and what Lose does. All return
	// once they have taken effect. Cut and Heal are required.
	Cut, Heal func()

	// Stall is like Cut, but what is sent meanwhile arrives in the end: when Heal is called. Nil:
	// nothing can be under way, as in one process; the cases that need it are skipped, and say so.
	Stall func()

	// Expire makes the engine end the client's session or lease at once, with no request
	// from the client. It returns when the engine has done so. Nil: the cases wait for the
	// lease instead.
	Expire func()

	// Pause stops the client as SIGSTOP would stop its process: time goes on, but the
	// client's timers and heartbeats do not run until Resume, those of libraries that it uses
	// included. A harness that can hold back only timers does that, and cuts the client off so that nothing else renews the
	// lease. No case cuts off a client that is paused. Nil: the cases that pause are skipped, and the log says so.
	Pause, Resume func()

	// Watches returns once the client has a watch on each of its holds. Nil: it has one
	// from the grant on. A hold that is reclaimed before that may end with ErrBroken
	// instead of ErrReclaimed, because its client finds only that the hold is gone.
	Watches func()

	// Lose asks next what becomes of each message that the client sends from now on, before it is sent: of one that asks the
	// engine for something or renews a lease, each repetition included; not of what only keeps a connection alive or
	// opens one. It does so until Heal, or another call, which replaces this one; nil lets all arrive. Calls of next come one at a
	// time, and go on while the client is cut off. Nil: the cases that lose messages are skipped, and say so.
	Lose func(next func() Fate)

	// Jump moves the client's wall clock, forward if d is positive, and leaves
	// its monotonic clock alone. Nil: as for Pause.
	Jump func(d time.Duration)
}

// API is the portable API of [*holdfast.Client].
type API interface {
	Owner() string
	Features() driver.Features
	Acquire(ctx context.Context, key string, opts ...holdfast.Option) (*holdfast.Lock, error)
	TryAcquire(ctx context.Context, key string, opts ...holdfast.Option) (*holdfast.Lock, error)
	AcquireAny(ctx context.Context, keys []string, opts ...holdfast.Option) (*holdfast.Lock, error)
	AcquireAll(ctx context.Context, keys []string, opts ...holdfast.Option) (*holdfast.Locks, error)
	TryAcquireAll(ctx context.Context, keys []string, opts ...holdfast.Option) (*holdfast.Locks, error)
	Do(ctx context.Context, key string, fn func(context.Context, *holdfast.Lock) error, opts ...holdfast.Option) error
	TryDo(ctx context.Context, key string, fn func(context.Context, *holdfast.Lock) error, opts ...holdfast.Option) error
	DoAll(ctx context.Context, keys []string, fn func(context.Context, *holdfast.Locks) error, opts ...holdfast.Option) error
	Events() *holdfast.Events
	Inspect(ctx context.Context, key string) (holdfast.Info, error)
	List(ctx context.Context, prefix string) iter.Seq2[holdfast.Info, error]
	Observe(ctx context.Context, key string) iter.Seq2[holdfast.Info, error]
	Break(ctx context.Context, info holdfast.Info) error
	Election(key string, o *holdfast.ElectionOptions) (*holdfast.Election, error)
	Ask(ctx context.Context, info holdfast.Info) error
	Close(ctx context.Context) error
}

var _ API = (*holdfast.Client)(nil)
