package locktest

import (
	"context"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// A fault is a deliberate fault of an engine, and the guarantees that it breaks.
type fault struct {
	name   string
	breaks []string
	in     string // the case that must find it; "" if any of the guarantee may
	late   bool   // writes of data can be late: see lateData
	engine func(driver.Host, driver.Driver) driver.Driver
	client func(*Client)
}

// TestFaultyEngines checks that the suite finds each fault, and names each guarantee that the fault breaks. The mutants of
// integration/cmd/score test the suite further.
func TestFaultyEngines(t *testing.T) {
	broken := make(map[string]bool)
	for _, f := range faults {
		for _, rule := range f.breaks {
			broken[rule] = true
			t.Run(rule+"_"+strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) {
				t.Parallel()
				var all []string
				for _, c := range cases {
					if strings.HasPrefix(c.name, rule+"_") && (f.in == "" || f.in == c.name) {
						all = append(all, record(t, newEngine(f), c)...)
					}
					if slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, rule+" broken: ") }) {
						return
					}
				}
				t.Errorf("the suite does not find this fault; reported: %q", all)
			})
		}
	}
	if listed := guarantees(t); !maps.Equal(listed, broken) {
		t.Errorf("the faults break %v, and doc.go lists %v", broken, listed)
	}
}

// TestGuarantees checks that doc.go lists the guarantees that have cases.
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

// faulty is an engine with some calls replaced.
type faulty struct {
	driver.Driver
	acquire func(context.Context, *driver.Request) (driver.Grant, error)
	observe func(context.Context, string, func(driver.Info)) error
}

func (f *faulty) Acquire(ctx context.Context, req *driver.Request) (driver.Grant, error) {
	return f.acquire(ctx, req)
}

func (f *faulty) Observe(ctx context.Context, key string, tell func(driver.Info)) error {
	return f.observe(ctx, key, tell)
}

func replaced(replace func(f *faulty, host driver.Host)) func(driver.Host, driver.Driver) driver.Driver {
	return func(host driver.Host, d driver.Driver) driver.Driver {
		f := &faulty{Driver: d, acquire: d.Acquire, observe: d.Observe}
		replace(f, host)
		return f
	}
}

// request makes a faulty engine that changes requests.
func request(change func(*driver.Request)) func(driver.Host, driver.Driver) driver.Driver {
	return replaced(func(f *faulty, _ driver.Host) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			changed := *req
			change(&changed)
			return f.Driver.Acquire(ctx, &changed)
		}
	})
}

// outcome makes a faulty engine that changes what a request came to.
func outcome(
	change func(ctx context.Context, f *faulty, host driver.Host, req *driver.Request, g driver.Grant, err error) (driver.Grant, error),
) func(driver.Host, driver.Driver) driver.Driver {
	return replaced(func(f *faulty, host driver.Host) {
		f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
			g, err := f.Driver.Acquire(ctx, req)
			return change(ctx, f, host, req, g, err)
		}
	})
}

// idle is a hold that confirms what it does not do.
type idle struct{ driver.Hold }

func (idle) Release(context.Context) error         { return nil }
func (idle) SetData(context.Context, []byte) error { return nil }

// A mailbag gives each SetData of a client its fate.
type mailbag struct {
	mu   sync.Mutex
	next func() Fate
}

func (m *mailbag) lose(next func() Fate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = next
}

// lateData is a hold whose writes may be carried out late.
type lateData struct {
	driver.Hold
	mail *mailbag
}

func (h lateData) SetData(ctx context.Context, data []byte) error {
	h.mail.mu.Lock()
	late := h.mail.next != nil && h.mail.next() == LateRequest
	h.mail.mu.Unlock()
	if !late {
		return h.Hold.SetData(ctx, data)
	}
	time.AfterFunc(lease/2, func() { _ = h.Hold.SetData(context.WithoutCancel(ctx), data) })
	<-ctx.Done()
	return driver.ErrDisconnected
}

// herd has all waiters of a client look at the queue when one of them is granted.
func herd(f *faulty, _ driver.Host) {
	var mu sync.Mutex
	waiting := make(map[*driver.Request]bool)
	f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
		mu.Lock()
		waiting[req] = true
		mu.Unlock()
		g, err := f.Driver.Acquire(ctx, req)
		mu.Lock()
		defer mu.Unlock()
		delete(waiting, req)
		for other := range waiting {
			other.Queued(1)
		}
		return g, err
	}
}

// open is a client that confirms a Close that it does not do.
type open struct{ API }

func (open) Close(context.Context) error { return nil }

