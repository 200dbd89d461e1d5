package locktest

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/memlock"
)

// A fault makes an engine with one deliberate fault.
type fault struct {
	name   string
	breaks string        // the guarantee that the suite must name
	set    func(*Engine) // the fault is in what the engine promises

	engine  wrapper                   // or, on memlock, in the engine
	client  func(*Client)             // or above it
	onEvent listener                  // or between it and OnEvent
	update  func(updater) updater     // or, on dynamolock, in writes
	get     func(getter) getter       // or in reads
	table   func(*dynamolock.Options) // or in the client's options
}

// dynamoFaults are the faults of newDynamoEngine.
var dynamoFaults = slices.Concat(faultyTables, faultyTableData, faultyTableAsks, faultyLosses)

// TestFaultyEngines checks that the suite catches each fault, and names the guarantee that it breaks.
func TestFaultyEngines(t *testing.T) {
	broken := make(map[string]bool)
	for _, engine := range []struct {
		faults []fault
		make   func(fault) Engine
	}{{slices.Concat(faults, faultyEvents, faultyObservers, faultyElections, faultyData, faultyAsks, faultyAll, faultyShares, faultyPermits, faultyTurns, faultyLeases, faultyReturns), newEngine}, {dynamoFaults, newDynamoEngine}} {
		for _, f := range engine.faults {
			broken[f.breaks] = true
			t.Run(f.breaks+"_"+strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) {
				t.Parallel()
				var all []string
				for _, c := range cases {
					if !strings.HasPrefix(c.name, f.breaks+"_") {
						continue
					}
					all = append(all, record(t, engine.make(f), c)...)
					if slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, f.breaks+" broken: ") }) {
						t.Logf("reported: %q", all)
						return
					}
				}
				t.Errorf("the suite does not catch this fault (%s): %s passes; reported: %q", f.name, f.breaks, all)
			})
		}
	}
	if listed := guarantees(t); !maps.Equal(listed, broken) {
		t.Errorf("the faults break %v, and doc.go lists %v", broken, listed)
	}
}

// TestGuarantees checks that doc.go lists the guarantees that there are cases for.
func TestGuarantees(t *testing.T) {
	tested := make(map[string]bool)
	for _, c := range cases {
		rule, _, _ := strings.Cut(c.name, "_")
		tested[rule] = true
	}
	if listed := guarantees(t); !maps.Equal(listed, tested) {
		t.Errorf("there are cases for %v, and doc.go lists %v", tested, listed)
	}
}

// guarantees are the numbers that doc.go lists.
func guarantees(t *testing.T) map[string]bool {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]bool)
	for _, number := range regexp.MustCompile(`(?m)^//   - (G\d+) `).FindAllSubmatch(doc, -1) {
		if listed[string(number[1])] {
			t.Errorf("doc.go lists %s twice", number[1])
		}
		listed[string(number[1])] = true
	}
	return listed
}

// TestCorrectEngines checks that nothing but a fault makes the suite fail. Of those that take long it runs the guarantees
// that their faults break.
func TestCorrectEngines(t *testing.T) {
	for name, c := range map[string]struct {
		engine Engine
		faults []fault // nil: all guarantees
	}{
		"memlock":    {newEngine(fault{}), nil},
		"heartbeats": {newEngine(correctBeats), nil},
		"leased":     {newEngine(leased("", keeper{})), faultyLeases},
		"all":        {newEngine(fault{client: all(func(*allAPI) {})}), nil},
		"unordered":  {newEngine(fault{engine: takingTurns(lease), set: func(e *Engine) { e.Ordered = false }}), faultyTurns},
		"dynamolock": {newDynamoEngine(fault{update: changed(taking, func(*dynamodb.UpdateItemInput) {})}), dynamoFaults},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, tried := range cases {
				breaks := func(f fault) bool { return strings.HasPrefix(tried.name, f.breaks+"_") }
				if c.faults != nil && !slices.ContainsFunc(c.faults, breaks) {
					continue
				}
				if reported := record(t, c.engine, tried); len(reported) > 0 {
					t.Errorf("%s: %s", tried.name, strings.Join(reported, "\n"))
				}
			}
		})
	}
}

