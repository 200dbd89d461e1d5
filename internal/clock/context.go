package clock

import "context"

type contextKey struct{}

// With makes a client that is opened with the returned context run on c. Only
// this module can name the key, so only its tests can.
func With(ctx context.Context, c Clock) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// From returns the clock of ctx, or the machine's.
func From(ctx context.Context) Clock {
	if c, ok := ctx.Value(contextKey{}).(Clock); ok {
		return c
	}
	return Real{}
}
