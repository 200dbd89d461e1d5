package recordlock

import (
	"cmp"
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/driver"
)

// A health says whether the store can be reached. Engine.mu guards it.
type health struct {
	heard   driver.Instant // when the latest request was sent that was answered
	well    string         // the key of that request
	down    bool           // the store cannot be reached
	probing bool
}

// note notes whether a request was answered. If it was not, or refused, a probe of the key that was answered last tells an outage from a
// key that fails alone, and from a short time limit.
func (e *Engine) note(key string, sent driver.Instant, answered bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := &e.health
	switch {
	case answered:
		if sent.Sub(h.heard) > 0 {
			h.heard, h.well = sent, key
		}
		if h.down {
			h.down = false
			e.host.SetConnected(true)
		}
	case !h.probing && h.heard.Sub(sent) <= 0:
		h.well = cmp.Or(h.well, key)
		h.probing = e.tasks.Go(func(context.Context) { e.probe(e.tasks.Open()) })
	}
}

// probe reads a key until the store answers.
func (e *Engine) probe(ctx context.Context) {
	for loop := e.pauses.Start(e.host); ; {
		e.mu.Lock()
		key := e.health.well
		e.mu.Unlock()
		_, err := e.read(ctx, key, false)
		e.mu.Lock()
		if (transient(err) && !classIs(err, Busy) || errors.Is(err, driver.ErrDenied)) && ctx.Err() == nil && !e.health.down {
			e.health.down = true
			e.host.SetConnected(false)
		}
		e.health.probing = e.health.down && ctx.Err() == nil
		again := e.health.probing
		e.mu.Unlock()
		if !again || !loop.Wait(ctx, nil) {
			return
		}
	}
}
