package zkconn

import (
	"cmp"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver/task"
	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/internal/zktimes"
	"github.com/holdfast-go/holdfast/zklock/internal/zktest"
)

// patience bounds steps that take far less.
const patience = time.Minute

func init() { strict.On() }

// theServer is one of a link without servers.
var theServer = &server{name: "server:2181", at: "server:2181"}

// standardSession is the timeout of sessions where nothing else is said.
const standardSession = 10 * time.Second

// standard returns the times that follow from a session timeout if the user has set nothing else.
func standard(session time.Duration) *zktimes.Times { return zktimes.Of(session, 0, 0, 0) }

// testLink is a link without servers, on a clock that stands still.
func testLink(t testing.TB, config Config) (*Link, *zktest.StillClock) {
	t.Helper()
	clock := zktest.NewStillClock()
	return New(context.Background(), zktest.Host(t, clock), complete(config)), clock
}

// complete fills in what a user of a link says.
func complete(config Config) Config {
	config.SessionTimeout = cmp.Or(config.SessionTimeout, standardSession)
	if config.Times == nil {
		config.Times = standard
	}
	if config.Connected == nil {
		config.Connected = func(bool) {}
	}
	if config.Reopened == nil {
		config.Reopened = func(*Session) {}
	}
	return config
}

// newestWire makes the newest connection of a link.
func newestWire(l *Link, conn net.Conn, first time.Duration) *Wire {
	l.lost(l.Wire(), net.ErrClosed)
	w := newWire(conn, l, theServer, first)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wire = w
	return w
}

// feed has a wire on a scripted connection read one frame after the other.
func feed(w *Wire, frames ...[]byte) error {
	for _, frame := range frames {
		w.Conn.(interface{ feed([]byte) }).feed(frame)
		if err := w.readFrame(); err != nil {
			return err
		}
		w.frame = nil
	}
	return nil
}

// scripted is a connection that returns its input and records what is written.
type scripted struct {
	net.Conn
	in, out []byte
}

func (s *scripted) Read(b []byte) (int, error) {
	if len(s.in) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.in)
	s.in = s.in[n:]
	return n, nil
}

func (s *scripted) Write(b []byte) (int, error) {
	s.out = append(s.out, b...)
	return len(b), nil
}

func (s *scripted) Close() error { return nil }

func (s *scripted) feed(b []byte) { s.in = b }

// connected is a link that has a session of a server.
func connected(t testing.TB, server *zktest.NodeServer) *Link {
	t.Helper()
	ctx := network.With(t.Context(), server.Dial)
	l := New(ctx, zktest.Host(t, zktest.NewStillClock()), complete(Config{}))
	if err := l.Connect(ctx, []string{"in memory"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// testTasks are those of a link, until the test ends.
func testTasks(t *testing.T) *task.Group {
	g := task.NewGroup()
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		g.Close(now)
	})
	return g
}

// testSession is a session with the default timeout.
func testSession(id int64) *Session { return NewSession(id, nil, standard(standardSession)) }
