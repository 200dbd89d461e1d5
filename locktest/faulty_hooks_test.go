package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// onRequest makes a faulty engine that changes how a waiter's place is reported.
func onRequest(queued func(tell func(int)) func(int)) wrapper {
	return request(func(req *driver.Request) { req.Queued = queued(req.Queued) })
}

// heartbeats makes a faulty engine that reports a heartbeat each second for each lock.
func heartbeats(tell func(host driver.Host, key string, cut bool)) wrapper {
	return granted(func(f *faulty, key string, g *driver.Grant) {
		life, end := context.WithCancel(f.life)
		verify, release := g.Hold.Verify, g.Hold.Release
		go func() {
			for life.Err() == nil {
				select {
				case <-time.After(time.Second):
					probe, stop := context.WithTimeout(life, time.Millisecond)
					err := verify(probe)
					stop()
					tell(f.host, key, err != nil)
				case <-life.Done():
				}
			}
		}()
		g.Hold = releaser{g.Hold, func(ctx context.Context) error {
			end()
			return release(ctx)
		}}
	})
}

// failed changes what hooks are told of a failure.
func failed(change func(*holdfast.Acquisition)) func(holdfast.Hooks) holdfast.Hooks {
	return func(h holdfast.Hooks) holdfast.Hooks {
		next := h.Failed
		h.Failed = func(a holdfast.Acquisition) {
			change(&a)
			next(a)
		}
		return h
	}
}

// ended changes what hooks are told of the end of a lock, and whether they are.
func ended(change func(*holdfast.Ending) bool) func(holdfast.Hooks) holdfast.Hooks {
	return func(h holdfast.Hooks) holdfast.Hooks {
		next := h.Ended
		h.Ended = func(e holdfast.Ending) {
			if change(&e) {
				next(e)
			}
		}
		return h
	}
}

// faultyHooks report falsely to hooks, or about them.
var faultyHooks = []fault{
	{name: "the start of an acquisition is not reported", breaks: "G9", hooks: func(h holdfast.Hooks) holdfast.Hooks {
		h.Started = nil
		return h
	}},
	{name: "a failure is not reported", breaks: "G9", hooks: func(h holdfast.Hooks) holdfast.Hooks {
		h.Failed = nil
		return h
	}},
	{name: "a failure is reported without its error", breaks: "G9", hooks: failed(func(a *holdfast.Acquisition) { a.Err = errors.New("failed") })},
	{name: "an acquisition is reported to have taken no time", breaks: "G9", hooks: failed(func(a *holdfast.Acquisition) { a.Took = 0 })},
	{name: "a grant is reported after its end", breaks: "G9", hooks: func(h holdfast.Hooks) holdfast.Hooks {
		var late []holdfast.Acquisition
		granted, ended := h.Granted, h.Ended
		h.Granted = func(a holdfast.Acquisition) { late = append(late, a) }
		h.Ended = func(e holdfast.Ending) {
			ended(e)
			for _, a := range late {
				granted(a)
			}
			late = nil
		}
		return h
	}},
	{name: "a release is not reported", breaks: "G9", hooks: ended(func(e *holdfast.Ending) bool { return !errors.Is(e.Err, holdfast.ErrReleased) })},
	{name: "an end is reported twice", breaks: "G9", hooks: func(h holdfast.Hooks) holdfast.Hooks {
		return holdfast.JoinHooks(h, holdfast.Hooks{Ended: h.Ended})
	}},
	{name: "a loss reaches hooks without its cause", breaks: "G9", hooks: ended(func(e *holdfast.Ending) bool {
		if errors.Is(e.Err, holdfast.ErrLost) {
			e.Err = holdfast.ErrLost
		}
		return true
	})},
	{name: "the time held is that since the beginning of the wait", breaks: "G9", hooks: ended(func(e *holdfast.Ending) bool {
		e.Held += time.Minute
		return true
	})},
	{name: "the connection does not reach hooks", breaks: "G9", hooks: func(h holdfast.Hooks) holdfast.Hooks {
		h.Connection = nil
		return h
	}},
	{name: "hooks are called at the same time", breaks: "G9", hooks: func(h holdfast.Hooks) holdfast.Hooks {
		started := h.Started
		h.Started = func(a holdfast.Acquisition) { go started(a) } // and Granted follows at once
		return h
	}},

	{name: "no place is reported", breaks: "G9", engine: onRequest(func(func(int)) func(int) { return func(int) {} })},
	{name: "the holder is not counted as being ahead", breaks: "G9", engine: onRequest(
		func(tell func(int)) func(int) { return func(ahead int) { tell(ahead - 1) } },
	)},
	{
		name: "places are reported where there is no queue", breaks: "G9",
		set: func(e *Engine) { e.Ordered = false },
	},

	{
		name: "heartbeats are not reported", breaks: "G9",
		set: func(e *Engine) { e.Heartbeats = PerSession },
	},
	{
		name: "heartbeats are reported that nobody sends", breaks: "G9",
		engine: heartbeats(func(host driver.Host, key string, _ bool) { host.Heartbeat(key, host.Now(), nil) }),
	},
	{
		name: "heartbeats are reported without their key", breaks: "G9",
		set: func(e *Engine) { e.Heartbeats = PerLock },
		engine: heartbeats(func(host driver.Host, _ string, cut bool) {
			host.Heartbeat("", host.Now(), map[bool]error{true: holdfast.ErrDisconnected}[cut])
		}),
	},
	{
		name: "all heartbeats are reported to have gone well", breaks: "G9",
		set:    func(e *Engine) { e.Heartbeats = PerLock },
		engine: heartbeats(func(host driver.Host, key string, _ bool) { host.Heartbeat(key, host.Now(), nil) }),
	},
	{
		name: "failed heartbeats are not reported", breaks: "G9",
		set: func(e *Engine) { e.Heartbeats = PerLock },
		engine: heartbeats(func(host driver.Host, key string, cut bool) {
			if !cut {
				host.Heartbeat(key, host.Now(), nil)
			}
		}),
	},
}

// correctBeats is the engine of the heartbeat faults without a fault.
var correctBeats = fault{
	set: func(e *Engine) { e.Heartbeats = PerLock },
	engine: heartbeats(func(host driver.Host, key string, cut bool) {
		host.Heartbeat(key, host.Now(), map[bool]error{true: holdfast.ErrDisconnected}[cut])
	}),
}
