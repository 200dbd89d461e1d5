package zkconn

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/task"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/internal/zktimes"
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
func testLink(t testing.TB, config Config) (*Link, *stillClock) {
	t.Helper()
	clock := newStillClock()
	return New(context.Background(), testHost(t, clock), complete(config)), clock
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
	if l.wire != nil {
		l.wire.lose(net.ErrClosed)
	}
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
func testSession(id int64) *Session {
	s := &Session{ID: id}
	s.shortest.Store(standard(standardSession))
	return s
}

// frame encodes its parts (int32, int64, string, []byte) with their length in front.
func frame(parts ...any) []byte {
	var b []byte
	for _, part := range parts {
		switch v := part.(type) {
		case int32:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		case int64:
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		case string:
			b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
			b = append(b, v...)
		case []byte:
			b = append(b, v...)
		default:
			panic(fmt.Sprintf("%T", part))
		}
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// connectRequest asks for a new session.
func connectRequest() []byte {
	return frame(int32(0), int64(0), int32(10_000), int64(0), string(make([]byte, 16)))
}

// connectResponse gives a session.
func connectResponse(timeoutMS int32, session int64) []byte {
	return frame(int32(0), timeoutMS, session, string(make([]byte, 16)), []byte{0})
}

// reply answers a request.
func reply(xid int32, zxid int64, err int32, body ...any) []byte {
	return frame(append([]any{xid, zxid, err}, body...)...)
}

// A stillClock advances only when a test moves it, and fires no timers.
type stillClock struct {
	Time   driver.Instant
	Timers []time.Duration // that were set
}

// at is so many milliseconds after a moment, at which a new clock stands.
func at(ms int) driver.Instant {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return driver.Instant{Mono: begin, Wall: begin}.Add(time.Duration(ms) * time.Millisecond)
}

// newStillClock returns a clock that stands at at(0).
func newStillClock() *stillClock { return &stillClock{Time: at(0)} }

// Now implements [driver.Clock].
func (c *stillClock) Now() driver.Instant { return c.Time }

// Advance moves the clock.
func (c *stillClock) Advance(d time.Duration) { c.Time = c.Time.Add(d) }

// AfterFunc implements [driver.Clock].
func (c *stillClock) AfterFunc(d time.Duration, _ func()) driver.Timer {
	c.Timers = append(c.Timers, d)
	return stillTimer{}
}

// A stillTimer never fires.
type stillTimer struct{}

// Stop implements [driver.Timer].
func (stillTimer) Stop() bool { return true }

// testHost returns the host of a client that has no engine.
func testHost(t testing.TB, clock driver.Clock) (host driver.Host) {
	t.Helper()
	none := errors.New("the host is all that is wanted")
	_, err := holdfast.New(driver.Config{Clock: clock}, nil, func(h driver.Host) (driver.Driver, error) {
		host = h
		return nil, none
	})
	if !errors.Is(err, none) {
		t.Fatal(err)
	}
	return host
}

// openedTrust is that of a connection on which the session was asked for at a moment.
func openedTrust(t *zktimes.Times, opened driver.Instant) *trust {
	return &trust{window: t.Window, opened: opened, grain: t.Grain}
}
