package dynamoserver

import (
	"fmt"
	"syscall"
)

// Process reports whether Open has started the server as a process, which can be paused.
func (t *Target) Process() bool { return t.process != nil }

// Pause stops the process with SIGSTOP: its sockets stay open and take bytes, but nothing answers. It returns when the
// process has stopped. It fails if Process is false.
func (t *Target) Pause() error { return t.suspend(syscall.SIGSTOP, true) }

// Resume continues a paused process. The process then serves the requests that arrived meanwhile, even if their clients have
// given up.
func (t *Target) Resume() error { return t.suspend(syscall.SIGCONT, false) }

func (t *Target) suspend(sig syscall.Signal, paused bool) error {
	if t.process == nil {
		return fmt.Errorf("dynamodb at %s (%s): %v: not a process of our own", t.endpoint, t.source, sig)
	}
	if err := t.process.Signal(sig); err != nil {
		return fmt.Errorf("dynamodb at %s: %w", t.endpoint, err)
	}
	t.process.AwaitState(paused)
	return nil
}
