package locktest

import (
	"slices"
	"testing"
)

// cases is the suite, in the order of the guarantees.
var cases = slices.Concat(
	exclusionCases, leaseCases, tokenCases, endCases, giveUpCases, orphanCases, orderCases,
	ttlCases, eventCases, releaseCases, closeCases, inputCases, reclaimCases,
)

// Run tests an engine: each guarantee of the contract has at least one
// subtest, whose name begins with its number. Each failure names the
// guarantee, the rule that is broken, and what was seen.
func Run(t *testing.T, engine Engine) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if engine.Bubble != nil {
				engine.Bubble(t, func(t *testing.T) { runCase(t, engine, c) })
				return
			}
			if engine.Parallel {
				t.Parallel()
			}
			runCase(t, engine, c)
		})
	}
}