type (
	wrapper  = func(driver.Host, driver.Driver) driver.Driver
	acquirer func(context.Context, *driver.Request) (driver.Grant, error)
)

// faulty is an engine some of whose calls are replaced.
type faulty struct {
	driver.Driver
	host     driver.Host
	life     context.Context // ends with the client
	acquire  acquirer
	brk      func(context.Context, driver.Info) error
	ask      func(context.Context, driver.Info) error
	inspect  func(context.Context, string) (driver.Info, error)
	observe  func(context.Context, string, func(driver.Info)) error
	checkKey func(string, driver.Mode) error
	end      context.CancelFunc
}

func (f *faulty) Acquire(ctx context.Context, req *driver.Request) (driver.Grant, error) {
	return f.acquire(ctx, req)
}
func (f *faulty) Break(ctx context.Context, info driver.Info) error { return f.brk(ctx, info) }
func (f *faulty) Ask(ctx context.Context, info driver.Info) error   { return f.ask(ctx, info) }
func (f *faulty) Inspect(ctx context.Context, key string) (driver.Info, error) {
	return f.inspect(ctx, key)
}

func (f *faulty) Observe(ctx context.Context, key string, tell func(driver.Info)) error {
	return f.observe(ctx, key, tell)
}
func (f *faulty) CheckKey(key string, mode driver.Mode) error { return f.checkKey(key, mode) }

func (f *faulty) Close(ctx context.Context) error {
	f.end()
	return f.Driver.Close(ctx)
}

// replaced makes a faulty engine.
func replaced(replace func(f *faulty)) wrapper {
	return func(host driver.Host, d driver.Driver) driver.Driver {
		f := &faulty{Driver: d, host: host, acquire: d.Acquire, brk: d.Break, ask: d.Ask, inspect: d.Inspect, observe: d.Observe, checkKey: d.CheckKey}
		f.life, f.end = context.WithCancel(context.Background())
		replace(f)
		return f
	}
}

// request makes a faulty engine that changes requests.
func request(change func(*driver.Request)) wrapper {
	return replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			changed := *req
			change(&changed)
			return f.Driver.Acquire(ctx, &changed)
		}
	})
}

// granted makes a faulty engine that changes grants.
func granted(change func(f *faulty, key string, g *driver.Grant)) wrapper {
	return replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			g, err := f.Driver.Acquire(ctx, req)
			if err == nil {
				change(f, req.Key, &g)
			}
			return g, err
		}
	})
}

// failing makes a faulty engine that changes what a failed acquire returns, or what it leaves behind.
func failing(change func(ctx context.Context, f *faulty, req *driver.Request, err error) error) wrapper {
	return replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			g, err := f.Driver.Acquire(ctx, req)
			if err != nil {
				err = change(ctx, f, req, err)
			}
			return g, err
		}
	})
}

// leave leaves a waiter behind that lives as long as the client.
func (f *faulty) leave(req *driver.Request) {
	left := *req
	left.Wait = true
	left.Lost, left.Asked = func(error) {}, func() {}
	left.Retry = func(ctx context.Context, err error, wake <-chan struct{}) error {
		select {
		case <-wake:
			return nil
		case <-ctx.Done():
			return err
		}
	}
	go f.Driver.Acquire(f.life, &left)
}

// releaser is a hold with another release.
type releaser struct {
	driver.Hold
	release func(context.Context) error
}

func (h releaser) Release(ctx context.Context) error { return h.release(ctx) }

func nothing(context.Context) error { return nil }

// agreeing is a hold whose Verify always agrees.
type agreeing struct{ driver.Hold }

func (agreeing) Verify(context.Context) error { return nil }

// faultyClient is the portable API with some calls replaced.
type faultyClient struct {
	API
	acquire func(context.Context, string, ...holdfast.Option) (*holdfast.Lock, error)
	observe func(context.Context, string) iter.Seq2[holdfast.Info, error]
	events  func() *holdfast.Events
	close   func(context.Context) error
}

