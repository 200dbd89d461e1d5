package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/engine"
	"github.com/holdfast-go/holdfast/examples/internal/story"
)

// Three workers for ten terms: one works at a time, each has its turns, and
// all end when the context does.
func TestTurns(t *testing.T) {
	const term = 3 * time.Second
	story.InMemory(t, func(t *testing.T, e *engine.Engine) {
		// The others notice the end of a term by a Poll later, at most.
		ctx, cancel := context.WithTimeout(t.Context(), 10*(term+e.Poll)-time.Second/2)
		defer cancel()
		var out bytes.Buffer
		if err := run(ctx, slog.New(slog.NewTextHandler(&out, nil)), e, 3, term); err != nil {
			t.Fatal(err)
		}
		works := 0
		turns := make(map[string]int)
		for line := range strings.Lines(out.String()) {
			switch {
			case strings.Contains(line, "msg=works"):
				works++
				_, rest, _ := strings.Cut(line, "worker=")
				name, _, _ := strings.Cut(rest, " ")
				turns[name]++
			case strings.Contains(line, "msg=stops"):
				works--
			}
			if works < 0 || works > 1 {
				t.Fatalf("%d work at a time:\n%s", works, out.String())
			}
		}
		if len(turns) != 3 {
			t.Errorf("turns %v: three workers should have had some", turns)
		}
		total := 0
		for name, n := range turns {
			total += n
			if n < 3 && e.Poll == 0 {
				t.Errorf("%s had %d turns of 10: the queue is fair, so it should have 3 or 4", name, n)
			}
		}
		if total < 9 || total > 10 && e.Poll == 0 {
			t.Errorf("%d turns, want 10", total)
		}
		for what, want := range map[string]int{"msg=works": total, "msg=stops": total, "msg=ended": 3} {
			if got := strings.Count(out.String(), what); got != want {
				t.Errorf("%s: %d times, want %d", what, got, want)
			}
		}
	})
}
