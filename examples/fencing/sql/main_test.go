package main

import (
	"context"
	"io"
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/engine"
	"github.com/holdfast-go/holdfast/examples/internal/story"
)

// Both acts end as the example says: without a fence a booking is lost.
func TestActs(t *testing.T) {
	story.InMemory(t, func(t *testing.T, e *engine.Engine) {
		story.Tells(t, e, `^no fence:\n.*alice  goes on, and writes, without the lock\n.*the balance is 70: bob's 50 are gone\n`+
			`a claim in each transaction:\n.*alice  goes on: [^\n]*refuses token[^\n]*\n.*the balance is 150: bob's[^\n]*\n$`,
			func(ctx context.Context, out io.Writer, e *engine.Engine) error { return run(ctx, out, e, t.TempDir()) })
	})
}
