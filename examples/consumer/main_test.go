package main

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/engine"
	"github.com/holdfast-go/holdfast/examples/internal/story"
)

// Some time with two outages: every kind of event is met and reacted to, and
// no consumer works without a turn.
func TestReactsToEveryEvent(t *testing.T) {
	story.InMemory(t, func(t *testing.T, e *engine.Engine) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		out := &buffer{}
		if err := run(ctx, slog.New(slog.NewTextHandler(out, nil)), e, e.Lease+4*time.Second, true); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		for what, least := range map[string]int{
			"msg=ready":                6, // two at the start, two after each outage
			"msg=disconnected":         4,
			`msg="TTL expired"`:        2,
			"msg=lost":                 2,
			" expired\"\n":             2, // session or lease
			"msg=granted":              6,
			"msg=free":                 6,
			`msg="consumed a message"`: 40,
			"msg=ended":                2,
		} {
			if got := strings.Count(text, what); got < least {
				t.Errorf("%s: %d times, at least %d expected", what, got, least)
			}
		}
		over := regexp.MustCompile(`msg=granted consumer=(\S+) stream=\S+ token=\d+ from=(\S+)\n`)
		others := 0
		for _, line := range over.FindAllStringSubmatch(text, -1) {
			if line[1] != line[2] {
				others++
			}
		}
		if others < 4 {
			t.Errorf("%d times a consumer has taken over from the other, at least 4 expected", others)
		}
		if t.Failed() {
			t.Log(text)
		}
	})
}

// buffer may be written by the consumers at the same time.
type buffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}
