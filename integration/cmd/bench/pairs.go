package main

import (
	"context"
	"runtime"
	"time"
)

const (
	// blockLength is roughly how long a block takes.
	blockLength = 150 * time.Millisecond
	// warmUp is how long each side runs before it is measured.
	warmUp = time.Second
)

// measurement holds a value per pair of blocks.
type measurement struct {
	ratios      []float64 // the other side's time divided by ours
	ours, other []float64 // nanoseconds per operation
}

// measurePairs alternates blocks of both sides, so that other load on the machine affects both sides. The order within a pair
// alternates, too.
func measurePairs(ctx context.Context, ours, other block, ops, pairs int) (m measurement, err error) {
	rate := 0.0
	for _, side := range []block{other, ours} {
		r, err := warm(ctx, side, ops)
		if err != nil {
			return m, err
		}
		rate = max(rate, r)
	}
	if ops == 0 {
		ops = max(1, int(rate*blockLength.Seconds()))
	}
	sides := [2]block{ours, other}
	for i := range pairs {
		var took [2]float64
		for _, side := range [2]int{i % 2, 1 - i%2} {
			runtime.GC()
			d, err := sides[side](ctx, ops)
			if err != nil {
				return m, err
			}
			took[side] = float64(d) / float64(ops)
		}
		m.ours, m.other, m.ratios = append(m.ours, took[0]), append(m.other, took[1]), append(m.ratios, took[1]/took[0])
	}
	return m, nil
}

// warm runs a side for a while and returns its rate per second at the end.
func warm(ctx context.Context, side block, ops int) (rate float64, err error) {
	fixed := ops > 0
	ops = max(ops, 1)
	for began := time.Now(); time.Since(began) < warmUp; {
		took, err := side(ctx, ops)
		if err != nil {
			return 0, err
		}
		rate = float64(ops) / max(took, time.Microsecond).Seconds()
		if !fixed && took < blockLength/8 {
			ops *= 2
		}
	}
	return rate, nil
}
