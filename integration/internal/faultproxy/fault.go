package faultproxy

type mode int

const (
	open mode = iota
	stalled
	blackHole
)

// gate is an immutable state of both directions, for all connections. It is
// replaced as a whole, so that the write path reads it without a lock.
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

// Cut resets (RST) all connections on both sides and refuses new ones until
// Heal. The listener is closed, so clients get a genuine "connection refused";
// the port stays reserved (on Linux; elsewhere another process could take it).
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.refuseLocked()
	p.dropLocked()
}

// RefuseNew refuses new connections like Cut until Heal, and leaves the live
// ones alone.
func (p *Proxy) RefuseNew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.refuseLocked()
}

// Drop resets (RST) the live connections, once. New connections pass.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLocked()
}

// BlackHole swallows everything that travels in direction dir until Heal,
// including the end of the stream: neither side notices that the other closes
// or dies. The connections stay open; nothing is answered. Bytes in the latency
// queue are swallowed too. Nothing sent to the proxy after BlackHole returns
// gets through.
//
// New connections are accepted. While ToServer is swallowed they do not reach
// the upstream, since their handshake would not.
//
// Heal resets (RST) every connection that lived through any part of a black
// hole, idle ones too, because a stream with a gap cannot be continued. Calls
// add up: BlackHole(ToServer) and BlackHole(ToClient) make Both.
func (p *Proxy) BlackHole(dir Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.doomed = true
	}
	p.setGateLocked(dir, blackHole)
}

// Stall holds back everything that travels in direction dir until Heal, which
// delivers it in order; the connections survive, as in a paused network. The
// end of a stream is held back too. New connections reach the upstream at once,
// but their bytes are held back.
//
// The proxy buffers 1024 frames, or reads, per connection and direction, and then
// blocks the sender.
func (p *Proxy) Stall(dir Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setGateLocked(dir, stalled)
}

// Turn ends a Stall of one direction and begins a BlackHole of the other in one
// step: the held bytes are delivered, and the replies to them are lost.
func (p *Proxy) Turn(delivered Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.doomed = true
	}
	p.setGateLocked(Both&^delivered, blackHole)
	p.setGateLocked(delivered, open)
}

// HalfOpen accepts new connections, reads from them and never answers, until
// Heal resets them. They do not reach the upstream, and their frames are neither
// counted nor filtered. Live connections continue.
func (p *Proxy) HalfOpen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halfOpen = true
}

// Heal ends Cut, RefuseNew, BlackHole, Stall and HalfOpen. It returns an error
// if the listener could not be opened again; everything else is healed then.
// After Close it does nothing.
func (p *Proxy) Heal() error {
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
