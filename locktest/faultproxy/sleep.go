package faultproxy

import (
	"context"
	"time"
)

// coarse is how late a timer of the runtime can be: an idle program waits in epoll_wait, which counts milliseconds.
const coarse = 2 * time.Millisecond

// sleepUntil returns true when t has come, false when ctx has ended before. A proxy without a network may live in virtual time.
func (p *Proxy) sleepUntil(ctx context.Context, t time.Time) bool {
	d := time.Until(t)
	if p.opts.Listen != nil {
		d -= coarse
	}
	if d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return false
		}
	}
	if p.opts.Listen != nil {
		sleep(time.Until(t))
	}
	return ctx.Err() == nil
}
