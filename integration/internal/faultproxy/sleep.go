package faultproxy

import (
	"context"
	"time"
)

// wait returns true when t has come, false when ctx has ended before.
func wait(ctx context.Context, t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
