//go:build unix

package main

import (
	"testing"
	"time"
)

// TestSentence checks what is said about how a command is ended.
func TestSentence(t *testing.T) {
	for left, want := range map[time.Duration]string{
		2 * time.Second: "SIGTERM now, SIGKILL in 2s",
		0:               "SIGKILL to the command",
		-time.Second:    "SIGKILL to the command",
	} {
		if got := sentence(left); got != want {
			t.Errorf("with %v left: %q, want %q", left, got, want)
		}
	}
}
