package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/engine"
	"github.com/holdfast-go/holdfast/examples/internal/story"
)

// The whole story, in order.
func TestStory(t *testing.T) {
	story.InMemory(t, func(t *testing.T, e *engine.Engine) {
		first, last := `1`, `5`
		if e.Name == "dynamodb" {
			first, last = `\d+`, `\d+` // the first token is the time
		}
		story.Tells(t, e, `alice  holds orders/42, token `+first+`\n.*`+
			`bob    is refused: .*held by "alice".*`+
			`alice  holds orders/42 for half a second, token \d+\n.*`+
			`0\.5\ds  alice  hears the event "ttl expired": orders/42, token \d+\n.*`+
			`bob    holds orders/42, token \d+\n.*`+
			`alice  knows by herself: .*lost: (session|lease) expired\n.*`+
			`bob    holds orders/42, token `+last+`\n$`, run)
	})
}
