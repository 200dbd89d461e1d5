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

func newServer(t *testing.T) *server {
	t.Helper()
	open := make(chan struct{})
	close(open)
	return newGatedServer(t, open)
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

// newTransport is a transport that ends before the server does.
func newTransport(t *testing.T) *Transport {
	t.Helper()
	tr := New(nil)
	t.Cleanup(tr.Close)
	return tr
}

// result is what a client has seen.
type result struct {
	status int
	err    error
}

func call(ctx context.Context, t *testing.T, tr *Transport, s *server, op string) result {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(`{"TableName":"t"}`))
	if err != nil {
		t.Error(err)
		return result{err: err}
	}
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	resp, err := tr.Client().Do(req)
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
func start(ctx context.Context, t *testing.T, tr *Transport, s *server, op string) <-chan result {
	t.Helper()
	done := make(chan result, 1)
	go func() { done <- call(ctx, t, tr, s, op) }()
	return done
}

// silent fails the test if the call has ended, gives the call's goroutine occasion to show that it does not wait, ends its ctx,
// and checks that this is what it sees.
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
