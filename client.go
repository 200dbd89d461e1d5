package holdfast

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// A Client acquires locks from one engine; the clients of zklock, dynamolock and memlock embed it. All methods may be used from
// any goroutine.
type Client struct {
	engine driver.Driver
	host   *host
	clock  driver.Clock
	log    *slog.Logger
	feed   *feed
	config driver.Config

	// closing ends waiters when Close begins; background ends releases when Close gives up on them.
	closing    context.Context
	close      context.CancelCauseFunc
	background context.Context
	giveUp     context.CancelCauseFunc

	mu           strict.Mutex[strict.Client]
	held         map[string][]*Lock // live, by key
	outstanding  map[*Lock]struct{} // live, or ended and not known to be given back
	clockTimer   driver.Timer       // see watchClocksLocked; nil if none runs
	endedByClose []*Lock            // ended since Close began
	observed     map[string]*observation
	terms        map[*Lock]*leadership // of elections, while lead runs
	closed       bool
	calls        sync.WaitGroup // calls that may end in a grant or use the engine
	unended      sync.WaitGroup // registered locks that have not ended
	releases     sync.WaitGroup // goroutines that give back a lock

	closeDone chan struct{}
	closeErr  error
}

func newClient(host *host, engine driver.Driver) *Client {
	c := &Client{
		engine:      engine,
		host:        host,
		clock:       host.Clock,
		log:         host.log,
		feed:        host.feed,
		config:      host.config,
		held:        make(map[string][]*Lock),
		outstanding: make(map[*Lock]struct{}),
		observed:    make(map[string]*observation),
		terms:       make(map[*Lock]*leadership),
		closeDone:   make(chan struct{}),
	}
	c.closing, c.close = context.WithCancelCause(context.Background())
	c.background, c.giveUp = context.WithCancelCause(context.Background())
	return c
}

// defaultOwner is unique per client, and shows an operator where to look.
func defaultOwner() string {
	host, _ := os.Hostname()
	host = cmp.Or(host, "unknown")
	return fmt.Sprintf("%s:%d:%s", host[:min(len(host), 200)], os.Getpid(), rand.Text()[:10])
}

// Owner returns the client's default owner name.
func (c *Client) Owner() string {
	if c == nil {
		return ""
	}
	return c.config.Owner
}

// Features returns what the engine of the client has and lacks: Ordered (its waiters have a queue), Shares, Tokenless, NeverExpires
// (a dead holder keeps its key) and AnyKey.
func (c *Client) Features() driver.Features {
	if c == nil {
		return driver.Features{}
	}
	return c.config.Features
}

// Events subscribes to the events of this client from now on. After Close the subscription has ended.
func (c *Client) Events() *Events {
	if c.valid() != nil {
		return nil
	}
	return c.feed.subscribe()
}

// Inspect describes a key. Held is false if the key is free.
func (c *Client) Inspect(ctx context.Context, key string) (info Info, err error) {
	err = c.call(ctx, key, func(ctx context.Context) (err error) {
		info, err = c.engine.Inspect(ctx, key)
		return err
	})
	if err != nil {
		return Info{}, failed("inspect", key, err)
	}
	return info, nil
}

