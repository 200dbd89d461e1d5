package main

import (
	"bytes"
	"errors"
	"syscall"
	"time"
)

// stderr is the writer of an app's messages.
type stderr struct{ *app }

func (s stderr) Write(p []byte) (int, error) {
	if s.aside == nil {
		return s.err.Write(p)
	}
	select {
	case s.aside <- bytes.Clone(p):
	default: // too many messages wait
	}
	return len(p), nil
}

// speakAside is for commands that run another one. From then on a goroutine writes the messages, in order, so that no message delays the
// end of that command, or an order to the guard: a pipe may be full, and Ctrl-S stops a terminal.
func (a *app) speakAside() {
	a.aside, a.flushed = make(chan []byte, 1000), make(chan struct{})
	go func() {
		for p := range a.aside {
			if p == nil { // the last one, of flush
				close(a.flushed)
				return
			}
			for n, err := a.err.Write(p); errors.Is(err, syscall.EAGAIN); n, err = a.err.Write(p) {
				p = p[n:] // the command, which has the same pipe, does not let writes wait
				time.Sleep(20 * time.Millisecond)
			}
		}
	}()
}

// flush waits until all messages have been written. Later messages are lost.
func (a *app) flush() {
	if a.aside != nil {
		a.aside <- nil
		<-a.flushed
	}
}
