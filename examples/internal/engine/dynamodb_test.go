package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A client that is cut off hears nothing, not even of what was under way.
func TestCutter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &answerer{}
		c := &cutter{HTTPClient: server}
		call := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:1", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := c.Do(r)
			if err == nil {
				response.Body.Close()
			}
			return err
		}
		if err := call(); err != nil || server.closed != 1 {
			t.Errorf("before: %v, %d answers closed", err, server.closed)
		}

		time.AfterFunc(time.Second/2, func() { c.cut.Store(true) })
		if err := call(); !errors.Is(err, context.DeadlineExceeded) || server.closed != 2 {
			t.Errorf("cut off while under way: %v, %d answers closed", err, server.closed)
		}
		if err := call(); !errors.Is(err, context.DeadlineExceeded) || server.asked != 2 {
			t.Errorf("cut off: %v, %d requests arrived", err, server.asked)
		}
		c.cut.Store(false)
		if err := call(); err != nil {
			t.Errorf("healed: %v", err)
		}
	})
}

// answerer answers each request after a second.
type answerer struct{ asked, closed int }

func (a *answerer) Do(*http.Request) (*http.Response, error) {
	a.asked++
	time.Sleep(time.Second)
	return &http.Response{Body: &body{Reader: &bytes.Reader{}, closed: &a.closed}}, nil
}

type body struct {
	io.Reader

	closed *int
}

func (b *body) Close() error { *b.closed++; return nil }
