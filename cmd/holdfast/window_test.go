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

// TestPassed checks that the earlier of both clocks counts: after a sleep of the machine, only the wall clock has moved on.
func TestPassed(t *testing.T) {
	now := time.Now()
	for at, want := range map[time.Time]bool{now: true, now.Add(time.Hour): false, now.Add(-time.Second).Round(0): true, now.Add(time.Hour).Round(0): false} {
		if passed(at) != want {
			t.Errorf("%v has passed: %v", at, !want)
		}
	}
}
