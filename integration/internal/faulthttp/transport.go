package faulthttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// ErrClosed is the error of a closed transport.
var ErrClosed = errors.New("faulthttp: transport is closed")

// Request is the part of a request that a [Rule] sees.
type Request struct {
	Op   string // such as "UpdateItem"
	Body []byte // JSON; not to be changed
}

// Transport forwards requests to another transport, and injects faults. It is safe for concurrent use.
type Transport struct {
	base http.RoundTripper
	life context.Context // of requests that outlive their caller
	end  context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	rule   Rule
	counts map[string]int
	cut    bool
	cable  chan struct{} // closed by the next Cut
	held   chan struct{} // closed when what Stall holds back arrives; nil: nothing is held back
}

// New returns a transport without faults, which forwards requests to base. Close it after use.
func New(base http.RoundTripper) *Transport {
	t := &Transport{base: base, counts: make(map[string]int), cable: make(chan struct{})}
	t.life, t.end = context.WithCancel(context.Background())
	return t
}

// Client returns an HTTP client that uses the transport.
func (t *Transport) Client() *http.Client { return &http.Client{Transport: t} }

// Close ends all requests, including late ones that are not yet delivered, and returns when all goroutines of the transport
// have ended. Waiting callers get [ErrClosed]. It may be called more than once.
func (t *Transport) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.end()
	t.wg.Wait()
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Cut cuts the network until Heal: neither requests nor pending replies arrive. Requests that a fault holds back are lost
// with their replies, except [Late] ones, which have already left the client's network. All calls stay silent until their ctx
// ends.
func (t *Transport) Cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.cut {
		t.cut = true
		close(t.cable)
	}
}

// Stall holds back the requests that begin from now on, unless a rule hits them, until Heal. They arrive then, even if their callers have
// given up.
func (t *Transport) Stall() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == nil {
		t.held = make(chan struct{})
	}
}

// Heal ends a Cut for calls that begin from now on, and a Stall for all.
func (t *Transport) Heal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held != nil {
		close(t.held)
		t.held = nil
	}
	if t.cut {
		t.cut = false
		t.cable = make(chan struct{})
	}
}

// Count is the number of requests of an operation that the client has sent. Every request counts, whatever its fate.
func (t *Transport) Count(op string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[op]
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	e, err := t.begin(req)
	if err != nil {
		return nil, err
	}
	defer t.wg.Done()
	// Close ends waiting calls even when their ctx does not.
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	defer context.AfterFunc(t.life, func() { cancel(ErrClosed) })()
	e.ctx = ctx
	return e.play()
}

// begin reads the request, counts it and finds its fault.
func (t *Transport) begin(req *http.Request) (*exchange, error) {
	e := &exchange{t: t, req: req}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		req.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("faulthttp: read request: %w", err)
		}
		e.seen.Body = body
	}
	// DynamoDB_20120810.UpdateItem
	_, e.seen.Op, _ = strings.Cut(req.Header.Get("X-Amz-Target"), ".")

	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil, ErrClosed
	}
	t.wg.Add(1)
	t.counts[e.seen.Op]++
	e.cable = t.cable
	rule, held := t.rule, t.held
	t.mu.Unlock()
	// Without the mutex: a rule may call the transport's methods.
	if rule != nil {
		e.fault = rule(e.seen)
	}
	if held != nil && e.fault.isPass() {
		e.fault = StallUntil(held)
	}
	return e, nil
}

// send forwards a copy of the request, and reads the whole reply.
func (t *Transport) send(ctx context.Context, req *http.Request, body []byte) (*http.Response, error) {
	out := req.Clone(ctx)
	if req.Body != nil {
		out.Body = io.NopCloser(bytes.NewReader(body))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	reply, err := t.base.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	b, err := io.ReadAll(reply.Body)
	if err != nil {
		return nil, err
	}
	reply.Request, reply.Body = req, io.NopCloser(bytes.NewReader(b))
	return reply, nil
}
