package faultproxy

type mode int

const (
	open mode = iota
	stalled
	blackHole
)

// gate is an immutable state of both directions, for all connections. It is replaced as a whole, so that the write path reads it without a
// lock.
type gate struct {
	mode    [2]mode
	changed chan struct{} // closed when a newer gate is in force
}

func newGate() *gate { return &gate{changed: make(chan struct{})} }

// setGateLocked sets the mode of dir to m.
func (p *Proxy) setGateLocked(dir Direction, m mode) {
	old := p.gate.Load()
	next := newGate()
	next.mode = old.mode
	for _, d := range []Direction{ToServer, ToClient} {
		if dir&d != 0 {
			next.mode[d.lane()] = m
		}
	}
	p.gate.Store(next)
	close(old.changed)
}

// Cut resets all connections on both sides and refuses new ones until Heal. The listener is closed, and the port stays reserved (on Linux;
// elsewhere another process could take it).
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.refuseLocked()
	p.dropLocked()
}

// RefuseNew refuses new connections like Cut until Heal. Live connections continue.
func (p *Proxy) RefuseNew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.refuseLocked()
}

// Drop resets the live connections, once.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLocked()
}

// BlackHole swallows everything that travels in direction dir until Heal, including the end of the stream and bytes in the latency queue.
// New connections are accepted; while ToServer is swallowed they do not reach the upstream. Calls add up.
//
// Heal resets every connection that lived through any part of a black hole, because a stream with a gap cannot be continued.
func (p *Proxy) BlackHole(dir Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.doomed = true
	}
	p.setGateLocked(dir, blackHole)
}

// Stall holds back everything that travels in direction dir, the end of a stream too, until Heal delivers it in order. New connections
// reach the upstream at once. The proxy buffers 1024 frames, or reads, per connection and direction, and then blocks the sender.
func (p *Proxy) Stall(dir Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setGateLocked(dir, stalled)
}

// Turn ends a Stall of one direction and begins a BlackHole of the other in one step: the held bytes are delivered, and the replies to them
// are lost.
func (p *Proxy) Turn(delivered Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.doomed = true
	}
	p.setGateLocked(Both&^delivered, blackHole)
	p.setGateLocked(delivered, open)
}

// HalfOpen accepts new connections, reads from them and never answers, until Heal resets them. They do not reach the upstream, and their
// frames are neither counted nor filtered.
func (p *Proxy) HalfOpen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halfOpen = true
}

// Heal ends all faults. It returns an error if the listener could not be opened again; everything else is healed then. After Close it does
// nothing.
func (p *Proxy) Heal() error {
	p.mail.lose(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	// Before the gate opens: no byte may follow a gap.
	for c := range p.conns {
		if c.doomed {
			c.reset()
		}
	}
	p.setGateLocked(Both, open)
	p.halfOpen = false
	p.refuse = false
	return p.listenLocked()
}
