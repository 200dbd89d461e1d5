package clock

import (
	"context"

	"github.com/holdfast-go/holdfast/driver"
)

type contextKey struct{}

// With makes a client that is opened with the returned context run on c. Only
// this module can name the key, so only its tests can.
func With(ctx context.Context, c driver.Clock) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// From returns the clock of ctx, or the machine's.
func From(ctx context.Context) driver.Clock {
	if c, ok := ctx.Value(contextKey{}).(driver.Clock); ok {
		return c
	}
	return Real{}
}
