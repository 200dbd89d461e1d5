package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// plantedKey is the key of the directed scenario.
const plantedKey = "planted"

// plantedPatience bounds each of its steps.
const plantedPatience = time.Minute

// planted is a directed scenario that ensures that an unfenced register goes wrong in every run: a process looks at its
// lock, is stopped before it writes, and continues after another process was granted the lock and has written, which is then
// killed. It needs processes of the operating system.
func (r *run) planted(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, plantedPatience, errors.New("it takes too long"))
	defer cancel()
	if err := r.plant(ctx); err != nil {
		return fmt.Errorf("planted pause: %w", err)
	}
	// The unfenced register must have accepted the late write, and the fenced one must have refused it.
	if f := history.Count(r.journal.all()); f.WentBack == 0 || f.Refused == 0 {
		return errors.New("planted pause: it has shown nothing about one of the registers")
	}
	return nil
}

func (r *run) plant(ctx context.Context) error {
	var pair [2]*childProcess
	for i, name := range []string{"late", "next"} {
		p, err := startProcess(r.Dir, r.journal, r.config(name, name, r.stage.direct(), 0))
		if err != nil {
			return err
		}
		defer p.kill()
		pair[i] = p
	}
	late, next := pair[0], pair[1]
	if err := late.tell("plant %s", plantedKey); err != nil {
		return err
	}
	is := func(p *childProcess, what history.What) func(history.Record) bool {
		return func(rec history.Record) bool { return rec.Process == p.name() && rec.What == what && !rec.Fenced }
	}
	if _, err := r.journal.await(ctx, 0, is(late, history.Held)); err != nil {
		return fmt.Errorf("the first grant: %w", err)
	}
	late.AwaitState(true)
	r.journal.note(history.Stopped, late.name())
	if err := next.tell("take %s", plantedKey); err != nil {
		return err
	}
	if _, err := r.journal.await(ctx, 0, is(next, history.Wrote)); err != nil {
		return fmt.Errorf("the write of the next holder: %w", err)
	}
	if err := late.proceed(); err != nil {
		return err
	}
	if _, err := r.journal.await(ctx, 0, is(late, history.Wrote)); err != nil {
		return fmt.Errorf("the late write: %w", err)
	}
	// A short plan may not come to a kill. What it held would have to be waited for, so it has given that back.
	if _, err := r.journal.await(ctx, 0, func(rec history.Record) bool {
		return rec.Process == next.name() && rec.What == history.Return && rec.Call == history.Release
	}); err != nil {
		return fmt.Errorf("the release of the next holder: %w", err)
	}
	next.kill()
	return late.finish(ctx, closePatience, "stop", "close")
}
