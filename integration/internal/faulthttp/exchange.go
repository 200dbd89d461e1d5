package faulthttp

import (
	"context"
	"net/http"
	"time"
)

// exchange is one request and its fate.
type exchange struct {
	t     *Transport
	req   *http.Request
	ctx   context.Context // the caller's; ends with the transport, too
	seen  Request
	fault Fault
	cable <-chan struct{} // closed when the network has been cut since the request began
}

func (e *exchange) play() (*http.Response, error) {
	if e.isCut() {
		return e.silence()
	}
	switch e.fault.kind {
	case loseRequest:
		return e.instead()
	case answered:
		return e.fault.answer.response(e.req), nil
	case late:
		e.detach()
		return e.instead()
	case loseReply, stalled:
		return e.outlive()
	}
	if !e.sleep(e.fault.before) {
		return e.silence()
	}
	reply, err := e.t.send(e.ctx, e.req, e.seen.Body)
	if !e.sleep(e.fault.after) {
		return e.silence()
	}
	return reply, err
}

// outlive waits for the server's answer, or until the caller gives up; the request continues either way.
func (e *exchange) outlive() (*http.Response, error) {
	select {
	case s := <-e.detach():
		switch {
		case e.fault.kind == loseReply:
			return e.instead()
		case e.isCut():
			return e.silence()
		}
		return s.reply, s.err
	case <-e.ctx.Done():
		return nil, context.Cause(e.ctx)
	}
}

// sent is the outcome of a request.
type sent struct {
	reply *http.Response
	err   error
}

// detach sends the request after its delay, even if the caller no longer waits for the reply.
func (e *exchange) detach() <-chan sent {
	done := make(chan sent, 1)
	// RoundTrip still counts: the group cannot be at zero.
	e.t.wg.Go(func() {
		// A late request has already passed the network that may be cut.
		if e.fault.until != nil {
			select {
			case <-e.fault.until:
			case <-e.t.life.Done():
				done <- sent{err: ErrClosed}
				return
			}
		}
		reply, err := e.t.send(detached{e.req.Context(), e.t.life}, e.req, e.seen.Body)
		done <- sent{reply, err}
	})
	return done
}

// detached has the values of one context, and the end of another.
type detached struct {
	values context.Context
	context.Context
}

func (d detached) Value(key any) any { return d.values.Value(key) }

// instead returns the fault's error in place of a reply.
func (e *exchange) instead() (*http.Response, error) {
	if e.fault.seen == nil || e.isCut() {
		return e.silence()
	}
	return nil, e.fault.seen
}

func (e *exchange) silence() (*http.Response, error) {
	<-e.ctx.Done()
	return nil, context.Cause(e.ctx)
}

func (e *exchange) isCut() bool {
	select {
	case <-e.cable:
		return true
	default:
		return false
	}
}

// sleep returns false if the caller's ctx ends or the network is cut first.
func (e *exchange) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-e.cable:
	case <-e.ctx.Done():
	}
	return !e.isCut() && e.ctx.Err() == nil
}
