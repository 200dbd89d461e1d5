package main

import (
	"errors"
	"sync"
	"syscall"
	"time"
)

// stderr is where the messages of an app go.
type stderr struct{ *app }

func (s stderr) Write(p []byte) (int, error) {
	if s.aside != nil {
		return s.aside.Write(p)
	}
	return s.err.Write(p)
}

// speakAside is for what runs a command: nothing waits for long for whoever reads the messages. A pipe may be full, and
// a terminal stopped by Ctrl-S, when the command is to be ended or run again, or the guard to be told that the lock lives.
func (a *app) speakAside() { a.aside = &aside{app: a} }

// flush waits until all messages have been written.
func (a *app) flush() {
	if a.aside != nil {
		a.aside.flush()
	}
}

const (
	mostAside  = 1 << 20                // bytes that wait; what comes then is lost
	asideAfter = 100 * time.Millisecond // who reads is waited for so long, for the sake of order among all that write to the same file
)

// An aside writes to stderr what it is given, in order, on a goroutine of its own.
type aside struct {
	app *app

	mu      sync.Mutex
	waiting []byte
	written chan struct{} // closed when nothing waits any more; nil if nothing does
	stuck   bool          // it was waited for in vain
}

func (w *aside) Write(p []byte) (int, error) {
	w.mu.Lock()
	if len(w.waiting)+len(p) <= mostAside {
		w.waiting = append(w.waiting, p...)
	}
	if w.written == nil {
		w.written = make(chan struct{})
		go w.write()
	}
	written, stuck := w.written, w.stuck
	w.mu.Unlock()
	if stuck {
		return len(p), nil
	}
	select {
	case <-written:
	case <-time.After(asideAfter):
		w.mu.Lock()
		w.stuck = w.written == written
		w.mu.Unlock()
	}
	return len(p), nil
}

func (w *aside) write() {
	for {
		w.mu.Lock()
		p := w.waiting
		w.waiting = nil
		if len(p) == 0 {
			close(w.written)
			w.written, w.stuck = nil, false
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		for n, err := w.app.err.Write(p); errors.Is(err, syscall.EAGAIN); n, err = w.app.err.Write(p) {
			p = p[n:] // the command, which has the same pipe, does not want writes to wait
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func (w *aside) flush() {
	w.mu.Lock()
	written := w.written
	w.mu.Unlock()
	if written != nil {
		<-written
	}
}
