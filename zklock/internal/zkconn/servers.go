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
	cause error  // why it gave no session when it was asked last
}

func (s *server) String() string {
	if s.at == "" || s.at == s.name {
		return s.name
	}
	return fmt.Sprintf("%s (%s)", s.name, s.at)
}

// resolve looks the names up again. A name whose look-up fails or takes too long keeps the addresses that it had.
func (l *Link) resolve(ctx context.Context) {
	l.mu.Lock()
	limit := l.times.FirstReply
	if len(l.servers) > 0 { // the known addresses should have their turn soon
		limit = min(limit, l.times.Redial*time.Duration(1+l.failures))
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(network.Of(ctx, l.closing), limit)
	defer cancel()
	found := make([][]string, len(l.names))
	failures := make([]error, len(l.names))
	var lookups sync.WaitGroup
	for i, name := range l.names {
		lookups.Go(func() {
			host, port, _ := net.SplitHostPort(name)
			found[i], failures[i] = network.LookUp(ctx, host)
			for j, address := range found[i] {
				found[i][j] = net.JoinHostPort(address, port)
			}
		})
	}
	lookups.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers = slices.DeleteFunc(l.servers, func(s *server) bool {
		if s.at == "" {
			return true
		}
		all := found[slices.Index(l.names, s.name)]
		return len(all) > 0 && !slices.Contains(all, s.at)
	})
	fresh := 0
	add := func(s *server) {
		known := func(x *server) bool { return x.name == s.name && (x.at == s.at || s.at == "") }
		if !slices.ContainsFunc(l.servers, known) {
			l.servers = slices.Insert(l.servers, fresh, s)
			fresh++
		}
	}
	for i, name := range l.names {
		for _, at := range found[i] {
			add(&server{name: name, at: at})
		}
		add(&server{name: name, cause: failures[i]})
	}
}

// next returns the server to dial: the one that was dialled longest ago, so that no order of a resolver's answers keeps a server from
// its turn. Names are resolved when all servers have been dialled, and when the last connection has served: it may have lasted for days.
// Connect fails when all servers have been dialled and none of them will ever give a session, and after its last round.
func (l *Link) next() *server {
	l.mu.Lock()
	due, inVain := l.unvisited <= 0 || l.failures == 0, l.unvisited <= 0 && len(l.servers) > 0 && l.conn == nil
	if inVain {
		l.rounds++
		mayServe := func(s *server) bool { return !errors.As(s.cause, new(strangerError)) }
		if l.rounds == l.config.Rounds || !slices.ContainsFunc(l.servers, mayServe) {
			l.giveUp()
		}
	}
	l.mu.Unlock()
	if inVain && l.config.Rounds > 0 {
		backoff.Sleep(l.dialling, l.host, time.Second, nil)
	}
	if due {
		l.resolve(l.dialling)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if due {
		l.unvisited = len(l.servers)
	}
	l.unvisited--
	s := l.servers[0]
	l.servers = append(l.servers[1:], s)
	return s
}

// shareLocked is how long the next server may take to connect, and again to give a session. A first round over all takes half a session
// timeout at most, and later rounds allow more, for servers that are slow.
func (l *Link) shareLocked() time.Duration {
	n, most := max(len(l.servers), 1), l.times.FirstReply
	return min(most, 2*most*time.Duration(1+l.failures/n)/time.Duration(n))
}

// denied is why no server serves this client: since one served last, each has been asked, and one refuses the connection.
func (l *Link) denied() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.servers {
		if s.cause == nil {
			return nil
		}
		if errors.Is(s.cause, driver.ErrDenied) {
			err = fmt.Errorf("zookeeper: %w", s.cause)
		}
	}
	return err
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
		cause := cmp.Or(s.cause, fmt.Errorf("%s: no session yet", s))
		if errors.Is(cause, context.DeadlineExceeded) { // the limit of one server, and not the caller's
			cause = errors.New(cause.Error())
		}
		if all != nil {
			cause = fmt.Errorf("%w; %w", all, cause)
		}
		all = cause
	}
	return all
}
