package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/engine"
)

// The example needs ZooKeeper, and says so. (What it shows there is tested with
// a server, in integration.)
func TestNotWithoutZooKeeper(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), &out, engine.Memory())
	if err == nil || !strings.Contains(err.Error(), "-servers") || out.Len() > 0 {
		t.Errorf("%v, %q", err, out.String())
	}
}
