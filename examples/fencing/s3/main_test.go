package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/engine"
	"github.com/holdfast-go/holdfast/examples/internal/story"
)

// Both acts end as the example says: without a fence the late write passes.
func TestActs(t *testing.T) {
	story.Tells(t, engine.Memory(), `^no fence:\n.*alice  goes on, and writes, without the lock\n.*the object is alice's\n`+
		`the token in the object:\n.*alice  goes on: [^\n]*refuses token[^\n]*\n.*the object is bob's\n$`, run)
}
