package locktest

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// closeLeavesNoGoroutine labels what a client starts, and looks for that once the client is closed and what the harness has made
// for it is gone.
func closeLeavesNoGoroutine(e *env) {
	label := e.prefix
	s, other := &scope{TB: e.TB}, e.client()
	pprof.Do(e.ctx, pprof.Labels("locktest", label), func(context.Context) {
		a := e.harness.NewClient(s, ClientOptions{})
		held := e.holdKey(other, e.prefix+"held")
		lock := e.hold(a)
		waits := e.waitKey(a, held.Key(), nil).waits(other, held.Key(), 1)
		ctx, cancel := context.WithCancel(e.ctx)
		defer cancel()
		for _, err := range a.Observe(ctx, e.key) {
			if err != nil {
				e.broken("Observe tells the present state", "%v", err)
			}
			break
		}
		waits.cancel(nil)
		waits.fails(e.engine.Soon, ruleAtOnce)
		e.release(lock)
		e.hold(a, holdfast.WithTTL(e.engine.Lease))
		a.Cut()
		e.settle()
		a.Heal()
		if err := a.Close(e.within(e.patience())); err != nil {
			e.broken("Close returns nil once everything is confirmed", "%v", err)
		}
		s.end()
		e.release(held)
		e.close(other)
	})
	var left string
	if !e.eventually(e.engine.Soon, func() bool {
		left = labelled(label)
		return left == ""
	}) {
		e.broken("Close leaves no goroutine", "this is left:\n%s", left)
	}
}

// A scope is a test whose clean-up runs before its end.
type scope struct {
	testing.TB
	cleanups []func()
}

func (s *scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *scope) end() {
	for len(s.cleanups) > 0 {
		last := len(s.cleanups) - 1
		f := s.cleanups[last]
		s.cleanups = s.cleanups[:last]
		f()
	}
}

// labelled returns the stacks of goroutines with a label.
func labelled(label string) string {
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
