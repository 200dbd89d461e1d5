package locktest

import "testing"

// Run tests an engine: each guarantee of the contract has at least one
// subtest, whose name begins with its number.
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
