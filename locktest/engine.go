package locktest

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// An Engine is what [Run] tests.
type Engine struct {
	// Start prepares one case: a namespace, a store, connections. What it needs
	// to undo goes to t.Cleanup. It is called inside Bubble. Required.
	Start func(t testing.TB) Harness

	// Bubble, if set, runs each case: [testing/synctest.Test], for an engine that
	// can live in virtual time. Nil runs cases as plain subtests.
	Bubble func(t *testing.T, run func(t *testing.T))

	// Lanes is how many cases run at a time, whatever -parallel says: most of what
	// a case does is wait. Default 0: one after the other, as with Bubble.
	Lanes int

	// Lease is for how long the engine waits for a silent client before it
	// gives its locks away: for ZooKeeper the negotiated session timeout. All
	// clients of NewClient have it. Required.
	Lease time.Duration

	// Soon bounds everything that by the rules needs no waiting but the
	// engine's answer. It is an upper bound that nothing is slowed by, so be
	// generous where time is real. Default 0: 10 s.
	Soon time.Duration

	// Late bounds how long after the end of a lease the engine may take to give
	// the key to another. Default 0: Lease + Soon.
	Late time.Duration

	// Notice bounds how long a holder may take to learn that somebody ended its
	// live lease on purpose (Break, reclaim). Default 0: Soon, which is right for
	// engines that send word; those that ask from time to time need their period.
	Notice time.Duration

	// Ordered promises that waiters are served in the order of their coming and
	// that Info.Queue lists them, and hooks hear their places. Without it, the
	// suite asserts instead that every waiter is served in the end, and that hooks
	// hear of no places.
	Ordered bool

	// Tokenless says that there are no tokens: each is 0, which the suite asserts
	// wherever it otherwise asserts that they rise.
	Tokenless bool

	// NeverExpires says that no lock ends because nothing is heard of its holder. The
	// suite asserts the contrary of what it asserts otherwise: the key of a client that
	// is cut off or stopped goes to nobody in one and a half of Lease, its Deadline is far
	// away, a break frees the key, and the holder learns of that when it can be
	// reached again. Lease is then the pace of the engine's own checks.
	NeverExpires bool

	// AnyKey says that the engine takes other keys than the portable ones of
	// [holdfast.CheckKey]: whatever is valid UTF-8, of less than 10 kB.
	AnyKey bool

	// Heartbeats says which heartbeats the engine reports ([driver.Host.Heartbeat]);
	// it sends several per lease.
	Heartbeats Heartbeats
}

// Heartbeats says what it is that an engine keeps alive.
type Heartbeats int

// The kinds of heartbeats.
const (
	NoHeartbeats Heartbeats = iota // none that are reported
	PerSession                     // one for all locks of a client, reported without a key
	PerLock                        // each lock has its own, reported with its key
)

// A Harness is the engine as one case uses it.
type Harness interface {
	// NewClient connects a client. The suite closes it.
	NewClient(t testing.TB, o ClientOptions) *Client

	// Residue names what the engine has of key that is not to stay when nobody
	// holds it or waits for it: znodes, queue entries, a live item.
	Residue(t testing.TB, key string) []string
}

// ClientOptions is what a case asks of a client. The other settings of the
// engine have to be the same for all clients.
type ClientOptions struct {
	Owner string // default owner name; "" for the engine's default
	Hooks holdfast.Hooks
}

// A Client is one client, and what can be done to it from outside. Doing
// any of it twice is the same as once, except for Jump.
type Client struct {
	API

	// Cut cuts the client off from the engine, both ways, in the harshest way
	// there is (no connection is refused, nothing is answered); Heal undoes it.
	// Both return when that is in force. Required.
	Cut, Heal func()

	// Expire makes the engine end the client's session or lease at once,
	// without a word from the client. It returns when the engine has done it.
	// Nil: it cannot be done; such cases wait for the lease instead.
	Expire func()

	// Pause stops the client as SIGSTOP would stop its process: its timers and
	// heartbeats do not run while time goes on; Resume lets all of that run.
	// A harness that can hold back only timers does so, and cuts the client off
	// so that nothing else renews the lease. Nil: cases of pause are not run,
	// and the log says so.
	Pause, Resume func()

	// Watches returns when the client would hear of whatever becomes of the holds that
	// it has by now. Nil: at the grant. A hold that is reclaimed before that may end
	// with ErrBroken instead of ErrReclaimed, if all that its client finds is that it
	// is gone.
	Watches func()

	// Jump moves the client's wall clock, forward if d is positive, and leaves
	// its monotonic clock alone. Nil: as for Pause.
	Jump func(d time.Duration)
}

// API is the portable API, as [*holdfast.Client] has it.
type API interface {
	Owner() string
	Acquire(ctx context.Context, key string, opts ...holdfast.Option) (*holdfast.Lock, error)
	TryAcquire(ctx context.Context, key string, opts ...holdfast.Option) (*holdfast.Lock, error)
	AcquireAny(ctx context.Context, keys []string, opts ...holdfast.Option) (*holdfast.Lock, error)
	Do(ctx context.Context, key string, fn func(context.Context, *holdfast.Lock) error, opts ...holdfast.Option) error
	TryDo(ctx context.Context, key string, fn func(context.Context, *holdfast.Lock) error, opts ...holdfast.Option) error
	Events() *holdfast.Events
	Inspect(ctx context.Context, key string) (holdfast.Info, error)
	List(ctx context.Context, prefix string) iter.Seq2[holdfast.Info, error]
	Break(ctx context.Context, info holdfast.Info) error
	Close(ctx context.Context) error
}

var _ API = (*holdfast.Client)(nil)
