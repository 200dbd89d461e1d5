package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/zklock"
)

// reach connects to each server by itself.
func (e *ensemble) reach(ctx context.Context) ([]Finding, error) {
	findings := make([]Finding, len(e.servers))
	errs := make([]error, len(e.servers))
	var all sync.WaitGroup
	for i, s := range e.servers {
		all.Go(func() { findings[i], errs[i] = e.reachOne(ctx, s) })
	}
	all.Wait()
	if err := cmp.Or(errs...); err != nil {
		return nil, err
	}
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return nil, context.Cause(ctx)
	}
	if reached := e.reached(); len(reached) > 0 {
		e.main = reached[0]
		return findings, nil
	}
	return findings, errEnough
}

// reachOne fails only for settings that make no sense.
func (e *ensemble) reachOne(ctx context.Context, s *server) (Finding, error) {
	began := time.Now()
	conn, err := e.dial(ctx, s.addr)
	if err != nil {
		s.down = true
		cure := "start the server, let this machine through to it, or take it out of --servers"
		if network := (*net.OpError)(nil); e.Options.TLS != nil && !errors.As(err, &network) {
			cure = "see to the server's certificate, whether it speaks TLS at this port, and the --tls flags"
		}
		return problem(cure, "%s cannot be reached: %v", s.addr, err), nil
	}
	_ = conn.Close()
	connected := time.Since(began)
	options := e.Options
	began = time.Now()
	client, err := zklock.Dial(ctx, []string{s.addr}, &options)
	switch {
	case errors.Is(err, holdfast.ErrInvalid):
		return Finding{}, err
	case errors.Is(err, holdfast.ErrDenied):
		return problem("see to the credentials in HOLDFAST_AUTH or --auth-file", "%s refuses the credentials: %v", s.addr, err), nil
	case err != nil && ctx.Err() == nil: // by what has answered
		return problem("see whether --servers has the port for clients, and to the --tls flags", "%s gives no session: %v", s.addr, err), nil
	case err != nil:
		return problem(
			"see whether it has a quorum, whether it speaks TLS as the --tls flags say, and whether maxClientCnxns is reached; its log tells",
			"%s takes the connection, and gives no session within %v", s.addr, e.Timeout,
		), nil
	}
	s.client = client
	return ok("%s: connected in %v, session in %v", s.addr, figure(connected), figure(time.Since(began))), nil
}

// dial connects to a server, by TLS if that is wanted.
func (e *ensemble) dial(ctx context.Context, addr string) (net.Conn, error) {
	if e.Options.TLS != nil {
		return (&tls.Dialer{Config: e.Options.TLS}).DialContext(ctx, "tcp", addr)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}
