package main

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
)

// freshKeys uses a new key each time, so that its parent must be created.
func freshKeys(ctx context.Context, e *env, emit func(report.Row)) error {
	cs, err := e.connect(ctx, e.server.Addr())
	if err != nil {
		return err
	}
	defer cs.close()
	ours := side{"holdfast", loop(func(ctx context.Context) error { return cs.acquireRelease(e.name("fresh"))(ctx) })}
	other := side{goZookeeper, loop(func(ctx context.Context) error { return cs.lockUnlock(e.name("fresh"))(ctx) })}
	c, err := alternate(ctx, e.plan(100*time.Millisecond), report.Contest{Where: loopback, What: "a fresh key each time", Op: hold}, ours, other)
	if err != nil {
		return err
	}
	emit(report.Compare(c, report.AtLeast(1)))
	return nil
}