func (c *faultyClient) Acquire(ctx context.Context, key string, opts ...holdfast.Option) (*holdfast.Lock, error) {
	return c.acquire(ctx, key, opts...)
}

func (c *faultyClient) Observe(ctx context.Context, key string) iter.Seq2[holdfast.Info, error] {
	return c.observe(ctx, key)
}
func (c *faultyClient) Events() *holdfast.Events        { return c.events() }
func (c *faultyClient) Close(ctx context.Context) error { return c.close(ctx) }

// above puts a faulty client above a correct engine.
func above(replace func(c *faultyClient)) func(*Client) {
	return func(client *Client) {
		api := client.API
		c := &faultyClient{API: api, acquire: api.Acquire, observe: api.Observe, events: api.Events, close: api.Close}
		replace(c)
		client.API = c
	}
}

// polling makes an engine without a queue that does not promise order. It never polls in the
// instant of a release, which comes after whole milliseconds: chance would say who is first.
var polling = replaced(func(f *faulty) {
	f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
		try := *req
		try.Wait = false
		if req.Yield {
			time.Sleep(10 * time.Millisecond)
		}
		for {
			g, err := f.Driver.Acquire(ctx, &try)
			if !req.Wait || !errors.Is(err, holdfast.ErrHeld) || ctx.Err() != nil {
				return g, err
			}
			select {
			case <-time.After(time.Millisecond + time.Nanosecond):
			case <-ctx.Done():
			}
		}
	}
})

// believes makes a faulty engine that grants under a lease of its own, which nobody renews.
func believes(length time.Duration) wrapper {
	return granted(func(f *faulty, _ string, g *driver.Grant) {
		g.Lease = driver.NewLease(f.host, length, holdfast.ErrSessionExpired)
		g.Lease.Renew(f.host.Now())
	})
}

var releasesNothing = granted(func(_ *faulty, _ string, g *driver.Grant) { g.Hold = releaser{g.Hold, nothing} })

