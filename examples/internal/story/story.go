// Package story has what the tests of the examples have in common.
package story

import (
	"context"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/examples/internal/engine"
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
