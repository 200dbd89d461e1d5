package main

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
)

func TestPerPeriod(t *testing.T) {
	t.Parallel()
	const period, periods = 100 * time.Millisecond, 10
	for name, c := range map[string]struct {
		sent []time.Duration // in each period
		late time.Duration   // every other period
		want float64
	}{
		"one in each":       {[]time.Duration{0}, 0, 1},
		"some of them late": {[]time.Duration{0}, 40 * time.Millisecond, 1},
		"two in each":       {[]time.Duration{0, 30 * time.Millisecond}, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				w := &wired{wire: faulthttp.New(answers{})}
				defer w.wire.Close()
				defer synctest.Wait()
				defer stop()
				go func() {
					for i := 0; ctx.Err() == nil; i++ {
						begin := time.Now()
						_ = pause(ctx, time.Duration(i%2)*c.late)
						for _, at := range c.sent {
							_ = pause(ctx, at)
							send(ctx, w.wire, "GetItem")
						}
						send(ctx, w.wire, "UpdateItem") // another operation
						_ = pause(ctx, period-time.Since(begin))
					}
				}()
				got, err := w.perPeriod(ctx, "GetItem", period, periods)
				if err != nil || got != c.want {
					t.Errorf("%v, %v; want %v", got, err, c.want)
				}
			})
		})
	}
}

// answers is a server with empty replies.
type answers struct{}

func (answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func send(ctx context.Context, wire *faulthttp.Transport, op string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://server", nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	if resp, err := wire.RoundTrip(req); err == nil {
		_ = resp.Body.Close()
	}
}