var faults = []fault{
	{name: "a try is granted although the key is held", breaks: []string{"G1"}, engine: outcome(
		func(ctx context.Context, f *faulty, _ driver.Host, req *driver.Request, g driver.Grant, err error) (driver.Grant, error) {
			if errors.Is(err, holdfast.ErrHeld) && !req.Wait {
				other := *req
				other.Key += " too"
				return f.Driver.Acquire(ctx, &other)
			}
			return g, err
		},
	)},
	{name: "a lease is believed for too long", breaks: []string{"G2"}, engine: outcome(
		func(_ context.Context, _ *faulty, host driver.Host, _ *driver.Request, g driver.Grant, err error) (driver.Grant, error) {
			g.Lease = driver.NewLease(host, 2*lease, holdfast.ErrSessionExpired)
			g.Lease.Renew(host.Now())
			return g, err
		},
	)},
	{name: "a token is used again", breaks: []string{"G3"}, engine: outcome(
		func(_ context.Context, _ *faulty, _ driver.Host, _ *driver.Request, g driver.Grant, err error) (driver.Grant, error) {
			g.Token = 1 + g.Token/2
			return g, err
		},
	)},
	{name: "a loss is reported with another cause", breaks: []string{"G4"}, engine: request(func(req *driver.Request) {
		lose := req.Lost
		req.Lost = func(error) { lose(holdfast.ErrTakenOver) }
	})},
	{name: "giving up takes a second", breaks: []string{"G5"}, engine: outcome(
		func(ctx context.Context, _ *faulty, _ driver.Host, _ *driver.Request, g driver.Grant, err error) (driver.Grant, error) {
			if ctx.Err() != nil {
				time.Sleep(time.Second)
			}
			return g, err
		},
	)},
	{name: "a request that was given up in an outage is carried out later", breaks: []string{"G6"}, engine: outcome(
		func(ctx context.Context, f *faulty, _ driver.Host, req *driver.Request, g driver.Grant, err error) (driver.Grant, error) {
			if errors.Is(err, holdfast.ErrDisconnected) {
				late := *req
				late.Wait, late.Lost, late.Asked = false, func(error) {}, func() {}
				late.Retry = func(context.Context, error, <-chan struct{}) error { time.Sleep(time.Millisecond); return nil }
				go f.Driver.Acquire(context.WithoutCancel(ctx), &late)
			}
			return g, err
		},
	)},
	{name: "every other waiter is sent to the back", breaks: []string{"G7", "G21"}, engine: outcome(
		func(ctx context.Context, f *faulty, _ driver.Host, req *driver.Request, g driver.Grant, err error) (driver.Grant, error) {
			if err != nil || !req.Wait || g.Token%2 == 1 || g.Hold.Release(ctx) != nil {
				return g, err
			}
			return f.Driver.Acquire(ctx, req)
		},
	)},
	{name: "all waiters are woken by each release", breaks: []string{"G21"}, in: "G21_OneWokenPerPermit", engine: replaced(herd)},
	{name: "dead waiters stay in the queue", breaks: []string{"G7"}, in: "G7_DeadHead", client: func(c *Client) { c.Cut = func() {} }},
	{name: "data that was given up is written later", breaks: []string{"G16"}, in: "G16_SetDataIsLate", late: true},
	{name: "the state flaps", breaks: []string{"G9"}, engine: outcome(
		func(_ context.Context, _ *faulty, host driver.Host, _ *driver.Request, g driver.Grant, err error) (driver.Grant, error) {
			host.SetConnected(false)
			return g, err
		},
	)},
	{name: "releases and writes are confirmed and not carried out", breaks: []string{"G8", "G10", "G16"}, engine: outcome(
		func(_ context.Context, _ *faulty, _ driver.Host, _ *driver.Request, g driver.Grant, err error) (driver.Grant, error) {
			g.Hold = idle{g.Hold}
			return g, err
		},
	)},
	{name: "Close leaves the locks", breaks: []string{"G11"}, client: func(c *Client) { c.API = open{c.API} }},
	{name: "owner names are cut", breaks: []string{"G12"}, engine: request(func(req *driver.Request) {
		req.Owner = req.Owner[:min(len(req.Owner), 20)]
	})},
	{name: "a reclaim ends nothing", breaks: []string{"G13"}, engine: request(func(req *driver.Request) { req.Reclaim = false })},
	{name: "observers are not told that a key is free", breaks: []string{"G14"}, engine: replaced(func(f *faulty, _ driver.Host) {
		f.observe = func(ctx context.Context, key string, tell func(driver.Info)) error {
			return f.Driver.Observe(ctx, key, func(info driver.Info) {
				if info.Held {
					tell(info)
				}
			})
		}
	})},
	{name: "an ask is not told", breaks: []string{"G15", "G17"}, engine: request(func(req *driver.Request) { req.Asked = func() {} })},
	{name: "a loss is not reported", breaks: []string{"G18"}, engine: request(func(req *driver.Request) { req.Lost = func(error) {} })},
	{name: "readers and writers do not see each other", breaks: []string{"G19"}, engine: request(func(req *driver.Request) {
		if req.Mode.Shared && req.Mode.Limit == 0 {
			req.Key += " readers"
		}
	})},
	{name: "one permit too many", breaks: []string{"G20"}, engine: request(func(req *driver.Request) {
		if req.Mode.Limit > 0 {
			req.Mode.Limit++
		}
	})},
}
