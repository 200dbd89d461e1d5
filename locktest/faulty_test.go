package locktest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/memlock"
)

// A fault makes an engine with one deliberate fault.
type fault struct {
	name   string
	breaks string                                         // the guarantee that the suite must name
	engine func(driver.Host, driver.Driver) driver.Driver // the fault is in the engine
	client func(*Client)                                  // or above it
	hooks  func(holdfast.Hooks) holdfast.Hooks            // or between it and the hooks
	set    func(*Engine)                                  // or in what it promises
}

// TestFaultyEngines checks that the suite catches each fault, and names the guarantee
// that it breaks.
func TestFaultyEngines(t *testing.T) {
	caught := make(map[string]bool)
	for _, l := range slices.Concat(faults, faultyHooks) {
		t.Run(l.breaks+"_"+strings.ReplaceAll(l.name, " ", "_"), func(t *testing.T) {
			var all []string
			for _, c := range cases {
				if !strings.HasPrefix(c.name, l.breaks+"_") {
					continue
				}
				for _, reported := range record(t, newEngine(l), c) {
					t.Logf("%s: %s", c.name, reported)
					all = append(all, reported)
				}
			}
			for _, reported := range all {
				if strings.HasPrefix(reported, l.breaks+" broken: ") {
					caught[l.breaks] = true
					return
				}
			}
			t.Errorf("the suite does not catch this fault (%s): %s passes; reported: %q", l.name, l.breaks, all)
		})
	}
	if t.Failed() || len(caught) == 0 {
		return // or -run chose some
	}
	for _, c := range cases {
		rule, _, _ := strings.Cut(c.name, "_")
		if !caught[rule] {
			t.Errorf("no fault breaks %s", rule)
		}
	}
}

// faulty is an engine with some calls replaced.
type faulty struct {
	driver.Driver
	acquire  func(context.Context, *driver.Request) (driver.Grant, error)
	brk      func(context.Context, driver.Info) error
	inspect  func(context.Context, string) (driver.Info, error)
	checkKey func(string) error
	closing  func()
}

func (b *faulty) Acquire(ctx context.Context, req *driver.Request) (driver.Grant, error) {
	if b.acquire != nil {
		return b.acquire(ctx, req)
	}
	return b.Driver.Acquire(ctx, req)
}

func (b *faulty) Break(ctx context.Context, info driver.Info) error {
	if b.brk != nil {
		return b.brk(ctx, info)
	}
	return b.Driver.Break(ctx, info)
}

func (b *faulty) Inspect(ctx context.Context, key string) (driver.Info, error) {
	if b.inspect != nil {
		return b.inspect(ctx, key)
	}
	return b.Driver.Inspect(ctx, key)
}

func (b *faulty) CheckKey(key string) error {
	if b.checkKey != nil {
		return b.checkKey(key)
	}
	return b.Driver.CheckKey(key)
}

func (b *faulty) Close(ctx context.Context) error {
	if b.closing != nil {
		b.closing()
	}
	return b.Driver.Close(ctx)
}

// request makes a faulty engine that changes requests.
func request(change func(*driver.Request)) func(driver.Host, driver.Driver) driver.Driver {
	return func(_ driver.Host, inner driver.Driver) driver.Driver {
		return &faulty{Driver: inner, acquire: func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			changed := *req
			change(&changed)
			return inner.Acquire(ctx, &changed)
		}}
	}
}

// granted makes a faulty engine that changes grants.
func granted(change func(host driver.Host, inner driver.Driver, key string, g *driver.Grant)) func(driver.Host, driver.Driver) driver.Driver {
	return func(host driver.Host, inner driver.Driver) driver.Driver {
		return &faulty{Driver: inner, acquire: func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			g, err := inner.Acquire(ctx, req)
			if err == nil {
				change(host, inner, req.Key, &g)
			}
			return g, err
		}}
	}
}

// failing makes a faulty engine that changes what a failed acquire does and returns.
func failing(change func(ctx context.Context, inner driver.Driver, req *driver.Request, err error) (driver.Grant, error)) func(driver.Host, driver.Driver) driver.Driver {
	return func(_ driver.Host, inner driver.Driver) driver.Driver {
		life, end := context.WithCancel(context.Background())
		return &faulty{Driver: inner, closing: end, acquire: func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			g, err := inner.Acquire(ctx, req)
			if err == nil {
				return g, nil
			}
			return change(context.WithValue(ctx, lifeKey{}, life), inner, req, err)
		}}
	}
}

