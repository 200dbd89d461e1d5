package locktest

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// cases is the suite, in the order of the guarantees.
var cases = slices.Concat(
	exclusionCases, leaseCases, endCases, giveUpCases, orphanCases, orderCases, ttlCases, eventCases, onEventCases, releaseCases, closeCases,
	inputCases, reclaimCases, observeCases, loseCases, stallCases, electionCases, dataCases, dataFates, askCases, allCases, shareCases,
	permitCases, mixedCases, turnCases,
)

// Run tests an engine: each guarantee of the contract has at least one subtest, whose
// name begins with its number. Each failure names the guarantee, the broken rule and what
// the suite saw.
//
// A case that fails after the machine stopped for more than an eighth of a lease is tried
// again, up to four times: leases and timers need a machine that runs. Nothing
// excuses a grant while another lock of the key believes to be live, a smaller token, or what
// stays behind.
func Run(t *testing.T, engine Engine) {
	run := func(c testCase) {
		t.Run(c.name, func(t *testing.T) {
			if engine.Bubble != nil {
				defer func() { // a goroutine that is left blocks for good: no other case is to go with it
					if left := recover(); left != nil {
						t.Errorf("%s leaves goroutines: %v", c.name, left)
					}
				}()
				skipped := false // which a bubble does not tell
				engine.Bubble(t, func(t *testing.T) {
					defer func() { skipped = t.Skipped() }()
					runCase(t, engine, c)
				})
				if skipped {
					t.SkipNow()
				}
				return
			}
			inRealTime(t, engine, c, watchMachine)
		})
	}
	lanes := 1
	if engine.Bubble == nil {
		lanes = max(1, engine.Lanes)
	}
	next := make(chan testCase)
	var all sync.WaitGroup
	for range lanes {
		all.Go(func() {
			for c := range next {
				run(c)
			}
		})
	}
	// This case takes a minute where no lease ends: others run meanwhile.
	slow := slices.IndexFunc(cases, func(c testCase) bool { return c.name == closeWithoutEnd })
	for _, c := range slices.Concat(cases[slow:slow+1], cases[:slow], cases[slow+1:]) {
		next <- c
	}
	close(next)
	all.Wait()
}

// A testCase tests one rule. Its name begins with the number of its guarantee.
type testCase struct {
	name string
	run  func(e *env)
}

// caseLimit bounds a case, in multiples of the longest step. The ctx of each call ends with it.
const caseLimit = 10

const (
	ruleAnswers = "the engine answers a client that can reach it"
	ruleReturns = "every call returns once its ctx has ended"
)

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
		e.first = e.clientWith(ClientOptions{})
		e.Features = e.first.Features()
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
