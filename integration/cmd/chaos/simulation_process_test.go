package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"sync"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/integration/internal/history"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// cable is the network of one simulated process.
type cable interface {
	// open opens a client whose requests go over the cable.
	open(ctx context.Context, config clientConfig) (locker, error)
	// hold holds back all that the process sends and receives, until release. The kernel does so for a stopped process.
	hold()
	release()
	// sever lets nothing new through, for good, and ends hold: the process was killed. Requests in flight may still arrive.
	sever()
}

// gate keeps goroutines from passing while it is closed. It waits on channels, so that virtual time advances.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil: it is open
}

func (g *gate) pass() {
	for {
		g.mu.Lock()
		opened := g.opened
		g.mu.Unlock()
		if opened == nil {
			return
		}
		<-opened
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

// simulatedProcess is a client as a process of a simulation: goroutines of the test.
//
// While it is paused, its timers and its network stand still, and so does each of its goroutines that takes a stamp, makes a
// record or reads a command. Others go on for no time at all, as if it had been paused a moment later.
//
// When it is killed, all that it does afterwards is neither recorded nor sent. Its goroutines end as they can, some leases
// later.
type simulatedProcess struct {
	lifecycle
	log      func(format string, args ...any)
	client   *client
	cable    cable
	gate     gate
	commands chan string
	done     chan struct{}
	cancel   context.CancelFunc

	mu     sync.Mutex
	paused bool
	over   bool // it was killed, or has ended; nothing is recorded any more
	err    error
}

// launch starts a simulated process.
func (s *simulation) launch(config clientConfig) *simulatedProcess {
	ctx, cancel := context.WithCancel(context.Background())
	p := &simulatedProcess{
		lifecycle: lifecycle{title: config.Process, journal: s.journal}, log: s.say, cable: s.stage.plug(config.Login), cancel: cancel,
		commands: make(chan string, 1000), done: make(chan struct{}),
	}
	p.client = newClient(ctx, config, surroundings{
		now: func() int64 { p.gate.pass(); return s.now() },
		record: func(rec history.Record) {
			if p.record(rec) {
				s.confirm(rec)
			}
		},
		open: func(ctx context.Context, config clientConfig, clk driver.Clock) (locker, error) {
			return p.cable.open(clock.With(ctx, clk), config)
		},
		say:  func(format string, args ...any) { s.say("process %s: "+format, append([]any{p.title}, args...)...) },
		fail: p.end,
	})
	p.journal.note(history.Started, p.title)
	s.ends.Go(func() { p.listen(ctx) })
	s.ends.Go(func() { p.end(p.client.run()) })
	return p
}

func (p *simulatedProcess) Done() <-chan struct{} { return p.done }

// record reports whether the process was still there to make the record.
func (p *simulatedProcess) record(rec history.Record) bool {
	p.gate.pass()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	p.journal.add(rec)
	return true
}

// end is the end of the process by itself, with or without an error.
func (p *simulatedProcess) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.over, p.err = true, err
	p.cable.sever()
	p.cancel()
	close(p.done)
}

// listen executes commands.
func (p *simulatedProcess) listen(ctx context.Context) {
	for {
		select {
		case line := <-p.commands:
			p.gate.pass()
			if err := p.client.obey(line); err != nil {
				p.end(fmt.Errorf("%q: %w", line, err))
			}
		case <-ctx.Done():
			return
		}
	}
}

func (p *simulatedProcess) tell(format string, args ...any) error {
	select {
	case <-p.done:
		return errors.New("it has ended")
	case p.commands <- fmt.Sprintf(format, args...):
		return nil
	}
}

func (p *simulatedProcess) pause() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused || p.over {
		return false
	}
	p.paused = true
	p.gate.close()
	p.client.clock.Pause()
	p.cable.hold()
	p.journal.note(history.Stopped, p.title)
	return true
}

func (p *simulatedProcess) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused {
		p.paused = false
		p.journal.note(history.Resumed, p.title)
		p.cable.release()
		p.client.clock.Resume()
		p.gate.open()
	}
}

func (p *simulatedProcess) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.expected.Store(true)
	p.over, p.paused = true, false
	p.cable.sever()
	p.journal.note(history.Killed, p.title)
	p.cancel()
	close(p.done)
	// Its goroutines must not wait for ever.
	p.client.clock.Resume()
	p.gate.open()
}

func (p *simulatedProcess) dump() {
	var stacks bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, 2) // to a buffer
	p.log("process %s is late; all goroutines:\n%s", p.title, stacks.String())
}

func (p *simulatedProcess) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return fmt.Errorf("process %s: %w", p.title, p.err)
	}
	return nil
}
