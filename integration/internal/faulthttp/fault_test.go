package faulthttp

import (
	"context"
	"errors"
	"io"
	"syscall"
	"testing"
	"time"
)

// TestFaults checks, for the transport and for the proxy, that the server and the client see each fault as documented, and
// that it hits one request.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, open := range routes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testFaults(t, open)
		})
	}
}

func testFaults(t *testing.T, open func(*testing.T, *server) (*Transport, route)) {
	for name, c := range map[string]struct {
		fault   Fault
		arrives int32
		status  int   // that the client sees
		err     error // that the client sees; neither is silence
	}{
		"pass":                 {fault: Pass, arrives: 1, status: 200},
		"request lost, reset":  {fault: LoseRequest(Reset), err: syscall.ECONNRESET},
		"request lost, EOF":    {fault: LoseRequest(EOF), err: io.ErrUnexpectedEOF},
		"request lost, silent": {fault: LoseRequest(Silence)},
		"reply lost, reset":    {fault: LoseReply(Reset), arrives: 1, err: syscall.ECONNRESET},
		"reply lost, EOF":      {fault: LoseReply(EOF), arrives: 1, err: io.ErrUnexpectedEOF},
		"reply lost, silent":   {fault: LoseReply(Silence), arrives: 1},
		"late, reset":          {fault: LateUntil(closedChannel(), Reset), arrives: 1, err: syscall.ECONNRESET},
		"late, silent":         {fault: LateUntil(closedChannel(), Silence), arrives: 1},
		"request delayed":      {fault: DelayRequest(time.Millisecond), arrives: 1, status: 200},
		"reply delayed":        {fault: DelayReply(time.Millisecond), arrives: 1, status: 200},
		"both delayed":         {fault: Delay(time.Millisecond), arrives: 1, status: 200},
		"stalled":              {fault: StallUntil(closedChannel()), arrives: 1, status: 200},
		"reply long delayed":   {fault: DelayReply(never), arrives: 1},
		"throttled":            {fault: Throttled(), status: 400},
		"server error":         {fault: ServerError(), status: 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			tr, way := open(t, s)
			hit := tr.Once("", c.fault)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := way.start(ctx, t, "UpdateItem")
			out := <-hit
			if out.Op != "UpdateItem" || out.N != 1 || string(out.Body) != `{"TableName":"t"}` {
				t.Errorf("request = %s %d %s", out.Op, out.N, out.Body)
			}
			if c.arrives == 1 && (out.Status != 200 || string(out.Reply) != "{}") || c.arrives == 0 && out.Status != 0 {
				t.Errorf("outcome = %d %q with %d to arrive", out.Status, out.Reply, c.arrives)
			}
			if c.status == 0 && c.err == nil {
				silent(t, done, cancel)
			} else if r := <-done; r.status != c.status || !errors.Is(r.err, c.err) {
				t.Errorf("the client has seen %+v, want status %d, error %v", r, c.status, c.err)
			}
			arrivals(t, s, c.arrives)
			// The fault was for one request.
			if r := way.call(t.Context(), t, "UpdateItem"); r.status != 200 {
				t.Errorf("the next request: %+v", r)
			}
		})
	}
}

// TestRequestsHeldBack guards what makes a stall worse than a delay: the request arrives late, after its caller gave up.
func TestRequestsHeldBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault   func(released <-chan struct{}) Fault
		givesUp bool
		cut     bool
	}{
		"stalled":           {StallUntil, false, false},
		"stalled, given up": {StallUntil, true, false},
		// It has already left the client's network.
		"late, cut": {func(released <-chan struct{}) Fault { return LateUntil(released, Silence) }, true, true},
	} {
		for kind, open := range routes {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				s := newServer(t)
				tr, way := open(t, s)
				released := make(chan struct{})
				hit := tr.Once("PutItem", c.fault(released))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := way.start(ctx, t, "PutItem")
				eventually(t, "the request is on its way", func() bool { return tr.Count("PutItem") == 1 })
				if r := way.call(t.Context(), t, "GetItem"); r.status != 200 {
					t.Errorf("another request meanwhile: %+v", r)
				}
				if c.givesUp {
					silent(t, done, cancel)
				}
				if c.cut {
					tr.Cut()
				}
				arrivals(t, s, 1)
				close(released)
				if out := <-hit; out.Status != 200 {
					t.Errorf("outcome = %+v, want the server's answer", out)
				}
				if !c.givesUp {
					if r := <-done; r.status != 200 {
						t.Errorf("the client that has waited: %+v", r)
					}
				}
				arrivals(t, s, 2)
			})
		}
	}
}

func TestLostReplyOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	s := newGatedServer(t, gate)
	tr, way := direct(t, s)
	hit := tr.Once("PutItem", LoseReply(Reset))
	ctx, cancel := context.WithCancel(t.Context())
	done := way.start(ctx, t, "PutItem")
	eventually(t, "the request arrives", func() bool { return s.arrived.Load() == 1 })
	silent(t, done, cancel)
	close(gate)
	if out := <-hit; out.Status != 200 {
		t.Errorf("outcome = %+v, want the server's answer", out)
	}
}