// lifeKey finds a ctx that ends with the client, for goroutines that a faulty engine
// leaves behind.
type lifeKey struct{}

func leave(ctx context.Context, inner driver.Driver, req *driver.Request) {
	left := *req
	left.Wait = true
	left.Lost = func(error) {}
	left.Retry = func(ctx context.Context, err error, wake <-chan struct{}) error {
		select {
		case <-wake:
			return nil
		case <-ctx.Done():
			return err
		}
	}
	go inner.Acquire(ctx.Value(lifeKey{}).(context.Context), &left)
}

// hold is a hold with some calls replaced.
type hold struct {
	driver.Hold
	verify, release func(context.Context) error
}

func (h *hold) Verify(ctx context.Context) error {
	if h.verify != nil {
		return h.verify(ctx)
	}
	return h.Hold.Verify(ctx)
}

func (h *hold) Release(ctx context.Context) error {
	if h.release != nil {
		return h.release(ctx)
	}
	return h.Hold.Release(ctx)
}

func nothing(context.Context) error { return nil }

// faultyClient is the portable API with some calls replaced.
type faultyClient struct {
	API
	acquire func(context.Context, string, ...holdfast.Option) (*holdfast.Lock, error)
	events  func() *holdfast.Events
	close   func(context.Context) error
}

func (l *faultyClient) Acquire(ctx context.Context, key string, opts ...holdfast.Option) (*holdfast.Lock, error) {
	if l.acquire != nil {
		return l.acquire(ctx, key, opts...)
	}
	return l.API.Acquire(ctx, key, opts...)
}

func (l *faultyClient) Events() *holdfast.Events {
	if l.events != nil {
		return l.events()
	}
	return l.API.Events()
}

func (l *faultyClient) Close(ctx context.Context) error {
	if l.close != nil {
		return l.close(ctx)
	}
	return l.API.Close(ctx)
}

// polling makes an engine without a queue that does not promise order.
func polling(_ driver.Host, inner driver.Driver) driver.Driver {
	return &faulty{Driver: inner, acquire: func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
		try := *req
		try.Wait = false
		for {
			g, err := inner.Acquire(ctx, &try)
			if !req.Wait || !errors.Is(err, holdfast.ErrHeld) || ctx.Err() != nil {
				return g, err
			}
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
			}
		}
	}}
}

