// Package network is where clients get their connections from: the machine, or what a test puts in its place.
package network

import (
	"context"
	"net"
)

// A Dialer is the type of [net.Dialer.DialContext].
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Names looks up a host name, as [net.Resolver.LookupHost] does.
type Names func(ctx context.Context, host string) ([]string, error)

type (
	contextKey struct{}
	namesKey   struct{}
)

// With returns a context with which opened clients dial by d. Only this module's tests can use it.
func With(ctx context.Context, d Dialer) context.Context {
	return context.WithValue(ctx, contextKey{}, d)
}

// WithNames returns a context with which opened clients look names up by n. Only this module's tests can use it.
func WithNames(ctx context.Context, n Names) context.Context {
	return context.WithValue(ctx, namesKey{}, n)
}

// Of returns a context like ctx that dials and looks names up as another one does.
func Of(ctx, other context.Context) context.Context {
	if d, ok := other.Value(contextKey{}).(Dialer); ok {
		ctx = With(ctx, d)
	}
	if n, ok := other.Value(namesKey{}).(Names); ok {
		ctx = WithNames(ctx, n)
	}
	return ctx
}

// LookUp returns the addresses of a host, by the names of ctx or by the machine's. A dialer that is put in the machine's place gets the name itself.
func LookUp(ctx context.Context, host string) ([]string, error) {
	if n, ok := ctx.Value(namesKey{}).(Names); ok {
		return n(ctx, host)
	}
	if _, ok := ctx.Value(contextKey{}).(Dialer); ok {
		return []string{host}, nil
	}
	return net.DefaultResolver.LookupHost(ctx, host)
}

// Dial connects by the dialer of ctx, or by the machine's.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if d, ok := ctx.Value(contextKey{}).(Dialer); ok {
		return d(ctx, network, address)
	}
	var machine net.Dialer
	return machine.DialContext(ctx, network, address)
}
