package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/engine"
	"github.com/holdfast-go/holdfast/examples/internal/story"
)

// Every shard gets its share of the locks.
func TestSpreads(t *testing.T) {
	story.InMemory(t, func(t *testing.T, first *engine.Engine) {
		shards := []*engine.Engine{first, engine.Memory(), engine.Memory()}
		story.Tells(t, nil, `^shard-1 holds 18 of 60 .*shard-2 holds 18 of 60 .*shard-3 holds 24 of 60 .*`+
			`would get 14 of the keys; all others would stay\n$`,
			func(ctx context.Context, out io.Writer, _ *engine.Engine) error { return run(ctx, out, shards, 60) })
	})
}

// A key moves only to a shard that is added, or from one that is removed; the order of the list does not matter.
func TestPlace(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	reversed := slices.Clone(names)
	slices.Reverse(reversed)
	const keys = 10_000
	count := make(map[string]int)
	for i := range keys {
		key := fmt.Sprint("key", i)
		four, three := place(key, names), place(key, names[:3])
		count[four]++
		if four != three && four != "d" {
			t.Fatalf("%s moves from %s to %s", key, three, four)
		}
		if other := place(key, reversed); other != four {
			t.Fatalf("%s is at %s, or at %s with the list reversed", key, four, other)
		}
	}
	for _, name := range names {
		if n := count[name]; n < keys/5 || n > keys*3/10 {
			t.Errorf("%d of %d keys on each shard: %v", n, keys, count)
		}
	}
}
