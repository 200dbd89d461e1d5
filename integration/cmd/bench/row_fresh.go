package main

import (
	"context"
	"time"
)

// freshKeys takes a new key each time, so that its parent has to be made.
func freshKeys(ctx context.Context, e *env, emit func(result)) error {
	cs, err := e.connect(ctx, e.server.Addr())
	if err != nil {
		return err
	}
	defer cs.close()
	ours := side{"holdfast", loop(func(ctx context.Context) error { return cs.acquireRelease(e.name("fresh"))(ctx) })}
	other := side{"go-zookeeper", loop(func(ctx context.Context) error { return cs.lockUnlock(e.name("fresh"))(ctx) })}
	pairs, ops, err := alternate(ctx, e.plan(100*time.Millisecond), ours, other, 0)
	if err != nil {
		return err
	}
	emit(compared("a fresh key each time, against go-zookeeper's Lock", "acquire+release", atLeast(1), ours, other, pairs, ops))
	return nil
}
