package locktest

import (
	"slices"
	"sync"
	"testing"
)

// cases is the suite, in the order of the guarantees.
var cases = slices.Concat(
	exclusionCases, leaseCases, endCases, giveUpCases, orphanCases, orderCases,
	ttlCases, eventCases, onEventCases, releaseCases, closeCases, inputCases, reclaimCases, observeCases, loseCases, stallCases, electionCases, dataCases, askCases, allCases, shareCases, mixedCases, turnCases,
)

// Run tests an engine: each guarantee of the contract has at least one subtest, whose
// name begins with its number. Each failure names the guarantee, the broken rule and what
// the suite saw.
//
// A case that fails after the machine stopped for more than an eighth of a lease is tried
// again, up to four times: what leases and timers promise takes a machine that runs. Nothing
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
	if engine.Bubble != nil || engine.Lanes <= 1 {
		for _, c := range cases {
			run(c)
		}
		return
	}
	next := make(chan testCase)
	var lanes sync.WaitGroup
	for range engine.Lanes {
		lanes.Go(func() {
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
	lanes.Wait()
}
