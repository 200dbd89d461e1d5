package dynamolock

import (
	"runtime"
	"testing"
)

// D69. Whoever finds that a grant is dead finds what it has left, too.
func TestForgottenWithWhatItLeaves(t *testing.T) {
	g := newGrants()
	g.enter("grant")
	noted, early := false, make(chan bool)
	g.forget("grant", func() {
		go func() { early <- !g.alive("grant") && !noted }()
		for range 1000 { // its chance to be early
			runtime.Gosched()
		}
		noted = true
	})
	if <-early {
		t.Error("it is dead before what it leaves is noted")
	}
}
