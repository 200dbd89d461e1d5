// Package network is where clients get their connections from: the machine, or what a test puts in its place.
package network

import (
	"context"
	"net"
)

// A Dialer is the type of [net.Dialer.DialContext].
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

type contextKey struct{}

// instead is put in the machine's place.
type instead struct {
	dial   Dialer
	lookUp func(ctx context.Context, host string) ([]string, error) // [net.Resolver.LookupHost]
}

// With returns a context with which opened clients dial names by d. Only this module's tests can use it.
func With(ctx context.Context, d Dialer) context.Context {
	return WithNames(ctx, d, func(_ context.Context, host string) ([]string, error) { return []string{host}, nil })
}

// WithNames is With for clients that look names up by lookUp.
func WithNames(ctx context.Context, d Dialer, lookUp func(context.Context, string) ([]string, error)) context.Context {
	return context.WithValue(ctx, contextKey{}, instead{d, lookUp})
}

// Of returns a context like ctx that dials as another one does.
func Of(ctx, other context.Context) context.Context {
	if i, ok := other.Value(contextKey{}).(instead); ok {
		return WithNames(ctx, i.dial, i.lookUp)
	}
	return ctx
}

// LookUp returns the addresses of a host, by the resolver of ctx or by the machine's.
func LookUp(ctx context.Context, host string) ([]string, error) {
	if i, ok := ctx.Value(contextKey{}).(instead); ok {
		return i.lookUp(ctx, host)
	}
	return net.DefaultResolver.LookupHost(ctx, host)
}

// Dial connects by the dialer of ctx, or by the machine's.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if i, ok := ctx.Value(contextKey{}).(instead); ok {
		return i.dial(ctx, network, address)
	}
	var machine net.Dialer
	return machine.DialContext(ctx, network, address)
}
