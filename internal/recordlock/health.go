package recordlock

import (
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

// answered notes that a request was answered.
func (e *Engine) answered(key string, sent driver.Instant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if sent.Sub(e.health.heard) > 0 {
		e.health.heard, e.health.well = sent, key
	}
	if e.health.down {
		e.health.down = false
		e.host.SetConnected(true)
	}
}

// failed notes that a request was not answered, or refused. A probe of the key that was answered last tells an outage from a key that
// fails alone, and from a short time limit.
func (e *Engine) failed(key string, sent driver.Instant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.health.probing || e.health.heard.Sub(sent) > 0 {
		return
	}
	if e.health.well == "" {
		e.health.well = key
	}
	e.health.probing = e.tasks.Go(func(context.Context) { e.probe(e.tasks.Open()) })
}

func (e *Engine) isDown() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.health.down
}

// probe reads a key until the store answers.
func (e *Engine) probe(ctx context.Context) {
	for loop := e.pauses.Start(); ; {
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
