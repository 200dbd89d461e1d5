// Package network is where clients get their connections from: the machine, or what a test puts in its place.
package network

import (
	"context"
	"net"
)

// A Dialer is the type of [net.Dialer.DialContext].
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

type contextKey struct{}

// With returns a context with which opened clients dial by d. Only this module's tests can use it.
func With(ctx context.Context, d Dialer) context.Context {
	return context.WithValue(ctx, contextKey{}, d)
}

// Of returns a context like ctx that dials as another one does.
func Of(ctx, other context.Context) context.Context {
	if d, ok := other.Value(contextKey{}).(Dialer); ok {
		return With(ctx, d)
	}
	return ctx
}

// Dial connects by the dialer of ctx, or by the machine's.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if d, ok := ctx.Value(contextKey{}).(Dialer); ok {
		return d(ctx, network, address)
	}
	var machine net.Dialer
	return machine.DialContext(ctx, network, address)
}
