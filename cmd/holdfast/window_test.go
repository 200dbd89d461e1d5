package main

import (
	"testing"
	"time"
)

// TestDivide tests the arithmetic that safety rests on: for any lease and grace
// that is accepted, SIGKILL comes before the lease is over, by the drift, and the
// margin is one that the library takes as it is.
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

// TestAlarm checks that the earliest moment counts, on whichever clock it comes.
func TestAlarm(t *testing.T) {
	var a alarm
	if a.c() != nil || a.passed() {
		t.Error("an alarm that was not set")
	}
	soon := time.Now().Add(20 * time.Millisecond)
	a.set(time.Now().Add(time.Hour))
	a.set(soon)
	a.set(time.Now().Add(time.Minute))
	if !a.at.Equal(soon) {
		t.Errorf("it is set to %v, want %v", a.at, soon)
	}
	select {
	case <-a.c():
	case <-time.After(30 * time.Second):
		t.Error("it does not go off")
	}
	if !a.passed() {
		t.Error("it has not passed")
	}
	a.clear()
	if a.c() != nil || a.passed() {
		t.Error("an alarm that was cleared")
	}
	// The machine was asleep: the timer has not moved on, and the wall clock has.
	a.set(time.Now().Add(time.Hour))
	defer a.clear()
	a.at = time.Now().Add(-time.Second).Round(0)
	if !a.passed() {
		t.Error("the wall clock is not looked at")
	}
}
