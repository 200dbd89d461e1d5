package task

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// Sleep waits on the client's clock until d has passed, and reports true, or until ctx ends, and reports false.
func Sleep(ctx context.Context, clock driver.Clock, d time.Duration) bool {
	return backoff.Sleep(ctx, clock, d, nil)
}

// Retry calls try again while its error matches [driver.ErrDisconnected], until ctx ends. The pauses between the tries grow from initial
// to largest, with jitter. Retry returns the last error that came before the end of ctx.
func Retry(ctx context.Context, clock driver.Clock, initial, largest time.Duration, try func() error) error {
	return backoff.Policy{Initial: initial, Max: largest}.Retry(ctx, clock, try)
}
