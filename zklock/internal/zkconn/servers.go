package zkconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/network"
)

// A server is an address that a name of the user stands for. A name has several, for example, if it is a headless service's.
type server struct {
	name  string // host:port as the user gave it, for TLS and for errors
	at    string // address:port to dial; "" if none is known
	turn  int    // when it was dialled last, counted in dials; 0 for never
	cause error  // why it gave no session when it was asked last
}

func (s *server) String() string {
	if s.at == "" || s.at == s.name {
		return s.name
	}
	host, _, _ := net.SplitHostPort(s.at)
	return fmt.Sprintf("%s (%s)", s.name, host)
}

// resolve looks the names up again, and returns their servers. A name whose look-up fails or takes too long keeps the addresses that it had.
func (l *Link) resolve(ctx context.Context) []*server {
	l.mu.Lock()
	t := l.timesLocked()
	limit := t.FirstReply
	if len(l.servers) > 0 { // the known addresses should have their turn soon
		limit = min(limit, t.Redial*time.Duration(1+l.failures))
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(network.Of(ctx, l.closing), limit)
	defer cancel()
	found := make([][]string, len(l.names))
	failures := make([]error, len(l.names))
	var lookups sync.WaitGroup
	for i, name := range l.names {
		lookups.Go(func() { found[i], failures[i] = lookUp(ctx, name) })
	}
	lookups.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	var now []*server
	for i, name := range l.names {
		known := slices.DeleteFunc(slices.Clone(l.servers), func(s *server) bool { return s.name != name || s.at == "" })
		if len(found[i]) == 0 {
			if len(known) == 0 {
				known = []*server{{name: name, cause: failures[i]}}
			}
			now = append(now, known...)
		}
		for _, at := range found[i] {
			s := &server{name: name, at: at}
			if j := slices.IndexFunc(known, func(s *server) bool { return s.at == at }); j >= 0 {
				s = known[j]
			}
			now = append(now, s)
		}
	}
	l.servers = now
	return now
}

// lookUp returns the addresses that a name stands for.
func lookUp(ctx context.Context, name string) ([]string, error) {
	host, port, err := net.SplitHostPort(name)
	if err != nil {
		return nil, err
	}
	addresses, err := network.LookUp(ctx, host)
	if err == nil && len(addresses) == 0 {
		err = fmt.Errorf("lookup %s: no addresses", host)
	}
	for i, address := range addresses {
		addresses[i] = net.JoinHostPort(address, port)
	}
	return addresses, err
}

// next returns the server to dial: the one that was dialled longest ago, so that no order of a resolver's answers keeps a server from
// its turn. Names are resolved when all servers have been dialled, and when the last connection has served: it may have lasted for days.
func (l *Link) next() string {
	l.mu.Lock()
	due, pause := l.left <= 0 || l.failures == 0, time.Duration(0)
	if l.left <= 0 {
		pause = l.endRoundLocked()
	}
	l.mu.Unlock()
	if due {
		backoff.Sleep(l.dialling, pause, nil)
		l.resolve(l.dialling)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if due {
		l.left = len(l.servers)
	}
	l.left--
	l.turns++
	l.target = slices.MinFunc(l.servers, func(a, b *server) int { return cmp.Compare(a.turn, b.turn) })
	l.target.turn = l.turns
	return cmp.Or(l.target.at, l.target.name)
}

// shareLocked is how long the next server may take to connect, and again to give a session. A first round over all takes half a session
// timeout at most, and later rounds allow more, for servers that are slow.
func (l *Link) shareLocked() time.Duration {
	n, most := max(len(l.servers), 1), l.timesLocked().FirstReply
	return min(most, 2*most*time.Duration(1+l.failures/n)/time.Duration(n))
}

// endRoundLocked is called when all servers have been dialled. Connect fails if none of them will ever give a session, or after its last
// round. The next round begins after a pause.
func (l *Link) endRoundLocked() (pause time.Duration) {
	if len(l.servers) == 0 || l.admitted {
		return 0
	}
	l.rounds++
	mayServe := func(s *server) bool { return !errors.As(s.cause, new(*strangerError)) }
	if l.rounds == l.config.Rounds || !slices.ContainsFunc(l.servers, mayServe) {
		l.giveUp(driver.ErrDisconnected)
	}
	if l.config.Rounds == 0 {
		return 0
	}
	return time.Second
}

// noteCause notes why a server gives no session.
func (l *Link) noteCause(s *server, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.cause = err
}

// causes says of each server why it gives no session.
func (l *Link) causes() (all error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.servers {
		cause := s.cause
		switch {
		case cause == nil && s.turn == 0:
			cause = fmt.Errorf("%s: not tried yet", s)
		case cause == nil:
			cause = fmt.Errorf("%s: no answer yet", s)
		case errors.Is(cause, context.DeadlineExceeded): // the limit of one server, and not the caller's
			cause = errors.New(cause.Error())
		}
		if all == nil {
			all = cause
		} else {
			all = fmt.Errorf("%w; %w", all, cause)
		}
	}
	return all
}
