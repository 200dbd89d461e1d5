package main

import (
	"bytes"
	"regexp"
	"testing"
	"testing/synctest"
)

// The whole story, in order, in virtual time.
func TestStory(t *testing.T) {
	story := regexp.MustCompile(`(?s)` +
		`alice  holds orders/42, token 1\n.*` +
		`bob    is refused: .*held by "alice".*` +
		`alice  holds orders/42 for half a second, token 2\n.*` +
		`0\.50s  alice  hears the event "ttl expired": orders/42, token 2\n.*` +
		`bob    holds orders/42, token 3\n.*` +
		`alice  knows by herself: .*lost: session expired\n.*` +
		`bob    holds orders/42, token 5\n$`)
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		if !story.Match(out.Bytes()) {
			t.Errorf("not the story that was expected:\n%s", out.String())
		}
	})
}
