package locktest

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// closeLeavesNoGoroutine labels what a client starts, and looks for that once the client is closed and what the harness has made
// for it is gone. Timers carry no labels: in real time it does not see what they have started. In virtual time package synctest does.
func closeLeavesNoGoroutine(e *env) {
	label, other := e.prefix, e.client()
	held := e.holdKey(other, e.prefix+"held")
	s := &scope{TB: e.TB}
	s.ctx, s.cancel = context.WithCancel(e.ctx)
	e.Cleanup(s.end)
	var a *Client
	var waits *waiter
	labelled := func(step func()) {
		pprof.Do(e.ctx, pprof.Labels("locktest", label), func(context.Context) { step() })
	}
	labelled(func() {
		a = e.harness.NewClient(s, ClientOptions{})
		lock := e.hold(a)
		waits = e.waitKey(a, held.Key(), nil)
		ctx, cancel := context.WithCancel(e.ctx)
		defer cancel()
		for _, err := range a.Observe(ctx, e.key) {
			e.noError(err, "Observe tells the present state")
			break
		}
		e.release(lock)
		e.hold(a, holdfast.WithTTL(e.engine.Lease))
	})
	waits.waits(other, held.Key(), 1)
	a.Cut()
	time.Sleep(e.engine.Lease / 4)
	a.Heal()
	waits.cancel(nil)
	waits.fails(e.engine.Soon, ruleAtOnce)
	labelled(func() {
		e.noError(a.Close(e.within(e.patience())), "Close returns nil once everything is confirmed")
	})
	s.end()
	var left string
	if !e.eventually(e.engine.Soon, func() bool {
		left = goroutinesOf(label)
		return left == ""
	}) {
		e.broken("Close leaves no goroutine", "this is left:\n%s", left)
	}
}

// A scope is a test whose clean-up runs before its end.
type scope struct {
	testing.TB
	ctx      context.Context
	cancel   context.CancelFunc
	cleanups []func()
}

func (s *scope) Context() context.Context { return s.ctx }

func (s *scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *scope) end() {
	s.cancel()
	for len(s.cleanups) > 0 {
		last := len(s.cleanups) - 1
		f := s.cleanups[last]
		s.cleanups = s.cleanups[:last]
		f()
	}
}

// goroutinesOf returns the stacks of goroutines with a label.
func goroutinesOf(label string) string {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return fmt.Sprint(err)
	}
	var found []string
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, label) {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}
