package main

import (
	"fmt"
	"sync/atomic"
	"time"
)

// scale is how much is measured.
type scale struct {
	quick  bool
	unique atomic.Int64
}

// plan is how long to measure with blocks of a given length.
func (s *scale) plan(length time.Duration) plan {
	if s.quick {
		return plan{blocks: 6, length: length / 4, warmup: 300 * time.Millisecond}
	}
	return plan{blocks: 40, length: length, warmup: time.Second}
}

// times returns the one number or, for a quick run, the other.
func (s *scale) times(full, quick int) int {
	if s.quick {
		return quick
	}
	return full
}

// name returns an unused name.
func (s *scale) name(prefix string) string {
	return fmt.Sprintf("%s-%d", prefix, s.unique.Add(1))
}
