package locktest

import (
	"context"
	"errors"
	"slices"
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

// A listener makes an OnEvent that reports falsely to another.
type listener func(next func(holdfast.Event)) func(holdfast.Event)

// altered changes the events of some kinds; those for which change returns false are dropped.
func altered(change func(*holdfast.Event) bool, kinds ...holdfast.EventKind) listener {
	return func(next func(holdfast.Event)) func(holdfast.Event) {
		return func(e holdfast.Event) {
			if !slices.Contains(kinds, e.Kind) || change(&e) {
				next(e)
			}
		}
	}
}

// dropped drops the events of some kinds.
func dropped(kinds ...holdfast.EventKind) listener {
	return altered(func(*holdfast.Event) bool { return false }, kinds...)
}

// repeated reports the events of some kinds twice.
func repeated(kinds ...holdfast.EventKind) listener {
	return func(next func(holdfast.Event)) func(holdfast.Event) {
		return func(e holdfast.Event) {
			if next(e); slices.Contains(kinds, e.Kind) {
				next(e)
			}
		}
	}
}

// postponed reports the events of one kind after the end of the lock.
func postponed(kind holdfast.EventKind) listener {
	return func(next func(holdfast.Event)) func(holdfast.Event) {
		var late []holdfast.Event
		return func(e holdfast.Event) {
			if e.Kind == kind {
				late = append(late, e)
				return
			}
			if next(e); slices.Contains(endings, e.Kind) {
				for _, l := range late {
					next(l)
				}
				late = nil
			}
		}
	}
}

// faultyEvents report falsely to OnEvent.
var faultyEvents = []fault{
	{name: "the start of an acquisition is not reported", breaks: "G9", onEvent: dropped(holdfast.Started)},
	{name: "a failure is not reported", breaks: "G9", onEvent: dropped(holdfast.Failed)},
	{name: "a failure is reported without its error", breaks: "G9", onEvent: altered(func(e *holdfast.Event) bool {
		e.Err = errors.New("failed")
		return true
	}, holdfast.Failed)},
	{name: "an acquisition is reported to have taken no time", breaks: "G9", onEvent: altered(func(e *holdfast.Event) bool {
		e.Took = 0
		return true
	}, holdfast.Failed)},
	{name: "a grant is reported after its end", breaks: "G9", onEvent: postponed(holdfast.Granted)},
	{name: "a release is not reported", breaks: "G9", onEvent: dropped(holdfast.Released)},
	{name: "an end is reported twice", breaks: "G9", onEvent: repeated(endings...)},
	{name: "a loss is reported without its cause", breaks: "G9", onEvent: altered(func(e *holdfast.Event) bool {
		e.Err = holdfast.ErrLost
		return true
	}, holdfast.Lost)},
	{name: "the time held is that since the beginning of the wait", breaks: "G9", onEvent: altered(func(e *holdfast.Event) bool {
		e.Took += time.Minute
		return true
	}, endings...)},
	{name: "the connection is not reported", breaks: "G9", onEvent: dropped(connections...)},
	{name: "two events are reported at the same time", breaks: "G9", onEvent: func(next func(holdfast.Event)) func(holdfast.Event) {
		return func(e holdfast.Event) {
			if e.Kind == holdfast.Started {
				go next(e) // and Granted follows at once
				return
			}
			next(e)
		}
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
