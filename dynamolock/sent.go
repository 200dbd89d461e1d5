package dynamolock

import (
	"context"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/backoff"
)

// A sending knows whether a request has been given a connection to be sent on. It
// is asked of net/http, which tells when it looks for one and when it has it: with
// another HTTP client below the SDK neither is heard of, and nothing is known.
type sending struct {
	wanted, got, dialing atomic.Bool

	once   sync.Once
	dialed chan struct{} // closed when a dial has come to an end
}

func newSending() *sending { return &sending{dialed: make(chan struct{})} }

func (s *sending) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { s.wanted.Store(true) },
		GotConn:      func(httptrace.GotConnInfo) { s.got.Store(true) },
		ConnectStart: func(string, string) { s.dialing.Store(true) },
		ConnectDone:  func(string, string, error) { s.once.Do(func() { close(s.dialed) }) },
	})
}

// never reports whether nothing was sent up to now, as far as is certain.
func (s *sending) never() bool { return s.wanted.Load() && !s.got.Load() }

// outlive waits, for a request that was cancelled before it had a connection, until
// that has probably been made. net/http goes on with it, for the next request; if that
// came and was cancelled at once, and so on, there would be no bound to connections.
func (s *sending) outlive(ctx context.Context, timeout, grace time.Duration) {
	if s.dialing.Load() {
		backoff.Sleep(ctx, timeout, s.dialed)
	}
	backoff.Sleep(ctx, grace, nil) // TLS, on a good day
}
