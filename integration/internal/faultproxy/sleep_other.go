//go:build !linux

package faultproxy

import (
	"context"
	"time"
)

// sleeper waits with the runtime's timers.
type sleeper struct{}

func (*sleeper) until(ctx context.Context, t time.Time) bool { return wait(ctx, t) }

func (*sleeper) stop() {}
