package cli_test

import (
	"strings"
	"testing"
)

// field returns what a line of "show" says.
func field(t *testing.T, text, name string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+"  "); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Errorf("no %q in %q", name, text)
	return ""
}