// faults are the faults that the suite must catch.
var faults = []fault{
	{name: "a holder that waited has held since it began to", breaks: "G1", engine: replaced(func(f *faulty) {
		f.inspect = func(ctx context.Context, key string) (driver.Info, error) {
			info, err := f.Driver.Inspect(ctx, key)
			info.Since = info.QueuedAt
			return info, err
		}
	})},
	{name: "a try is granted although the key is held", breaks: "G1", engine: replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			g, err := f.Driver.Acquire(ctx, req)
			if errors.Is(err, holdfast.ErrHeld) && !req.Wait {
				other := *req
				other.Key += " too"
				return f.Driver.Acquire(ctx, &other)
			}
			return g, err
		}
	})},
	{name: "a try is told what an earlier one was told", breaks: "G1", engine: replaced(func(f *faulty) {
		var told sync.Map
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			if err, ok := told.Load(req.Key); ok && !req.Wait {
				return driver.Grant{}, err.(error)
			}
			g, err := f.Driver.Acquire(ctx, req)
			if errors.Is(err, holdfast.ErrHeld) {
				told.Store(req.Key, err)
			}
			return g, err
		}
	})},
	{name: "case is folded", breaks: "G1", engine: request(func(req *driver.Request) { req.Key = strings.ToLower(req.Key) })},

	{name: "a lease is believed for too long", breaks: "G2", engine: believes(2 * lease)},
	{name: "a lease is not renewed", breaks: "G2", engine: believes(lease)},
	{name: "a session does not survive a cut", breaks: "G2", client: func(c *Client) {
		cut := c.Cut
		c.Cut = func() { cut(); c.Expire() }
	}},
	{name: "a loss is not reported", breaks: "G2", engine: request(func(req *driver.Request) { req.Lost = func(error) {} })},
	{name: "Verify always agrees", breaks: "G2", engine: replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			slow := *req
			slow.Lost = func(cause error) { time.AfterFunc(time.Millisecond, func() { req.Lost(cause) }) }
			g, err := f.Driver.Acquire(ctx, &slow)
			g.Hold = agreeing{g.Hold}
			return g, err
		}
	})},
	{name: "what is to last for ever goes to another after a cut", breaks: "G2", set: func(e *Engine) { e.NeverExpires = true }},

	{name: "there are tokens where none are promised", breaks: "G3", set: func(e *Engine) { e.Tokenless = true }},
	{name: "a token is used again", breaks: "G3", engine: granted(
		func(_ *faulty, _ string, g *driver.Grant) { g.Token = 1 + g.Token/2 },
	)},
	{name: "each client counts tokens by itself", breaks: "G3", engine: replaced(func(f *faulty) {
		var token atomic.Uint64
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			g, err := f.Driver.Acquire(ctx, req)
			g.Token = driver.Token(token.Add(1))
			return g, err
		}
	})},

	{name: "a loss is reported with another cause", breaks: "G4", engine: request(func(req *driver.Request) {
		lose := req.Lost
		req.Lost = func(error) { lose(holdfast.ErrTakenOver) }
	})},

	{name: "a waiter is left behind", breaks: "G5", engine: failing(
		func(ctx context.Context, f *faulty, req *driver.Request, err error) error {
			if req.Wait && ctx.Err() != nil {
				f.leave(req)
			}
			return err
		},
	)},
	{name: "giving up takes a second", breaks: "G5", engine: failing(
		func(ctx context.Context, _ *faulty, _ *driver.Request, err error) error {
			if ctx.Err() != nil {
				time.Sleep(time.Second)
			}
			return err
		},
	)},
	{name: "a try goes on in an outage", breaks: "G5", engine: failing(
		func(ctx context.Context, _ *faulty, req *driver.Request, err error) error {
			if !req.Wait && ctx.Err() == nil {
				time.Sleep(time.Minute)
			}
			return err
		},
	)},
	{name: "giving up does not say for what", breaks: "G5", engine: failing(
		func(ctx context.Context, _ *faulty, _ *driver.Request, err error) error {
			return cmp.Or(ctx.Err(), err)
		},
	)},

	{name: "an acquire that lost its link is made twice", breaks: "G6", engine: replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			changed := *req
			changed.Retry = func(ctx context.Context, err error, wake <-chan struct{}) error {
				if again := req.Retry(ctx, err, wake); again != nil {
					return again
				}
				f.leave(req)
				return nil
			}
			return f.Driver.Acquire(ctx, &changed)
		}
	})},
	{name: "what was given up while cut off is done later", breaks: "G6", engine: failing(
		func(_ context.Context, f *faulty, req *driver.Request, err error) error {
			if errors.Is(err, holdfast.ErrDisconnected) {
				f.leave(req)
			}
			return err
		},
	)},

	{name: "waiters poll in place of a queue", breaks: "G7", engine: polling},
	{
		name: "without a queue, a waiter asks only once", breaks: "G7",
		set: func(e *Engine) { e.Ordered = false },
		engine: replaced(func(f *faulty) {
			f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
				try := *req
				try.Wait = false
				g, err := f.Driver.Acquire(ctx, &try)
				if req.Wait && err != nil {
					<-ctx.Done()
				}
				return g, err
			}
		}),
	},
	{name: "every third client is served seldom in the long run", breaks: "G7", engine: func() wrapper {
		var clients atomic.Int64
		return replaced(func(f *faulty) {
			var asked atomic.Int64
			slow := clients.Add(1)%3 == 1
			f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
				if asked.Add(1) > 20 && slow {
					select {
					case <-time.After(4 * lease):
					case <-ctx.Done():
					}
				}
				return f.Driver.Acquire(ctx, req)
			}
		})
	}()},
	{name: "every other waiter is sent to the back", breaks: "G7", engine: replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			g, err := f.Driver.Acquire(ctx, req)
			if err != nil || !req.Wait || g.Token%2 == 1 {
				return g, err
			}
			if err := g.Hold.Release(ctx); err != nil {
				return driver.Grant{}, err
			}
			return f.Driver.Acquire(ctx, req)
		}
	})},
	{name: "a waiter whose session ended gives up", breaks: "G7", engine: request(func(req *driver.Request) {
		req.Retry = func(_ context.Context, err error, _ <-chan struct{}) error { return err }
	})},

	{name: "the TTL is ignored", breaks: "G8", client: above(func(c *faultyClient) {
		c.acquire = func(ctx context.Context, key string, opts ...holdfast.Option) (*holdfast.Lock, error) {
			return c.API.Acquire(ctx, key, append(opts, holdfast.WithTTL(0))...)
		}
	})},
	{name: "the TTL does not end the hold in the engine", breaks: "G8", engine: releasesNothing},

	{name: "events are lost", breaks: "G9", client: above(func(c *faultyClient) {
		if deaf, err := memlock.New(nil); err == nil {
			c.events = deaf.Events
		}
	})},
	{name: "the state flaps", breaks: "G9", engine: replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			f.host.SetConnected(false)
			return f.Driver.Acquire(ctx, req)
		}
	})},

	{name: "a release is confirmed but not done", breaks: "G10", engine: releasesNothing},
	{name: "a release frees the successor", breaks: "G10", engine: granted(func(f *faulty, key string, g *driver.Grant) {
		g.Hold = releaser{g.Hold, func(ctx context.Context) error {
			info, err := f.Driver.Inspect(ctx, key)
			if err == nil && info.Held {
				err = f.Driver.Break(ctx, info) // by key, whoever holds it
			}
			return err
		}}
	})},
	{name: "a break hits another grant", breaks: "G10", engine: replaced(func(f *faulty) {
		f.brk = func(ctx context.Context, info driver.Info) error {
			now, err := f.Driver.Inspect(ctx, info.Key)
			if err != nil {
				return err
			}
			return f.Driver.Break(ctx, now)
		}
	})},

	{name: "Close leaves the locks", breaks: "G11", client: above(func(c *faultyClient) { c.close = nothing })},

	{name: "a bad key is made good", breaks: "G12", client: above(func(c *faultyClient) {
		c.acquire = func(ctx context.Context, key string, opts ...holdfast.Option) (*holdfast.Lock, error) {
			return c.API.Acquire(ctx, strings.Trim(key, "/"), opts...)
		}
	})},
	{name: "a good key is refused", breaks: "G12", engine: replaced(func(f *faulty) {
		f.checkKey = func(key string, _ driver.Mode) error {
			if strings.ContainsAny(key, " ") {
				return driver.Invalid("key", "%q has a space", key)
			}
			return nil
		}
	})},
	{
		name: "an engine that cannot share does not say so", breaks: "G12",
		set: func(e *Engine) { e.Shares = false },
		engine: replaced(func(f *faulty) {
			f.checkKey = func(key string, _ driver.Mode) error { return f.Driver.CheckKey(key, driver.Mode{}) }
		}),
	},
	{name: "the engine is asked before the input is checked", breaks: "G12", client: above(func(c *faultyClient) {
		c.acquire = func(ctx context.Context, key string, opts ...holdfast.Option) (*holdfast.Lock, error) {
			if _, err := c.API.Inspect(ctx, "any"); err != nil {
				return nil, err
			}
			return c.API.Acquire(ctx, key, opts...)
		}
	})},

	{name: "a reclaim ends a stranger", breaks: "G13", engine: replaced(func(f *faulty) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			if info, err := f.Driver.Inspect(ctx, req.Key); err == nil && info.Held && req.Reclaim {
				if err := f.Driver.Break(ctx, info); err != nil {
					return driver.Grant{}, err
				}
			}
			return f.Driver.Acquire(ctx, req)
		}
	})},
	{name: "a reclaim ends nothing", breaks: "G13", engine: request(func(req *driver.Request) { req.Reclaim = false })},
}
