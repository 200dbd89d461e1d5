package locktest

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A testCase tests one rule. Its name begins with the number of its guarantee.
type testCase struct {
	name string
	run  func(e *env)
}

// caseLimit bounds a case, in multiples of the longest step. The ctx of each call ends with it.
const caseLimit = 10

const ruleAnswers = "the engine answers a client that can reach it"

const ruleReturns = "every call returns once its ctx has ended"

func runCase(t testing.TB, engine Engine, c testCase) {
	if engine.Lease <= 0 || engine.Start == nil {
		t.Fatal("locktest: Engine needs Start and Lease")
	}
	if engine.Soon == 0 {
		engine.Soon = 10 * time.Second
	}
	if engine.Late == 0 {
		engine.Late = engine.Lease + engine.Soon
	}
	if engine.Notice == 0 {
		engine.Notice = engine.Soon
	}
	e := &env{
		TB:      t,
		engine:  engine,
		harness: engine.Start(t),
		prefix:  fmt.Sprintf("locktest-%s/", rand.Text()[:10]),
	}
	e.rule, _, _ = strings.Cut(c.name, "_")
	e.key = e.prefix + c.name
	limit := caseLimit * e.patience()
	if c.name == fairSharesName {
		limit += fairFor * engine.Lease
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit,
		fmt.Errorf("locktest: %s takes too long", c.name))
	defer cancel()
	e.ctx = ctx
	over := make(chan struct{})
	go func() { // a fatal failure ends the goroutine
		defer close(over)
		c.run(e)
	}()
	e.returns(over, limit, "the case itself")
}

// returns waits for a call that must have returned within d and the longest step, and gives it up if it has not.
func (e *env) returns(over <-chan struct{}, d time.Duration, what string) {
	select {
	case <-over:
	case <-time.After(d + e.patience()):
		stacks := make([]byte, 1<<20)
		defer e.leave()
		e.unexcused().Error(e.breach(ruleReturns, "%s has not; all goroutines:\n%s", what, stacks[:runtime.Stack(stacks, true)]))
	}
}
