package clock

import (
	"context"

	"github.com/holdfast-go/holdfast/driver"
)

type contextKey struct{}

// With returns a context with which opened clients run on c. Only this module's
// tests can use it.
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
