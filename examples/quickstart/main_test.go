package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/examples/internal/engine"
)

// The whole story, in order, in virtual time.
func TestStory(t *testing.T) {
	story := regexp.MustCompile(`(?s)` +
		`alice  holds orders/42, token \d+\n.*` +
		`bob    is refused: .*held by "alice".*` +
		`alice  holds orders/42 for half a second, token \d+\n.*` +
		`0\.5\ds  alice  hears the event "ttl expired": orders/42, token \d+\n.*` +
		`bob    holds orders/42, token \d+\n.*` +
		`alice  knows by herself: .*lost: (session|lease) expired\n.*` +
		`bob    holds orders/42, token \d+\n$`)
	for name, open := range engine.Local() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				if err := run(t.Context(), &out, open()); err != nil {
					t.Fatal(err)
				}
				// On DynamoDB the first token is the time.
				if e := out.String(); name == "memory" && !(strings.Contains(e, "token 1\n") && strings.HasSuffix(e, "token 5\n")) {
					t.Errorf("not the tokens that were expected:\n%s", e)
				}
				if !story.Match(out.Bytes()) {
					t.Errorf("not the story that was expected:\n%s", out.String())
				}
			})
		})
	}
}
