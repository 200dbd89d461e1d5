package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// One of how many calls of Acquire reclaims. Where clients share names of owners, that ends locks that are live, and so is to
// happen often.
const (
	usualReclaims  = 12
	sharedReclaims = 3
)

// slot is a place for a client process, with proxies of its own between it and the servers.
type slot struct {
	run *run
	n   int

	mu      sync.Mutex
	current process
	lives   int
}

// workers is how many workers the process has. A client with a single worker is silent
// while it holds a lock, and so notices less; others are never silent.
func (s *slot) workers() int {
	if s.run.Workers == 1 {
		return 1
	}
	return s.run.Workers + s.n%3 - 1
}

// start starts a process in the slot.
func (s *slot) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lives++
	config := s.run.config(fmt.Sprintf("%d.%d", s.n, s.lives), s.owner(), s.run.stage.login(s.n), s.workers())
	if config.Workers > 1 { // or it would not be silent
		config.Observers = 2
	}
	config.Seed = s.run.Seed<<16 ^ uint64(s.n)<<8 ^ uint64(s.lives-1)
	config.Succeeds = s.lives > 1
	if s.run.Owners > 0 {
		config.Reclaims = sharedReclaims
	}
	p, err := s.run.process(s.run.journal, config)
	if err != nil {
		return err
	}
	s.current = p
	return nil
}

// replace starts a process in place of one that has ended. Where locks do not expire, the operator breaks the locks of that process.
func (s *slot) replace() error {
	if engineOf(s.run.Engine).endless {
		s.mu.Lock()
		ended := s.owner()
		s.mu.Unlock()
		if err := s.run.operator.tell("bury %s", ended); err != nil {
			return err
		}
	}
	return s.start()
}

// owner is the owner of the locks of the process: where locks do not expire, each process has its own.
func (s *slot) owner() string {
	n := s.n
	if engineOf(s.run.Engine).endless {
		return fmt.Sprintf("slot-%d-%d", n, s.lives)
	}
	if s.run.Owners > 0 {
		n %= s.run.Owners
	}
	return fmt.Sprintf("slot-%d", n)
}

// process returns the process in the slot; nil if it was killed and not yet replaced.
func (s *slot) process() process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// remove returns the process, and leaves the slot empty.
func (s *slot) remove() process {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.current
	s.current = nil
	return p
}

func (s *slot) kill() {
	if p := s.remove(); p != nil {
		p.kill()
	}
}

// finish has the process end by some commands, and returns its name when it has ended.
func (s *slot) finish(ctx context.Context, patience time.Duration, commands ...string) (name string, err error) {
	p := s.remove()
	if p == nil {
		return "", nil
	}
	return p.name(), finish(ctx, p, patience, commands...)
}

// idle asks the process to end its work, and waits until it has.
func (s *slot) idle(ctx context.Context) error {
	p := s.process()
	if p == nil {
		return nil
	}
	from := s.run.journal.size()
	if err := p.tell("stop"); err != nil {
		return nil // it has ended: finish says how
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		<-p.Done() // it ends before the run does
		cancel()
	}()
	_, err := s.run.journal.await(ctx, from, func(rec history.Record) bool {
		return rec.Process == p.name() && rec.What == history.Idle
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("process %s: %w", p.name(), err)
	}
	return nil
}

func (s *slot) died() error {
	if p := s.process(); p != nil {
		return died(p)
	}
	return nil
}
