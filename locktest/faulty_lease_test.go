package locktest

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// A keeper is what is wrong with a client that keeps its lease alive by messages.
type keeper struct {
	byReply bool // a lease runs from the reply
	byAny   bool // any reply renews it
	noEnd   bool // that its session has expired does not end it
}

// faultyLeases are faults of engines with such leases.
var faultyLeases = []fault{
	leased("a lease runs from the reply", keeper{byReply: true}),
	leased("any reply renews a lease", keeper{byAny: true}),
	leased("the end of a session does not end its lease", keeper{noEnd: true}),
}

// leased makes an engine on memlock whose clients have a lease that they renew by messages, which can be lost.
func leased(name string, k keeper) fault {
	var all sync.Map // of the sessions, by the owners of their clients
	return fault{
		name: name, breaks: "G2",
		engine: replaced(func(f *faulty) {
			s := &session{keeper: k, host: f.host, renewed: driver.NewLease(f.host, lease, holdfast.ErrSessionExpired)}
			all.Store(f.host.Owner(), s)
			f.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
				g, err := f.Driver.Acquire(ctx, req)
				if err == nil {
					g.Lease = s.begin()
				}
				return g, err
			}
			f.inspect = func(ctx context.Context, key string) (driver.Info, error) {
				info, err := f.Driver.Inspect(ctx, key)
				if err == nil && k.byAny {
					s.current().Renew(s.host.Now())
				}
				return info, err
			}
			context.AfterFunc(f.life, s.end)
		}),
		client: func(c *Client) {
			found, _ := all.Load(c.Owner())
			s := found.(*session)
			cut, heal := c.Cut, c.Heal
			s.expire = c.Expire
			c.Cut = func() { s.set(func() { s.cut = true }); cut() }
			c.Heal = func() { s.set(func() { s.cut, s.mute, s.next = false, false, nil }); heal() }
			c.Expire = func() {
				s.expire()
				s.expired()
			}
			c.Lose = func(next func() Fate) { s.set(func() { s.next = next }) }
		},
	}
}

// A session is one client of a leased engine, both as it sees itself and as its engine does.
type session struct {
	keeper
	host   driver.Host
	expire func() // in the engine

	mu      sync.Mutex
	renewed *driver.Lease
	next    func() Fate
	cut     bool
	mute    bool        // nothing that is sent arrives
	beats   *time.Timer // nil: nothing has been granted
	dies    *time.Timer // in the engine
}

func (s *session) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *session) current() *driver.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renewed
}

// begin returns the lease of a grant. It is kept alive from then on.
func (s *session) begin() *driver.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrives()
	s.renewed.Renew(s.host.Now())
	if s.beats == nil {
		s.beats = time.AfterFunc(lease/4, s.beat)
	}
	return s.renewed
}

// arrives has the engine count from now, with mu.
func (s *session) arrives() {
	if s.dies == nil {
		s.dies = time.AfterFunc(lease, func() { s.expire() })
	}
	s.dies.Reset(lease)
}

func (s *session) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beats.Reset(lease / 4)
	sent, fate := s.host.Now(), Arrives
	if s.next != nil {
		fate = s.next()
	}
	if s.cut || s.mute || fate == LostRequest {
		return
	}
	s.arrives()
	renewed := s.renewed
	answered := func() {
		if s.byReply {
			sent = s.host.Now()
		}
		renewed.Renew(sent)
	}
	switch fate {
	case Arrives:
		answered()
	case LateReply:
		s.mute = true
		time.AfterFunc(lease/4, answered)
	}
}

// expired is what a client hears that is connected when its session ends.
func (s *session) expired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.renewed
	s.renewed = driver.NewLease(s.host, lease, holdfast.ErrSessionExpired)
	if !s.noEnd && !s.cut {
		old.End(holdfast.ErrSessionExpired)
	}
}

func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range []*time.Timer{s.beats, s.dies} {
		if t != nil {
			t.Stop()
		}
	}
}
