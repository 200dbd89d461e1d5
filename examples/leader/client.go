package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
)

// A route is where the leader is.
type route struct {
	mu      sync.Mutex
	address string        // "" without a leader
	changed chan struct{} // closed at the next change
}

func (r *route) set(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.address = address
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *route) now() (string, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.address, r.changed
}

// ask sends requests to the leader, one after the other, until ctx ends.
func ask(signalled context.Context, out *teller, e *engine.Engine, name string) error {
	client, err := e.NewClient(signalled, name)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(signalled))
	ctx, cancel := context.WithCancelCause(signalled)
	defer cancel(nil)
	r := &route{changed: make(chan struct{})}
	var observer sync.WaitGroup
	observer.Go(func() {
		for leader, err := range client.Observe(ctx, key) {
			switch {
			case err != nil:
				cancel(err)
			case leader.Held:
				r.set(string(leader.Data))
			default:
				r.set("")
			}
		}
	})
	defer observer.Wait()
	defer cancel(nil)

	requests := requester{http: http.Client{Timeout: 2 * time.Second}, route: r}
	defer requests.http.CloseIdleConnections()
	last, slowest, n := "", time.Duration(0), 0
	for ctx.Err() == nil {
		start := time.Now()
		by, err := requests.answered(ctx)
		if err != nil {
			break // ctx has ended
		}
		took := time.Since(start)
		slowest, n = max(slowest, took), n+1
		if by != last {
			out.say(name, "request %d is answered by %s, token %d, after %v", n, by, requests.token, took.Round(time.Millisecond))
			last = by
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	out.say(name, "all %d requests were answered; the slowest took %v", n, slowest.Round(time.Millisecond))
	return unlessOver(signalled, context.Cause(ctx))
}

// A requester sends requests to the leader.
type requester struct {
	http  http.Client
	route *route
	token holdfast.Token // the greatest of an answer
}

// answered sends a request until a leader has answered it, and returns its name, or the
// error of ctx. A request may be carried out more than once: a leader that dies may have
// done so without answering.
func (r *requester) answered(ctx context.Context) (string, error) {
	for ctx.Err() == nil {
		address, changed := r.route.now()
		if address != "" {
			by, token, err := r.send(ctx, address)
			// A smaller token is that of a leader that does not know yet that it is deposed.
			if err == nil && token >= r.token {
				r.token = token
				return by, nil
			}
		}
		// It has gone, or does not lead any more. Wait for the next, but not for long: the
		// same may have been elected again.
		select {
		case <-changed:
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return "", ctx.Err()
}

func (r *requester) send(ctx context.Context, address string) (by string, token holdfast.Token, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/", nil)
	if err != nil {
		return "", 0, err
	}
	answer, err := r.http.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", 0, errors.New(answer.Status)
	}
	_, err = fmt.Fscan(answer.Body, &by, &token)
	return by, token, err
}
