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
	const never = 1 << 62
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
		"late, reset":          {fault: Late(time.Millisecond, Reset), arrives: 1, err: syscall.ECONNRESET},
		"late, silent":         {fault: Late(time.Millisecond, Silence), arrives: 1},
		"request delayed":      {fault: DelayRequest(time.Millisecond), arrives: 1, status: 200},
		"reply delayed":        {fault: DelayReply(time.Millisecond), arrives: 1, status: 200},
		"reply held":           {fault: HoldReply(nil), arrives: 1},
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

func TestHeldRequestArrivesWhenReleased(t *testing.T) {
	t.Parallel()
	s, tr := newServer(t), newTransport(t)
	released := make(chan struct{})
	tr.SetRule(All("PutItem", HoldRequest(released)))
	done := start(t.Context(), t, tr, s, "PutItem")
	eventually(t, "the request is on its way", func() bool { return tr.Count("PutItem") == 1 })
	if r := call(t.Context(), t, tr, s, "GetItem"); r.status != 200 {
		t.Errorf("another request meanwhile: %+v", r)
	}
	arrivals(t, s, 1)
	close(released)
	if r := <-done; r.status != 200 {
		t.Errorf("the held request: %+v", r)
	}
	arrivals(t, s, 2)
}

func TestGivingUpTakesAHeldRequestBack(t *testing.T) {
	t.Parallel()
	s, tr := newServer(t), newTransport(t)
	released := make(chan struct{})
	hit := tr.Once("PutItem", HoldRequest(released))
	ctx, cancel := context.WithCancel(t.Context())
	done := start(ctx, t, tr, s, "PutItem")
	eventually(t, "the request is on its way", func() bool { return tr.Count("PutItem") == 1 })
	silent(t, done, cancel)
	close(released)
	if out := <-hit; out.Status != 0 {
		t.Errorf("the server has answered %d", out.Status)
	}
	tr.Close()
	arrivals(t, s, 0)
}

func TestLateRequestOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	s, tr := newServer(t), newTransport(t)
	released := make(chan struct{})
	hit := tr.Once("PutItem", LateUntil(released, Reset))
	ctx, cancel := context.WithCancel(t.Context())
	if r := call(ctx, t, tr, s, "PutItem"); !errors.Is(r.err, syscall.ECONNRESET) {
		t.Fatalf("the client has seen %+v, want a reset", r)
	}
	cancel()
	// It has already left the client's network.
	tr.Cut()
	arrivals(t, s, 0)
	close(released)
	if out := <-hit; out.Status != 200 {
		t.Errorf("outcome = %+v, want the server's answer", out)
	}
	arrivals(t, s, 1)
}

// TestStalledRequestOutlivesItsCaller guards what makes a stall worse than a delay: the request arrives late, after its
// caller gave up.
func TestStalledRequestOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	for name, open := range routes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			tr, way := open(t, s)
			released := make(chan struct{})
			hit := tr.Once("PutItem", StallUntil(released))
			tr.SetRule(All("", StallUntil(released)))
			ctx, cancel := context.WithCancel(t.Context())
			impatient, patient := way.start(ctx, t, "PutItem"), way.start(t.Context(), t, "GetItem")
			eventually(t, "both are on their way", func() bool { return tr.Count("") == 2 })
			silent(t, impatient, cancel)
			arrivals(t, s, 0)
			close(released)
			if r := <-patient; r.status != 200 {
				t.Errorf("the client that has waited: %+v", r)
			}
			if out := <-hit; out.Status != 200 {
				t.Errorf("outcome of the other request = %+v, want the server's answer", out)
			}
			arrivals(t, s, 2)
		})
	}
}

func TestLostReplyOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	s, tr := newGatedServer(t, gate), newTransport(t)
	hit := tr.Once("PutItem", LoseReply(Reset))
	ctx, cancel := context.WithCancel(t.Context())
	done := start(ctx, t, tr, s, "PutItem")
	eventually(t, "the request arrives", func() bool { return s.arrived.Load() == 1 })
	silent(t, done, cancel)
	close(gate)
	if out := <-hit; out.Status != 200 {
		t.Errorf("outcome = %+v, want the server's answer", out)
	}
}
