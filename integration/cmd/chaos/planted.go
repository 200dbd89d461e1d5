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
// lock, is stopped before it writes, and continues after another process was granted the lock and has written.
func (r *run) planted(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, plantedPatience, errors.New("it takes too long"))
	defer cancel()
	err := r.plant(ctx)
	if err == nil {
		err = checkPlanted(r.journal.all())
	}
	if err != nil {
		return fmt.Errorf("planted pause: %w", err)
	}
	return nil
}

func (r *run) plant(ctx context.Context) error {
	var pair [2]*process
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
	is := func(p *process, what history.What) func(history.Record) bool {
		return func(rec history.Record) bool { return rec.Process == p.name && rec.What == what && !rec.Fenced }
	}
	if _, err := r.journal.await(ctx, 0, is(late, history.Held)); err != nil {
		return fmt.Errorf("the first grant: %w", err)
	}
	late.AwaitState(true)
	r.journal.note(history.Stopped, late.name)
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
	for _, p := range pair {
		if err := p.finish(ctx, closePatience); err != nil {
			return err
		}
	}
	return nil
}

// checkPlanted checks both registers: the unfenced one must have accepted the late write, or nothing was shown, and the
// fenced one must have refused it.
func checkPlanted(records []history.Record) error {
	highest, value := uint64(0), uint64(0)
	wentBack, refused := false, false
	for _, rec := range records {
		if rec.What != history.Wrote || rec.Key != plantedKey {
			continue
		}
		switch {
		case !rec.Fenced:
			wentBack = wentBack || rec.Token < value
			value = rec.Token
		case !rec.Accepted:
			refused = true
		case rec.Token < highest:
			return fmt.Errorf("the fenced register went back from token %d to %d", highest, rec.Token)
		default:
			highest = rec.Token
		}
	}
	switch {
	case !wentBack:
		return errors.New("the unfenced register did not go back: the pause has shown nothing")
	case !refused:
		return errors.New("the fenced register did not refuse the late write")
	}
	return nil
}