// faults are the faults that the suite must catch.
var faults = []fault{
	{name: "a holder that waited has held since it began to", breaks: "G1", engine: func(_ driver.Host, inner driver.Driver) driver.Driver {
		return &faulty{Driver: inner, inspect: func(ctx context.Context, key string) (driver.Info, error) {
			info, err := inner.Inspect(ctx, key)
			info.Since = info.QueuedAt
			return info, err
		}}
	}},
	{name: "a try is granted although the key is held", breaks: "G1", engine: failing(
		func(ctx context.Context, inner driver.Driver, req *driver.Request, err error) (driver.Grant, error) {
			if !errors.Is(err, holdfast.ErrHeld) || req.Wait {
				return driver.Grant{}, err
			}
			other := *req
			other.Key += " too"
			return inner.Acquire(ctx, &other)
		},
	)},
	{name: "case is folded", breaks: "G1", engine: request(func(req *driver.Request) { req.Key = strings.ToLower(req.Key) })},

	{name: "a lease is believed for too long", breaks: "G2", engine: granted(
		func(host driver.Host, _ driver.Driver, _ string, g *driver.Grant) {
			g.Lease = host.NewLease(2*lease, holdfast.ErrSessionExpired)
			g.Lease.Renew(host.Now())
		},
	)},
	{name: "a lease is not renewed", breaks: "G2", engine: granted(
		func(host driver.Host, _ driver.Driver, _ string, g *driver.Grant) {
			g.Lease = host.NewLease(lease, holdfast.ErrSessionExpired)
			g.Lease.Renew(host.Now())
		},
	)},
	{name: "a session does not survive a cut", breaks: "G2", client: func(c *Client) {
		cut := c.Cut
		c.Cut = func() { cut(); c.Expire() }
	}},
	{name: "a loss is not reported", breaks: "G2", engine: request(func(req *driver.Request) { req.Lost = func(error) {} })},
	{name: "Verify always agrees", breaks: "G2", engine: func(_ driver.Host, inner driver.Driver) driver.Driver {
		return &faulty{Driver: inner, acquire: func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			slow := *req
			slow.Lost = func(cause error) { time.AfterFunc(time.Millisecond, func() { req.Lost(cause) }) }
			g, err := inner.Acquire(ctx, &slow)
			g.Hold = &hold{Hold: g.Hold, verify: nothing}
			return g, err
		}}
	}},

	{name: "what is to last for ever goes to another after a cut", breaks: "G2", set: func(e *Engine) { e.NeverExpires = true }},

	{name: "there are tokens where none are promised", breaks: "G3", set: func(e *Engine) { e.Tokenless = true }},
	{name: "a token is used again", breaks: "G3", engine: granted(
		func(_ driver.Host, _ driver.Driver, _ string, g *driver.Grant) { g.Token = 1 + g.Token/2 },
	)},
	{name: "each client counts tokens by itself", breaks: "G3", engine: func(_ driver.Host, inner driver.Driver) driver.Driver {
		var mu sync.Mutex
		var token uint64
		return &faulty{Driver: inner, acquire: func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			g, err := inner.Acquire(ctx, req)
			mu.Lock()
			defer mu.Unlock()
			token++
			g.Token = token
			return g, err
		}}
	}},

	{name: "a loss is reported with another cause", breaks: "G4", engine: request(func(req *driver.Request) {
		lose := req.Lost
		req.Lost = func(error) { lose(holdfast.ErrTakenOver) }
	})},

	{name: "a waiter is left behind", breaks: "G5", engine: failing(
		func(ctx context.Context, inner driver.Driver, req *driver.Request, err error) (driver.Grant, error) {
			if req.Wait && ctx.Err() != nil {
				leave(ctx, inner, req)
			}
			return driver.Grant{}, err
		},
	)},
	{name: "giving up takes a second", breaks: "G5", engine: failing(
		func(ctx context.Context, _ driver.Driver, _ *driver.Request, err error) (driver.Grant, error) {
			if ctx.Err() != nil {
				time.Sleep(time.Second)
			}
			return driver.Grant{}, err
		},
	)},
	{name: "giving up does not say for what", breaks: "G5", engine: failing(
		func(ctx context.Context, _ driver.Driver, _ *driver.Request, err error) (driver.Grant, error) {
			if ctx.Err() != nil {
				return driver.Grant{}, ctx.Err()
			}
			return driver.Grant{}, err
		},
	)},

	{name: "an acquire that lost its link is made twice", breaks: "G6", engine: func(_ driver.Host, inner driver.Driver) driver.Driver {
		life, end := context.WithCancel(context.Background())
		return &faulty{Driver: inner, closing: end, acquire: func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			changed := *req
			changed.Retry = func(ctx context.Context, err error, wake <-chan struct{}) error {
				if again := req.Retry(ctx, err, wake); again != nil {
					return again
				}
				leave(context.WithValue(ctx, lifeKey{}, life), inner, req)
				return nil
			}
			return inner.Acquire(ctx, &changed)
		}}
	}},
	{name: "what was given up while cut off is done later", breaks: "G6", engine: failing(
		func(ctx context.Context, inner driver.Driver, req *driver.Request, err error) (driver.Grant, error) {
			if errors.Is(err, holdfast.ErrDisconnected) {
				leave(ctx, inner, req)
			}
			return driver.Grant{}, err
		},
	)},

	{name: "waiters poll in place of a queue", breaks: "G7", engine: polling},
	{name: "every other waiter is sent to the back", breaks: "G7", engine: func(_ driver.Host, inner driver.Driver) driver.Driver {
		return &faulty{Driver: inner, acquire: func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			g, err := inner.Acquire(ctx, req)
			if err != nil || !req.Wait || g.Token%2 == 1 {
				return g, err
			}
			if err := g.Hold.Release(ctx); err != nil {
				return driver.Grant{}, err
			}
			return inner.Acquire(ctx, req)
		}}
	}},
	{name: "a waiter whose session ended gives up", breaks: "G7", engine: request(func(req *driver.Request) {
		req.Retry = func(_ context.Context, err error, _ <-chan struct{}) error { return err }
	})},

	{name: "the TTL is ignored", breaks: "G8", client: func(c *Client) {
		api := c.API
		c.API = &faultyClient{API: api, acquire: func(ctx context.Context, key string, opts ...holdfast.Option) (*holdfast.Lock, error) {
			return api.Acquire(ctx, key, append(opts, holdfast.WithTTL(0))...)
		}}
	}},
	{name: "the TTL does not end the hold in the engine", breaks: "G8", engine: granted(
		func(_ driver.Host, _ driver.Driver, _ string, g *driver.Grant) {
			g.Hold = &hold{Hold: g.Hold, release: nothing}
		},
	)},

	{name: "events are lost", breaks: "G9", client: func(c *Client) {
		deaf, err := memlock.New(nil)
		if err == nil {
			c.API = &faultyClient{API: c.API, events: deaf.Events}
		}
	}},
	{name: "the state flaps", breaks: "G9", engine: func(host driver.Host, inner driver.Driver) driver.Driver {
		return &faulty{Driver: inner, acquire: func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			host.SetConnected(false)
			return inner.Acquire(ctx, req)
		}}
	}},

	{name: "a release is confirmed but not done", breaks: "G10", engine: granted(
		func(_ driver.Host, _ driver.Driver, _ string, g *driver.Grant) {
			g.Hold = &hold{Hold: g.Hold, release: nothing}
		},
	)},
	{name: "a release frees the successor", breaks: "G10", engine: granted(
		func(_ driver.Host, inner driver.Driver, key string, g *driver.Grant) {
			g.Hold = &hold{Hold: g.Hold, release: func(ctx context.Context) error {
				info, err := inner.Inspect(ctx, key)
				if err == nil && info.Held {
					err = inner.Break(ctx, info) // by key, whoever holds it
				}
				return err
			}}
		},
	)},
	{name: "a break hits another grant", breaks: "G10", engine: func(_ driver.Host, inner driver.Driver) driver.Driver {
		return &faulty{Driver: inner, brk: func(ctx context.Context, info driver.Info) error {
			now, err := inner.Inspect(ctx, info.Key)
			if err != nil {
				return err
			}
			return inner.Break(ctx, now)
		}}
	}},

	{name: "Close leaves the locks", breaks: "G11", client: func(c *Client) {
		c.API = &faultyClient{API: c.API, close: nothing}
	}},

	{name: "a bad key is made good", breaks: "G12", client: func(c *Client) {
		api := c.API
		c.API = &faultyClient{API: api, acquire: func(ctx context.Context, key string, opts ...holdfast.Option) (*holdfast.Lock, error) {
			return api.Acquire(ctx, strings.Trim(key, "/"), opts...)
		}}
	}},
	{name: "a good key is refused", breaks: "G12", engine: func(_ driver.Host, inner driver.Driver) driver.Driver {
		return &faulty{Driver: inner, checkKey: func(key string) error {
			if strings.ContainsAny(key, " ") {
				return driver.Invalid("key", "%q has a space", key)
			}
			return nil
		}}
	}},
	{name: "the engine is asked before the input is checked", breaks: "G12", client: func(c *Client) {
		api := c.API
		c.API = &faultyClient{API: api, acquire: func(ctx context.Context, key string, opts ...holdfast.Option) (*holdfast.Lock, error) {
			if _, err := api.Inspect(ctx, "any"); err != nil {
				return nil, err
			}
			return api.Acquire(ctx, key, opts...)
		}}
	}},

	{name: "a reclaim ends a stranger", breaks: "G13", engine: func(_ driver.Host, inner driver.Driver) driver.Driver {
		return &faulty{Driver: inner, acquire: func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			if info, err := inner.Inspect(ctx, req.Key); err == nil && info.Held && req.Reclaim {
				if err := inner.Break(ctx, info); err != nil {
					return driver.Grant{}, err
				}
			}
			return inner.Acquire(ctx, req)
		}}
	}},
	{name: "a reclaim ends nothing", breaks: "G13", engine: request(func(req *driver.Request) { req.Reclaim = false })},
}
