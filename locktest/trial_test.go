package locktest

import (
	"strings"
	"testing"
	"time"
)

// TestTrials fails cases while the machine stops, and while it runs.
func TestTrials(t *testing.T) {
	for name, c := range map[string]struct {
		fails    int // that many trials
		stops    int // in that many trials
		trials   int
		reported bool
	}{
		"passes":                    {0, 3, 1, false},
		"fails":                     {1, 0, 1, true},
		"fails, and stopped":        {1, 1, 2, false},
		"fails twice, and stopped":  {2, 2, 3, false},
		"fails until the last":      {maxTrials - 1, 9, maxTrials, false},
		"stopped, then fails":       {2, 1, 2, true},
		"fails always, and stopped": {9, 9, maxTrials, true},
	} {
		for how, fail := range map[string]func(*env){
			"Errorf": func(e *env) { e.Errorf("it failed: %d", 1) },
			"Error":  func(e *env) { e.Error("it failed") },
			"Fatalf": func(e *env) { e.broken("a rule", "it failed") },
			"Fatal":  func(e *env) { e.Fatal("it failed"); panic("not reached") },
		} {
			t.Run(name+" with "+how, func(t *testing.T) {
				r, trials := &recorder{TB: t}, 0
				watch := func(limit time.Duration) (func() bool, func()) {
					if limit != lease/8 {
						t.Errorf("limit is %v", limit)
					}
					trials++
					n := trials
					return func() bool { return n <= c.stops }, func() {}
				}
				inRealTime(r, newEngine(fault{}), testCase{"G8_Fails", func(e *env) {
					if trials <= c.fails {
						fail(e)
					}
				}}, watch)
				reported := r.reported()
				if trials != c.trials || (len(reported) == 1) != c.reported || c.reported && !strings.Contains(reported[0], "it failed") {
					t.Errorf("%d trials, want %d; reported %q", trials, c.trials, reported)
				}
			})
		}
	}
}

// TestRefuted fails a case for what a machine that stops does not explain.
func TestRefuted(t *testing.T) {
	r, trials := &recorder{TB: t}, 0
	inRealTime(r, newEngine(fault{}), testCase{"G3_Fails", func(e *env) { e.newer(1, 2, "tokens rise") }}, func(time.Duration) (func() bool, func()) {
		trials++
		return func() bool { return true }, func() {}
	})
	if trials != 1 || len(r.reported()) != 1 {
		t.Errorf("%d trials; reported %q", trials, r.reported())
	}
}

// TestHangingCase has a call that never returns, or only after its case was given up.
func TestHangingCase(t *testing.T) {
	r, returns, over := &recorder{TB: t}, make(chan struct{}), make(chan struct{})
	e := newEngine(fault{})
	e.Lease, e.Soon, e.Late = time.Millisecond, time.Millisecond, time.Millisecond
	inRealTime(r, e, testCase{"G8_Hangs", func(e *env) {
		defer close(over)
		<-returns
		e.Logf("this is about a case that is over")
		e.Errorf("so is this")
		e.broken("a rule", "and this")
	}}, func(time.Duration) (func() bool, func()) { return func() bool { return true }, func() {} })
	close(returns)
	<-over
	if reported := r.reported(); len(reported) != 1 || !strings.Contains(reported[0], "G8 broken: "+ruleReturns) || !strings.Contains(reported[0], "TestHangingCase") {
		t.Errorf("reported %q", reported)
	}
}

// TestWatchMachine has the machine stop, or not.
func TestWatchMachine(t *testing.T) {
	stopped, end := watchMachine(time.Minute)
	defer end()
	if stopped() {
		t.Error("has stopped, at once")
	}
	stopped, end = watchMachine(time.Nanosecond)
	defer end()
	time.Sleep(time.Millisecond)
	for range 2 {
		if !stopped() {
			t.Error("has not stopped, and nobody looked for a millisecond")
		}
	}
}
