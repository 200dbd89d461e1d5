package zklock

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// stillClock advances only when a test moves it, and fires no timers.
type stillClock struct{ now driver.Instant }

func (c *stillClock) Now() driver.Instant { return c.now }

func (c *stillClock) Advance(d time.Duration) { c.now = c.now.Add(d) }

func (c *stillClock) AfterFunc(time.Duration, func()) driver.Timer { return stillTimer{} }

type stillTimer struct{}

func (stillTimer) Stop() bool { return true }

// testLink is a link without servers, on a clock that stands still.
func testLink(t *testing.T, opts Options) (*link, *stillClock) {
	t.Helper()
	fake := &stillClock{now: at(0)}
	opts.SessionTimeout = cmp.Or(opts.SessionTimeout, DefaultSessionTimeout)
	var l *link
	_, err := holdfast.New(driver.Config{Clock: fake}, holdfast.Hooks{}, func(host driver.Host) (driver.Driver, error) {
		l = newLink(context.Background(), host, opts)
		return nil, errors.New("the host is all that is wanted")
	})
	if l == nil {
		t.Fatal(err)
	}
	return l, fake
}

// testSession is a session with the default timeout.
func testSession(id int64) *session {
	s := &session{id: id}
	s.shortest.Store((&Options{}).times(DefaultSessionTimeout))
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

func connectRequest() []byte {
	return frame(int32(0), int64(0), int32(10_000), int64(0), string(make([]byte, 16)))
}

func connectResponse(timeoutMS int32, session int64) []byte {
	return frame(int32(0), timeoutMS, session, string(make([]byte, 16)), []byte{0})
}

func clientRequest(xid, op int32, path string) []byte {
	return frame(xid, op, path, "data", int32(1), int32(31))
}

func reply(xid int32, zxid int64, err int32, body ...any) []byte {
	return frame(append([]any{xid, zxid, err}, body...)...)
}

// TestScanAnyCut: the wire parses replies however the network splits them.
func TestScanAnyCut(t *testing.T) {
	const session = 0x1234567890abcdef
	stream := slices.Concat(
		connectResponse(4000, session),
		reply(1, 101, 0, "/q/_c_a-lock-0000000001"),
		reply(-1, -1, 0, int32(2), int32(3), "/q/x"), // a watch event
		reply(-2, 101, 0),                            // a ping, as short as a reply can be
		reply(2, 102, -101),                          // no node
		reply(3, 103, 0, string(make([]byte, 5000))),
		reply(4, 104, 0, "/q/_c_b-lock-0000000002"),
		reply(5, 105, 0, "/q/_c_app-lock-0000000003"),
	)
	run := func(t *testing.T, chunks [][]byte) {
		t.Helper()
		l, _ := testLink(t, Options{})
		w := newWire(nil, l, time.Second)
		l.wire = w
		w.noteRequest(connectRequest())
		for _, path := range []string{"/q/_c_a-lock-", "/q/_c_failed-lock-", "/q/_c_read-lock-", "/q/_c_b-lock-"} {
			l.expectCreated(path)
		}
		w.noteRequest(clientRequest(1, opCreate, "/q/_c_a-lock-"))
		w.noteRequest(clientRequest(5, opCreate, "/q/_c_app-lock-")) // the application's own
		w.noteRequest(frame(int32(xidPing), int32(11)))
		w.noteRequest(clientRequest(2, opCreate, "/q/_c_failed-lock-"))
		w.noteRequest(clientRequest(3, 4, "/q/_c_read-lock-"))
		w.noteRequest(clientRequest(4, opCreate, "/q/_c_b-lock-"))
		for _, chunk := range chunks {
			w.scan(chunk)
		}
		if s := l.current(); s == nil || s.id != session || s.times().Session != 4*time.Second || l.times.Session != 4*time.Second {
			t.Fatalf("session %+v, want %#x for 4s", s, int64(session))
		}
		got := []int64{l.takeCreated("/q/_c_a-lock-"), l.takeCreated("/q/_c_failed-lock-"), l.takeCreated("/q/_c_read-lock-"), l.takeCreated("/q/_c_b-lock-")}
		if want := []int64{101, 0, 0, 104}; !slices.Equal(got, want) {
			t.Fatalf("czxids %v, want %v", got, want)
		}
		if len(w.sent) > 0 || len(w.pings) > 0 || len(l.created) > 0 {
			t.Fatalf("still remembered: requests %v, pings %v, czxids %v", w.sent, w.pings, l.created)
		}
		if w.have != 0 || w.rest != 0 {
			t.Fatalf("the end of the stream is taken for the middle of a frame")
		}
	}
	for cut := range len(stream) {
		run(t, [][]byte{stream[:cut], stream[cut:]})
	}
	for _, size := range []int{1, 2, 3, 5, 7, 19, 20, 21, 64, len(stream)} {
		run(t, slices.Collect(slices.Chunk(stream, size)))
	}
}

// TestWhatRenews tests hazard Z5 at the wire: replies extend the lease only as far as
// trust allows, unless heartbeats are turned off.
func TestWhatRenews(t *testing.T) {
	const session, timeout = 7, 4 * time.Second
	begin := func(t *testing.T, opts Options) (*wire, *stillClock, func() time.Duration) {
		l, fake := testLink(t, opts)
		w := newWire(nil, l, time.Second)
		l.wire = w
		opened := l.host.Now()
		w.noteRequest(connectRequest())
		fake.Advance(100 * time.Millisecond)
		w.scan(connectResponse(int32(timeout.Milliseconds()), session))
		margin := l.host.Margin(timeout)
		return w, fake, func() time.Duration { // from when on the lease counts
			return l.current().lease.Deadline().Sub(opened.Mono) - timeout + margin
		}
	}
	exchange := func(w *wire, fake *stillClock, xid, op, err int32) {
		fake.Advance(10 * time.Millisecond)
		w.noteRequest(clientRequest(xid, op, "/x"))
		fake.Advance(10 * time.Millisecond)
		w.scan(reply(xid, 1, err))
	}
	ping := func(w *wire, fake *stillClock) {
		fake.Advance(10 * time.Millisecond)
		w.noteRequest(frame(int32(xidPing), int32(11)))
		fake.Advance(10 * time.Millisecond)
		w.scan(reply(xidPing, 1, 0))
	}

	t.Run("the session itself, from its request on", func(t *testing.T) {
		_, _, from := begin(t, Options{})
		if from() != 0 {
			t.Errorf("it counts from %v after the request, want 0", from())
		}
	})
	for _, op := range []int32{3, 4, 8, 9, 12, 100, 101} { // reads, sync, auth, watches
		t.Run(fmt.Sprintf("operation %d and pings do not", op), func(t *testing.T) {
			w, fake, from := begin(t, Options{})
			for xid := range int32(5) {
				fake.Advance(700 * time.Millisecond)
				ping(w, fake)
				exchange(w, fake, xid+1, op, 0)
			}
			if from() != 0 {
				t.Errorf("it counts from %v after the session's request, want still 0", from())
			}
		})
	}
	for _, op := range []int32{opCreate, opDelete, opSetData, opMulti, opCreateContainer} {
		for _, before := range []int32{opSync, opMulti} {
			t.Run(fmt.Sprintf("operation %d, after %d, renews what came before", op, before), func(t *testing.T) {
				w, fake, from := begin(t, Options{})
				fake.Advance(390 * time.Millisecond)
				ping(w, fake) // sent at 500 ms, answered at 510
				fake.Advance(1105 * time.Millisecond)
				exchange(w, fake, 1, before, 0) // sent at 1625 ms: less than a window after
				exchange(w, fake, 2, op, 0)     // sent at 1645 ms: the table is on its way when it is answered
				if from() != 0 {
					t.Errorf("it counts from %v, want 0: the ping's touch need not have been collected", from())
				}
				exchange(w, fake, 3, op, 0)
				if from() != 500*time.Millisecond {
					t.Errorf("it counts from %v, want 500ms, the ping's sending", from())
				}
			})
		}
	}
	t.Run("credentials are no beginning", func(t *testing.T) {
		w, fake, from := begin(t, Options{})
		exchange(w, fake, 1, opSetAuth, 0)
		fake.Advance(2 * time.Second)
		exchange(w, fake, 2, opSync, 0)
		exchange(w, fake, 3, opMulti, 0)
		if from() != 0 {
			t.Errorf("it counts from %v, want 0: a server answers credentials without noting the session", from())
		}
	})
	t.Run("a write that failed does not", func(t *testing.T) {
		w, fake, from := begin(t, Options{})
		fake.Advance(390 * time.Millisecond)
		ping(w, fake)
		fake.Advance(2 * time.Second)
		exchange(w, fake, 1, opSync, -101)
		exchange(w, fake, 2, opMulti, -101)
		exchange(w, fake, 3, opMulti, 0)
		fake.Advance(10 * time.Millisecond)
		if from() != 0 {
			t.Errorf("it counts from %v, want 0", from())
		}
	})
	t.Run("without heartbeats a ping does", func(t *testing.T) {
		w, fake, from := begin(t, Options{Heartbeat: -1})
		fake.Advance(390 * time.Millisecond)
		ping(w, fake)
		if from() != 500*time.Millisecond {
			t.Errorf("it counts from %v, want 500ms, the ping's sending", from())
		}
	})
	t.Run("an old connection does not", func(t *testing.T) {
		w, fake, from := begin(t, Options{Heartbeat: -1})
		fake.Advance(390 * time.Millisecond)
		w.link.wire = newWire(nil, w.link, time.Second)
		ping(w, fake)
		if from() != 0 {
			t.Errorf("it counts from %v, want 0", from())
		}
	})
	t.Run("another session ends the first, and a refusal does", func(t *testing.T) {
		for _, next := range []int64{session + 1, 0} {
			w, _, _ := begin(t, Options{})
			old := w.link.current()
			again := newWire(nil, w.link, time.Second)
			again.noteRequest(connectRequest())
			again.scan(connectResponse(4000, next))
			if old.lease.Live() || w.link.current() == old {
				t.Errorf("after session %d the old one is live", next)
			}
			if (next != 0) != (w.link.current() != nil) {
				t.Errorf("after session %d the present one is %+v", next, w.link.current())
			}
		}
	})
	t.Run("the same session goes on, from the new request on, once a write has succeeded", func(t *testing.T) {
		w, fake, from := begin(t, Options{})
		old := w.link.current()
		fake.Advance(time.Second)
		again := newWire(nil, w.link, time.Second)
		again.noteRequest(connectRequest())
		fake.Advance(50 * time.Millisecond)
		again.scan(connectResponse(4000, session))
		ping(again, fake)
		if w.link.current() != old || from() != 0 {
			t.Errorf("session %+v counts from %v, want the same from still 0", w.link.current(), from())
		}
		exchange(again, fake, 1, opMulti, 0)
		if from() != 1100*time.Millisecond {
			t.Errorf("it counts from %v, want 1.1s", from())
		}
	})
	t.Run("without heartbeats the same session goes on at once", func(t *testing.T) {
		w, fake, from := begin(t, Options{Heartbeat: -1})
		fake.Advance(time.Second)
		again := newWire(nil, w.link, time.Second)
		again.noteRequest(connectRequest())
		again.scan(connectResponse(4000, session))
		if from() != 1100*time.Millisecond {
			t.Errorf("it counts from %v, want 1.1s", from())
		}
	})
}

// TestResumedWithAnotherTimeout tests the cure of hazard Z15: the timeout of a
// session is negotiated again whenever it is resumed.
func TestResumedWithAnotherTimeout(t *testing.T) {
	const session = 7
	resume := func(l *link, fake *stillClock, timeout time.Duration) *wire {
		w := newWire(&scripted{}, l, time.Second)
		l.wire = w
		w.noteRequest(connectRequest())
		fake.Advance(100 * time.Millisecond)
		w.scan(connectResponse(int32(timeout.Milliseconds()), session))
		return w
	}
	begin := func(t *testing.T) (*link, *stillClock, func() time.Duration) {
		l, fake := testLink(t, Options{})
		resume(l, fake, 20*time.Second)
		return l, fake, func() time.Duration { return l.current().lease.Deadline().Sub(fake.now.Mono) }
	}
	t.Run("shorter: the end comes nearer at once", func(t *testing.T) {
		l, fake, left := begin(t)
		fake.Advance(5 * time.Second)
		w := resume(l, fake, 4*time.Second)
		if want := 3700 * time.Millisecond; left() != want { // since the request, less a twentieth
			t.Errorf("%v left, want %v", left(), want)
		}
		if l.times.Session != 4*time.Second || l.current().times().Session != 4*time.Second || w.silence != 2*time.Second {
			t.Errorf("timeouts %v and %v, silence %v", l.times.Session, l.current().times().Session, w.silence)
		}
		if w.trust.window != 1125*time.Millisecond {
			t.Errorf("window %v", w.trust.window)
		}
		fake.Advance(time.Second)
		w.noteRequest(clientRequest(1, opMulti, "/x"))
		w.scan(reply(1, 1, 0))
		if want := 2700 * time.Millisecond; left() != want { // it counts from the resumption of the session
			t.Errorf("%v left after a write, want %v", left(), want)
		}
	})
	t.Run("shorter: an end that is near is not moved away", func(t *testing.T) {
		l, fake, left := begin(t)
		fake.Advance(17 * time.Second)
		before := left()
		resume(l, fake, 4*time.Second)
		if want := before - 100*time.Millisecond; left() != want {
			t.Errorf("%v left, want %v", left(), want)
		}
	})
	t.Run("longer again: the lease goes by the shortest", func(t *testing.T) {
		l, fake, left := begin(t)
		resume(l, fake, 10*time.Second)
		fake.Advance(time.Second)
		w := resume(l, fake, 12*time.Second)
		w.noteRequest(clientRequest(1, opMulti, "/x"))
		w.scan(reply(1, 1, 0))
		if want := 9400 * time.Millisecond; left() != want {
			t.Errorf("%v left, want %v", left(), want)
		}
		if l.times.Session != 12*time.Second || l.current().times().Session != 10*time.Second || w.silence != 5*time.Second {
			t.Errorf("timeouts %v and %v, silence %v", l.times.Session, l.current().times().Session, w.silence)
		}
		if want := 3375 * time.Millisecond; w.trust.window != want { // of twelve: the leader's tick may be six
			t.Errorf("window %v, want %v", w.trust.window, want)
		}
	})
	t.Run("much longer: a new session is asked for", func(t *testing.T) {
		l, fake, _ := begin(t)
		l.opts.SessionTimeout = 20 * time.Second
		asks := func() (timeout time.Duration, sessionID int64, password byte) {
			conn := &scripted{}
			w := newWire(conn, l, time.Second)
			request := frame(int32(0), int64(0), int32(4000), int64(session), string(make([]byte, 16)))
			if _, err := w.Write(request); err != nil {
				t.Fatal(err)
			}
			return time.Duration(binary.BigEndian.Uint32(conn.out[16:])) * time.Millisecond, int64(binary.BigEndian.Uint64(conn.out[20:])), conn.out[32]
		}
		w := resume(l, fake, 30*time.Second)
		if timeout, id, password := asks(); timeout != 4*time.Second || id != session || password != 0 {
			t.Errorf("asks for session %d, %v, password %d: a bit longer is no reason", id, timeout, password)
		}
		if l.present() != w {
			t.Error("the connection is dropped")
		}
		resume(l, fake, 31*time.Second)
		if _, id, password := asks(); id != session || password == 0 {
			t.Errorf("asks for session %d, password %d: the server would resume it", id, password)
		}
		if l.present() != nil {
			t.Error("the connection is kept")
		}
	})
	t.Run("a new session is asked to last as long as the options say", func(t *testing.T) {
		l, _ := testLink(t, Options{SessionTimeout: 20 * time.Second})
		conn := &scripted{}
		request := frame(int32(0), int64(0), int32(4000), int64(0), string(make([]byte, 16)))
		if _, err := newWire(conn, l, time.Second).Write(request); err != nil {
			t.Fatal(err)
		}
		if got := binary.BigEndian.Uint32(conn.out[16:]); got != 20_000 || binary.BigEndian.Uint32(request[16:]) != 4000 {
			t.Errorf("%d ms are asked for", got)
		}
	})
}

// deadlines records the read deadlines.
type deadlines struct {
	net.Conn
	last time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error { d.last = t; return nil }

// TestSilence: the client leaves a silent server while there is time to find another;
// go-zookeeper alone would wait for 6.67 session timeouts.
func TestSilence(t *testing.T) {
	l, _ := testLink(t, Options{})
	conn := &deadlines{}
	w := newWire(conn, l, time.Second)
	now := time.Now()
	within := func(what string, most time.Duration) {
		t.Helper()
		if left := conn.last.Sub(now); left > most+10*time.Second || conn.last.IsZero() {
			t.Errorf("%s: read deadline in %v, want at most %v", what, left, most)
		}
	}
	_ = w.SetReadDeadline(now.Add(400 * time.Second)) // 6.67 times a minute
	within("first reply", time.Second)
	w.noteRequest(connectRequest())
	w.scan(connectResponse(60_000, 7))
	_ = w.SetReadDeadline(now.Add(time.Hour))
	within("later replies", 30*time.Second)
	set := conn.last
	_ = w.SetReadDeadline(time.Time{})
	if conn.last != set {
		t.Error("the limit is lifted in the middle of a frame")
	}
	_ = w.SetReadDeadline(now.Add(time.Millisecond))
	if want := now.Add(time.Millisecond); conn.last != want {
		t.Error("a nearer deadline is not respected")
	}
}

func TestDialDelay(t *testing.T) {
	for _, timeout := range []time.Duration{time.Millisecond, 400 * time.Millisecond, 10 * time.Second, 24 * time.Hour} {
		last, total := time.Duration(0), time.Duration(0)
		for failures := 1; failures < 100_000; failures = failures*2 + 1 {
			delay := dialDelay(failures, (&Options{}).times(timeout).Redial)
			if delay < last || delay <= 0 || delay > time.Second || delay > max(timeout/10, 20*time.Millisecond) {
				t.Fatalf("after %d failures, timeout %v: %v, after %v before", failures, timeout, delay, last)
			}
			last = delay
		}
		for failures := 1; failures <= 5; failures++ {
			total += dialDelay(failures, (&Options{}).times(timeout).Redial)
		}
		if timeout >= 400*time.Millisecond && total > timeout/2 {
			t.Errorf("timeout %v: five tries take %v", timeout, total)
		}
	}
}

func TestRing(t *testing.T) {
	closing, stop := context.WithCancel(context.Background())
	r := &ring{closing: closing}
	if err := r.Init([]string{"a:1", "b:1", "c:1"}); err != nil || r.Len() != 3 {
		t.Fatal(err, r.Len())
	}
	var got []string
	for range 7 {
		server, over := r.Next()
		if over {
			t.Error("a round is over, which would make go-zookeeper wait for a second")
		}
		got = append(got, server)
		r.Connected()
	}
	if want := []string{"a:1", "b:1", "c:1", "a:1", "b:1", "c:1", "a:1"}; !slices.Equal(got, want) {
		t.Errorf("servers %q, want %q", got, want)
	}
	stop()
	if _, over := r.Next(); !over {
		t.Error("no round is over while closing, so go-zookeeper does not end")
	}
}
