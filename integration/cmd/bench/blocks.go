package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// side is one of the two things compared.
type side struct {
	name  string
	block block
}

// plan says how long to measure.
type plan struct {
	blocks int           // pairs of blocks
	length time.Duration // of a block, roughly
	warmup time.Duration // of each side, before
}

// alternate measures both sides of a contest in alternating blocks of the same
// number of operations, so that other load on the machine affects both; the order
// within a pair alternates too. c.Ops is the number of operations in a block; 0
// finds one that fills its length.
func alternate(ctx context.Context, p plan, c report.Contest, ours, other side) (report.Contest, error) {
	rate := 0.0
	for _, s := range []side{other, ours} {
		r, err := warm(ctx, p, s, c.Ops)
		if err != nil {
			return c, fmt.Errorf("warm up %s: %w", s.name, err)
		}
		rate = max(rate, r)
	}
	if c.Ops == 0 {
		c.Ops = max(1, int(rate*p.length.Seconds()))
	}
	c.Ours = report.Side{Name: ours.name, Blocks: make([]time.Duration, p.blocks)}
	c.Other = report.Side{Name: other.name, Blocks: make([]time.Duration, p.blocks)}
	for i := range p.blocks {
		first, second := ours, other
		to, then := &c.Ours.Blocks[i], &c.Other.Blocks[i]
		if i%2 == 1 {
			first, second, to, then = second, first, then, to
		}
		var err error
		if *to, err = timed(ctx, first, c.Ops); err != nil {
			return c, err
		}
		if *then, err = timed(ctx, second, c.Ops); err != nil {
			return c, err
		}
	}
	return c, nil
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

// timed runs one block, after collecting the garbage of the one before.
func timed(ctx context.Context, s side, ops int) (time.Duration, error) {
	runtime.GC()
	took, err := s.block(ctx, ops)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.name, err)
	}
	return took, nil
}
