package main

import (
	"testing"
	"time"
)

// TestDivide checks for every accepted lease and grace that SIGKILL comes before the end of the
// lease, by the drift, and that the library accepts the margin unchanged.
func TestDivide(t *testing.T) {
	for lease := 100 * time.Millisecond; lease < 24*time.Hour; lease = lease*7/5 + time.Millisecond {
		for _, grace := range []time.Duration{-1, 0, 1, lease / 10, lease / 5, lease * 2 / 5, lease*9/20 - 1, lease * 9 / 20, lease / 2, lease, 2 * lease} {
			w, err := divide(lease, grace, grace >= 0)
			drift := max(50*time.Millisecond, lease/20)
			if want := grace >= 0 && grace+drift >= lease/2 || grace < 0 && lease/5+drift >= lease/2; (err != nil) != want {
				t.Errorf("divide(%v, %v): %v; refused: %t, want %t", lease, grace, err, err != nil, want)
			}
			if err != nil {
				continue
			}
			lost := lease - w.margin // after the renewal, at the latest
			if killed := lost + w.grace; killed > lease-drift || w.margin >= lease/2 {
				t.Errorf("divide(%v, %v): SIGKILL after %v, margin %v", lease, grace, killed, w.margin)
			}
			if grace >= 0 && w.grace != grace {
				t.Errorf("divide(%v, %v) gives a grace of %v", lease, grace, w.grace)
			}
		}
	}
}

// TestAlarm checks that the earliest moment on either clock counts.
func TestAlarm(t *testing.T) {
	var a alarm
	is := func(set, passed bool) {
		t.Helper()
		if (a.c() != nil) != set || a.passed() != passed {
			t.Errorf("set: %t, want %t; passed: %t, want %t", a.c() != nil, set, a.passed(), passed)
		}
	}
	is(false, false)
	soon := time.Now().Add(20 * time.Millisecond)
	a.set(time.Now().Add(time.Hour))
	a.set(soon)
	a.set(time.Now().Add(time.Minute))
	if !a.at.Equal(soon) {
		t.Errorf("it is set to %v, want %v", a.at, soon)
	}
	<-a.c()
	is(true, true)
	a.clear()
	is(false, false)
	// After a sleep of the machine, only the wall clock has moved on.
	a.set(time.Now().Add(time.Hour))
	defer a.clear()
	a.at = time.Now().Add(-time.Second).Round(0)
	is(true, true)
}