// List yields the held keys that begin with prefix; "" is all keys, on ZooKeeper without paths. A prefix that is a ZooKeeper path
// lists one level, below its last slash. List is no snapshot of one moment. The last pair has the error, if any. docs/dynamodb.md
// has the costs of List there.
func (c *Client) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		fail := func(err error) { yield(Info{}, failed("list", prefix, err)) }
		if err := c.checkPrefix(prefix); err != nil {
			fail(err)
			return
		}
		// It is not counted in: the loop's body may close the client.
		ctx, done, err := c.bind(ctx)
		if err != nil {
			fail(err)
			return
		}
		defer done()
		for info, err := range c.engine.List(ctx, prefix) {
			if err != nil {
				fail(c.explain(ctx, err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

// Break removes the grant that info describes and no other; it fails with [ErrChanged] if the grant is gone. info comes from
// Inspect, List or a HeldError; of several holders Break reaches the oldest ([Info.Each] yields each). It is for operators: the
// holder may use the lock until it learns of the break, and only fencing covers that gap.
func (c *Client) Break(ctx context.Context, info Info) error {
	if err := c.onGrant(ctx, info, driver.Driver.Break); err != nil {
		return failed("break", info.Key, err)
	}
	c.log.Info("lock broken", "key", info.Key, "owner", info.Owner, "token", uint64(info.Token))
	return nil
}

// onGrant calls the engine about the grant that info describes.
func (c *Client) onGrant(ctx context.Context, info Info, f func(driver.Driver, context.Context, Info) error) error {
	return c.call(ctx, info.Key, func(ctx context.Context) error {
		if !info.Held || info.Grant == "" {
			return driver.Invalid("info", "it describes no grant")
		}
		return f(c.engine, ctx, info)
	})
}

// call calls the engine about a key.
func (c *Client) call(ctx context.Context, key string, f func(context.Context) error) error {
	if err := c.checkKey(key, driver.Mode{}); err != nil {
		return err
	}
	ctx, done, err := c.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	return c.explain(ctx, f(ctx))
}

// enter begins a call that Close waits for.
func (c *Client) enter(ctx context.Context) (context.Context, func(), error) {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.calls.Add(1)
	}
	c.mu.Unlock()
	if closed {
		return nil, nil, ErrClosed
	}
	ctx, done, err := c.bind(ctx)
	if err != nil {
		c.calls.Done()
		return nil, nil, err
	}
	return ctx, func() { done(); c.calls.Done() }, nil
}

func errNoContext() error { return driver.Invalid("ctx", "it is nil") }

// bind adds the closing of the client to a context that is not done yet.
func (c *Client) bind(ctx context.Context) (context.Context, func(), error) {
	if ctx == nil {
		return nil, nil, errNoContext()
	}
	if c.closing.Err() != nil {
		return nil, nil, ErrClosed
	}
	if ctx.Err() != nil {
		return nil, nil, driver.ContextError(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.closing, func() { cancel(ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }, nil
}

// explain adds to an error of the engine that the call's ctx, or the client, has ended, so that it matches both.
func (c *Client) explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if c.closing.Err() != nil {
		return ErrClosed
	}
	ended := driver.ContextError(ctx)
	switch {
	case errors.Is(ended, err):
		return ended
	case errors.Is(err, ended):
		return err
	}
	return fmt.Errorf("%w: %w", ended, err)
}

func (c *Client) checkPrefix(prefix string) error {
	if err := c.valid(); err != nil {
		return err
	}
	if prefix == "" || c.config.Features.AnyKey || (c.config.AbsoluteKeys && prefix == "/") {
		return nil
	}
	portable := prefix
	if c.config.AbsoluteKeys && portable[0] == '/' {
		portable = portable[1:]
	}
	last := portable[strings.LastIndexByte(portable, '/')+1:]
	switch last {
	case "": // the prefix ends with a slash
		portable = strings.TrimSuffix(portable, "/")
	case ".", "..": // the beginning of an element such as ".hidden"
		portable += "-"
	}
	return driver.CheckKey("prefix", portable)
}

// register adds a lock that is about to be live.
func (c *Client) register(k *Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[k.key] = append(c.held[k.key], k)
	c.outstanding[k] = struct{}{}
	c.unended.Add(1)
	c.watchClocksLocked()
}

// lockEnded removes a lock from the live ones and gives its key back, however it ended: a lock that ended by the holder's clock may
// still be held in the engine.
func (c *Client) lockEnded(k *Lock) {
	defer c.unended.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	left := slices.DeleteFunc(c.held[k.key], func(other *Lock) bool { return other == k })
	if c.held[k.key] = left; len(left) == 0 {
		delete(c.held, k.key)
	}
	if c.closed {
		c.endedByClose = append(c.endedByClose, k)
		if _, ok := c.engine.(driver.Ender); ok {
			return // the end of the session gives the key back
		}
	}
	c.releases.Go(func() { c.release(k) })
}

// release gives back a lock that has ended.
func (c *Client) release(k *Lock) {
	err := k.hold.Release(c.background)
	if err != nil && !errors.Is(err, ErrLost) && context.Cause(c.background) == errSessionEnded {
		err = nil // the end of the session has released it
	}
	c.noteRelease(k, err)
}

// noteRelease notes the engine's answer, once for each lock that has ended.
func (c *Client) noteRelease(k *Lock, err error) {
	switch {
	case err == nil:
	case errors.Is(err, ErrLost):
		err = &LostError{Key: k.key, Owner: k.owner, Token: k.token, Cause: cmp.Or(lossCause(err), ErrBroken)}
	default:
		err = fmt.Errorf("%w: %w", ErrReleasePending, err)
	}
	k.releErr = err
	close(k.givenBack)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.outstanding, k)
}
