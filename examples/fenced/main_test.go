package main

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
	"github.com/holdfast-go/holdfast/examples/internal/story"
)

func TestLateWriteIsRefused(t *testing.T) {
	story.InMemory(t, func(t *testing.T, e *engine.Engine) {
		story.Tells(t, e, `goes on with her write: refused.*asks her lock: TTL expired.*has bob's balance`, run)
	})
}

func TestResource(t *testing.T) {
	var r resource
	for _, write := range []struct {
		token holdfast.Token
		stale bool
	}{
		{3, false},
		{3, false}, // the same holder again
		{2, true},
		{5, false},
		{4, true},
	} {
		err := r.write(write.token, "")
		if got := errors.Is(err, errStale); got != write.stale || (err != nil && !got) {
			t.Errorf("token %d: %v", write.token, err)
		}
	}
}
