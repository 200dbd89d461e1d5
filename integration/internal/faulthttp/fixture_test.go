package faulthttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// server counts what arrives, and answers when the channel of its gate is closed.
type server struct {
	*httptest.Server
	arrived atomic.Int32
}

// never is a delay that no test waits for.
const never = 1 << 62

func newServer(t *testing.T) *server {
	t.Helper()
	return newGatedServer(t, closedChannel())
}

func closedChannel() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func newGatedServer(t *testing.T, gate <-chan struct{}) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		s.arrived.Add(1)
		<-gate
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		io.WriteString(w, "{}")
	}))
	t.Cleanup(s.Close)
	return s
}

// route is a way from a client to a server, through a transport that breaks it.
type route struct {
	client *http.Client
	url    string
}

// direct is the route of a client that uses the transport itself, which closes before the server does.
func direct(t *testing.T, s *server) (*Transport, route) {
	tr := New(http.DefaultTransport.(*http.Transport).Clone())
	t.Cleanup(tr.Close)
	return tr, route{tr.Client(), s.URL}
}

// newProxy makes a proxy that closes before the server does.
func newProxy(t *testing.T, s *server) *Proxy {
	t.Helper()
	p, err := Listen(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// through is the route of a proxy client that shares its connections with nobody.
func through(t *testing.T, p *Proxy) route {
	t.Helper()
	base := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(base.CloseIdleConnections)
	return route{&http.Client{Transport: base}, p.URL()}
}

// routes are the two kinds of them, each with a transport of its own.
var routes = map[string]func(*testing.T, *server) (*Transport, route){
	"transport": direct,
	"proxy": func(t *testing.T, s *server) (*Transport, route) {
		p := newProxy(t, s)
		return p.Transport, through(t, p)
	},
}

// result is what a client has seen.
type result struct {
	status int
	err    error
}

func (r route) call(ctx context.Context, t *testing.T, op string) result {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, strings.NewReader(`{"TableName":"t"}`))
	if err != nil {
		t.Error(err)
		return result{err: err}
	}
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	resp, err := r.client.Do(req)
	if err != nil {
		return result{err: err}
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Error(err)
	}
	return result{status: resp.StatusCode}
}

// start calls from a goroutine.
func (r route) start(ctx context.Context, t *testing.T, op string) <-chan result {
	t.Helper()
	done := make(chan result, 1)
	go func() { done <- r.call(ctx, t, op) }()
	return done
}

// silent checks that the call is still waiting, ends its ctx, and checks that the
// call then returns that error.
func silent(t *testing.T, done <-chan result, cancel context.CancelFunc) {
	t.Helper()
	for range 100 {
		runtime.Gosched()
	}
	select {
	case r := <-done:
		t.Fatalf("the call has ended with %+v, want silence", r)
	case <-time.After(5 * time.Millisecond):
	}
	cancel()
	if r := <-done; !errors.Is(r.err, context.Canceled) {
		t.Errorf("the call ended with %+v when its ctx did, want context.Canceled", r)
	}
}

func arrivals(t *testing.T, s *server, want int32) {
	t.Helper()
	if got := s.arrived.Load(); got != want {
		t.Errorf("%d requests have arrived, want %d", got, want)
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}
