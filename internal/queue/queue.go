// Package queue passes values on without blocking the sender.
package queue

import (
	"sync"

	"github.com/holdfast-go/holdfast/internal/strict"
)

// A Pump passes values on, one at a time and in order, and never blocks a pusher. A goroutine exists only while values wait.
type Pump[T any] struct {
	offer func(T) bool // optional: passes a value on if it can do so at once
	give  func(T)

	mu      strict.Mutex[strict.Pump]
	waiting []T
	running bool
	closed  bool
	idle    sync.WaitGroup
}

// NewPump returns a pump that calls give with each value. give must not end its goroutine.
func NewPump[T any](give func(T)) *Pump[T] { return &Pump[T]{give: give} }

// Push never blocks. After Close it drops the value.
func (p *Pump[T]) Push(v T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	if !p.running {
		if p.offer != nil && p.offer(v) {
			return
		}
		p.running = true
		p.idle.Go(p.run)
	}
	p.waiting = append(p.waiting, v)
}

func (p *Pump[T]) run() {
	for {
		p.mu.Lock()
		if len(p.waiting) == 0 {
			p.running = false
			p.waiting = nil
			p.mu.Unlock()
			return
		}
		v := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.mu.Unlock()
		p.give(v)
	}
}

// Close returns when all values have been passed on.
func (p *Pump[T]) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.idle.Wait()
}

// A Chan is an unbounded channel.
type Chan[T any] struct {
	Out chan T

	pump *Pump[T]
	quit chan struct{} // closed by Close
}

// NewChan returns an empty channel.
func NewChan[T any]() *Chan[T] {
	c := &Chan[T]{Out: make(chan T, 1), quit: make(chan struct{})}
	c.pump = &Pump[T]{offer: c.offer, give: c.give}
	return c
}

// Push never blocks. After Close it drops the value.
func (c *Chan[T]) Push(v T) { c.pump.Push(v) }

// Close drops unread values. Out stays open.
func (c *Chan[T]) Close() {
	close(c.quit)
	c.pump.Close()
	select {
	case <-c.Out:
	default:
	}
}

func (c *Chan[T]) offer(v T) bool {
	select {
	case c.Out <- v:
		return true
	default:
		return false
	}
}

func (c *Chan[T]) give(v T) {
	select {
	case <-c.quit: // first, or a reader might miss a value and receive the next
		return
	default:
	}
	select {
	case c.Out <- v:
	case <-c.quit:
	}
}
