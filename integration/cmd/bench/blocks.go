package main

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// side is one of the two things that are compared.
type side struct {
	name string
	// block does ops operations and returns the time that counts.
	block func(ctx context.Context, ops int) (time.Duration, error)
}

// pair is a block of each side, one right after the other.
type pair struct {
	Ours  time.Duration `json:"ours_ns"`
	Other time.Duration `json:"other_ns"`
}

// plan says how long to measure.
type plan struct {
	blocks int           // pairs of blocks
	length time.Duration // of a block, roughly
	warmup time.Duration // of each side, before
}

// alternate measures both sides in blocks of the same number of operations that
// take turns, so that whatever else the machine does falls on both; the order
// within a pair changes from pair to pair, so that neither side is always first.
// ops is the number of operations in a block; 0 finds one that fills its length.
func alternate(ctx context.Context, p plan, ours, other side, ops int) ([]pair, int, error) {
	rate := 0.0
	for _, s := range []side{other, ours} {
		r, err := warm(ctx, p, s, ops)
		if err != nil {
			return nil, 0, fmt.Errorf("warm up %s: %w", s.name, err)
		}
		rate = max(rate, r)
	}
	if ops == 0 {
		ops = max(1, int(rate*p.length.Seconds()))
	}
	pairs := make([]pair, p.blocks)
	for i := range pairs {
		first, second := ours, other
		to, then := &pairs[i].Ours, &pairs[i].Other
		if i%2 == 1 {
			first, second, to, then = second, first, then, to
		}
		var err error
		if *to, err = timed(ctx, first, ops); err != nil {
			return nil, 0, err
		}
		if *then, err = timed(ctx, second, ops); err != nil {
			return nil, 0, err
		}
	}
	return pairs, ops, nil
}

// warm runs a side for a while and returns its rate per second at the end.
func warm(ctx context.Context, p plan, s side, ops int) (rate float64, err error) {
	ops = max(ops, 1)
	for began := time.Now(); time.Since(began) < p.warmup; {
		took, err := s.block(ctx, ops)
		if err != nil {
			return 0, err
		}
		rate = float64(ops) / max(took, time.Microsecond).Seconds()
		if ops < 1<<20 && took < p.length/8 {
			ops *= 2
		}
	}
	return rate, nil
}

// timed runs one block. The garbage of the block before is not to be collected
// at its expense.
func timed(ctx context.Context, s side, ops int) (time.Duration, error) {
	runtime.GC()
	took, err := s.block(ctx, ops)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.name, err)
	}
	return took, nil
}

// slower is how many times as long the other side took, per pair.
func slower(pairs []pair) []float64 {
	out := make([]float64, len(pairs))
	for i, p := range pairs {
		out[i] = float64(p.Other) / float64(p.Ours)
	}
	return out
}

// longer is how many times as long our side took, per pair.
func longer(pairs []pair) []float64 {
	out := make([]float64, len(pairs))
	for i, p := range pairs {
		out[i] = float64(p.Ours) / float64(p.Other)
	}
	return out
}

// perOp is the median time of one operation on each side.
func perOp(pairs []pair, ops int) (ours, other time.Duration) {
	a, b := make([]float64, len(pairs)), make([]float64, len(pairs))
	for i, p := range pairs {
		a[i], b[i] = float64(p.Ours), float64(p.Other)
	}
	each := func(s []float64) time.Duration {
		return time.Duration(medianInterval(s).Median / float64(ops)).Round(100 * time.Nanosecond)
	}
	return each(a), each(b)
}
