package main

import (
	"slices"
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]time.Duration{
		"5\n":          {5},
		"1 22 333\r\n": {1, 22, 333},
		" 0  7 ":       {0, 7},
	} {
		if got, err := durations(line, len(want)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", line, got, err, want)
		}
	}
	for line, n := range map[string]int{
		"":                       1,
		"1 2":                    1,
		"1":                      2,
		"1.5":                    1,
		"-1":                     1,
		"led":                    1,
		"9223372036854775808":    1,
		"Exception in thread \"": 4,
	} {
		if got, err := durations(line, n); err == nil {
			t.Errorf("%q: %v, want an error", line, got)
		}
	}
}

// TestAnswer guards that a peer's answer is read as it was meant.
func TestAnswer(t *testing.T) {
	t.Parallel()
	for _, want := range [][]time.Duration{{0}, {time.Second, 0, 1}} {
		if got, err := durations(answer(want), len(want)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v became %v, %v", want, got, err)
		}
	}
}
