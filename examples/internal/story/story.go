// Package story has what the tests of the examples have in common.
package story

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/examples/internal/engine"
	"github.com/holdfast-go/holdfast/memlock"
)

// InMemory runs a test in virtual time on the engine that needs no server. The tests of package integration run the examples on servers.
func InMemory(t *testing.T, test func(t *testing.T, e *engine.Engine)) {
	synctest.Test(t, func(t *testing.T) { test(t, engine.Memory()) })
}

// Tells runs an example, and fails the test unless what it prints matches an expression, in which a dot is any character.
func Tells(t *testing.T, e *engine.Engine, expression string, run func(context.Context, io.Writer, *engine.Engine) error) {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), &out, e); err != nil {
		t.Fatalf("%v after\n%s", err, out.String())
	}
	if !regexp.MustCompile(`(?s)` + expression).MatchString(out.String()) {
		t.Errorf("not the story that was expected:\n%s", out.String())
	}
}

// Race has four clients of one store write concurrently, in some turns each. It counts the writes that succeeded and those
// that failed with stale; any other error fails the test.
func Race(
	t *testing.T, turns int, stale error, write func(locks *memlock.Store, client *memlock.Client, turn int) error,
) (written, refused int) {
	t.Helper()
	locks := memlock.NewStore()
	var succeeded, failed atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		client, err := memlock.New(&memlock.Options{Store: locks})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(t.Context())
		all.Go(func() {
			for i := range turns {
				err := write(locks, client, i)
				switch {
				case err == nil:
					succeeded.Add(1)
				case errors.Is(err, stale):
					failed.Add(1)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d written, %d refused", succeeded.Load(), failed.Load())
	return int(succeeded.Load()), int(failed.Load())
}
