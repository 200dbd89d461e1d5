package integration_test

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// What a fleet of peers must have done for its test to mean anything, and what it must
// not have done.

// handovers counts the grants from one kind to another, and how many of each kind
// there were.
func (w *witness) handovers() (between map[[2]fleetLanguage]int, holds map[fleetLanguage]int) {
	between, holds = make(map[[2]fleetLanguage]int), make(map[fleetLanguage]int)
	for _, line := range w.byKey() {
		for i, h := range line {
			holds[h.language]++
			if i > 0 {
				between[[2]fleetLanguage{line[i-1].language, h.language}]++
			}
		}
	}
	return between, holds
}

// missing names what must still happen for the test to mean anything; "" if nothing.
func (f *interopFleet) missing() string {
	between, holds := f.witness.handovers()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped > 0 {
		return "a holder that is stopped"
	}
	for _, kind := range f.kinds {
		if holds[kind] < 5 {
			return fmt.Sprintf("no fifth hold by %s", kind)
		}
		for _, blow := range []interopBlow{interopKill, interopPause} {
			if f.struck[kind][blow] == 0 {
				return fmt.Sprintf("no %s of %s", blow, kind)
			}
		}
		for _, other := range f.kinds {
			if other != kind && between[[2]fleetLanguage{other, kind}] == 0 {
				return fmt.Sprintf("no handover from %s to %s", other, kind)
			}
		}
	}
	return ""
}

// judge reports what happened, and fails the test for violations.
func (f *interopFleet) judge() {
	for _, violation := range f.witness.violations(true) {
		f.Error(violation)
	}
	between, holds := f.witness.handovers()
	excused, lost, longest := make(map[fleetLanguage]int), make(map[fleetLanguage]int), time.Duration(0)
	for _, line := range f.witness.byKey() {
		for _, h := range line {
			if h.end == fleetLost {
				lost[h.language]++
			}
			if h.excused() {
				excused[h.language]++
				longest = max(longest, time.Duration(h.to-h.until))
			}
		}
	}
	total := 0
	for _, n := range between {
		total += n
	}
	f.Logf("holds: %v; handovers: %d of %d kinds; blows: %v; lost: %v; excused: %v, for %v at most",
		holds, total, len(between), f.struck, lost, excused, longest.Round(time.Millisecond))
	for _, note := range slices.Sorted(maps.Keys(f.notes)) {
		f.Logf("%d x %s", f.notes[note], note)
	}
}
