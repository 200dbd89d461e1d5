package zkconn

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// clientRequest is a request for one znode; a transaction begins with its creation.
func clientRequest(xid, op int32, path string) []byte {
	if op == opMulti {
		return frame(xid, op, int32(opCreate), []byte{0}, int32(-1), path, "data")
	}
	return frame(xid, op, path, "data", int32(1), int32(31))
}

// TestWhatRenews tests hazard Z5 at the wire: replies extend the lease only as far as trust allows.
func TestWhatRenews(t *testing.T) {
	const session, timeout = 7, 4 * time.Second
	begin := func(t *testing.T, config Config) (*Wire, *stillClock, func() time.Duration) {
		l, fake := testLink(t, config)
		w := newestWire(l, &scripted{}, time.Second)
		opened := l.host.Now()
		w.Write(connectRequest())
		fake.Advance(100 * time.Millisecond)
		feed(w, connectResponse(int32(timeout.Milliseconds()), session))
		margin := l.host.Margin(timeout)
		return w, fake, func() time.Duration { // from when on the lease counts
			return l.Session().Lease.Deadline().Sub(opened.Mono) - timeout + margin
		}
	}
	const ping = 11
	type step struct { // 10 ms later, and answered after 10 ms more
		wait time.Duration
		op   int32
		err  int32
	}
	play := func(w *Wire, fake *stillClock, steps ...step) {
		for i, s := range steps {
			request, xid := clientRequest(int32(i+1), s.op, "/x"), int32(i+1)
			if s.op == ping {
				request, xid = frame(int32(xidPing), s.op), xidPing
			}
			fake.Advance(s.wait + 10*time.Millisecond)
			w.noteRequest(request)
			fake.Advance(10 * time.Millisecond)
			feed(w, reply(xid, 1, s.err))
		}
	}
	first := step{wait: 390 * time.Millisecond, op: ping} // sent at 500 ms, answered at 510
	type test struct {
		every bool // no heartbeats: any answer renews
		steps []step
		want  time.Duration
	}
	tests := map[string]test{
		"the session itself, from its request on": {},
		"credentials are no beginning: a server answers them without noting the session": {
			steps: []step{{op: opSetAuth}, {wait: 2 * time.Second, op: opSync}, {op: opMulti}},
		},
		"a write that failed does not": {
			steps: []step{first, {wait: 2 * time.Second, op: opSync, err: -101}, {op: opMulti, err: -101}, {op: opMulti}},
		},
		"without heartbeats a ping does":                            {every: true, steps: []step{first}, want: 500 * time.Millisecond},
		"without heartbeats the reply of an ended session does not": {every: true, steps: []step{{op: opSync, err: codeSessionExpired}}},
	}
	for _, op := range []int32{3, 4, 8, 9, 12, 100, 101} { // reads, sync, auth, watches
		tests[fmt.Sprintf("operation %d and pings do not", op)] = test{
			steps: slices.Repeat([]step{{wait: 700 * time.Millisecond, op: ping}, {op: op}}, 5),
		}
	}
	for _, op := range []int32{opCreate, opDelete, opSetData, opMulti, opCreateContainer} {
		for _, before := range []int32{opSync, opMulti} {
			// The first is sent at 1625 ms, less than a window after the ping. When the second is answered,
			// the table is on its way, and the ping's touch need not have been collected.
			steps := []step{first, {wait: 1105 * time.Millisecond, op: before}, {op: op}, {op: op}}
			tests[fmt.Sprintf("operation %d, after %d, does not renew what need not have been collected", op, before)] = test{steps: steps[:3]}
			tests[fmt.Sprintf("operation %d, after %d, renews what came before", op, before)] = test{steps: steps, want: 500 * time.Millisecond}
		}
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			w, fake, from := begin(t, Config{AnyAnswer: c.every})
			play(w, fake, c.steps...)
			if from() != c.want {
				t.Errorf("it counts from %v after the session's request, want %v", from(), c.want)
			}
		})
	}
	t.Run("an old connection does not", func(t *testing.T) {
		w, fake, from := begin(t, Config{AnyAnswer: true})
		newestWire(w.link, &scripted{}, time.Second)
		play(w, fake, first, step{op: opSync})
		if from() != 0 || w.link.lastZxid != 0 {
			t.Errorf("it counts from %v, with zxid %d, want 0", from(), w.link.lastZxid)
		}
	})
	t.Run("another session ends the first, and a refusal does", func(t *testing.T) {
		for _, next := range []int64{session + 1, 0} {
			w, _, _ := begin(t, Config{})
			old := w.link.Session()
			again := newestWire(w.link, &scripted{}, time.Second)
			again.Write(connectRequest())
			feed(again, connectResponse(4000, next))
			if old.Lease.Live() || w.link.Session() == old {
				t.Errorf("after session %d the old one is live", next)
			}
		}
	})
	t.Run("no session begins while the client closes", func(t *testing.T) {
		l, _ := testLink(t, Config{})
		if err := l.EndSession(t.Context()); err != nil {
			t.Error(err)
		}
		w := newestWire(l, &scripted{}, time.Second)
		w.Write(connectRequest())
		if err := feed(w, connectResponse(4000, session)); err == nil || l.Session() != nil {
			t.Errorf("%v, session %v", err, l.Session())
		}
	})
	t.Run("the same session goes on, from the new request on, once a write has succeeded", func(t *testing.T) {
		w, fake, from := begin(t, Config{})
		old := w.link.Session()
		fake.Advance(time.Second)
		again := newestWire(w.link, &scripted{}, time.Second)
		again.Write(connectRequest())
		fake.Advance(50 * time.Millisecond)
		feed(again, connectResponse(4000, session))
		play(again, fake, step{op: ping})
		if w.link.Session() != old || from() != 0 {
			t.Errorf("session %+v counts from %v, want the same from still 0", w.link.Session(), from())
		}
		play(again, fake, step{op: opMulti})
		if from() != 1100*time.Millisecond {
			t.Errorf("it counts from %v, want 1.1s", from())
		}
	})
	t.Run("without heartbeats the same session goes on at once", func(t *testing.T) {
		w, fake, from := begin(t, Config{AnyAnswer: true})
		fake.Advance(time.Second)
		again := newestWire(w.link, &scripted{}, time.Second)
		again.Write(connectRequest())
		feed(again, connectResponse(4000, session))
		if from() != 1100*time.Millisecond {
			t.Errorf("it counts from %v, want 1.1s", from())
		}
	})
}

// TestRefusedTransactionRenewsNothing tests hazard Z5: a server that refuses a transaction, because the session is being
// ended, for example, says so in the members, with 0 in the header of the reply.
func TestRefusedTransactionRenewsNothing(t *testing.T) {
	for _, test := range []struct {
		name   string
		member int32
		renews bool
	}{{"carried out", opDelete, true}, {"refused", -1, false}} {
		t.Run(test.name, func(t *testing.T) {
			l, fake := testLink(t, Config{})
			w := newestWire(l, &scripted{}, time.Second)
			w.Write(connectRequest())
			fake.Advance(100 * time.Millisecond)
			feed(w, connectResponse(4000, 7))
			before := l.Session().Lease.Deadline()
			exchange := func(xid, op int32, body ...any) {
				fake.Advance(10 * time.Millisecond)
				w.noteRequest(clientRequest(xid, op, "/x"))
				fake.Advance(10 * time.Millisecond)
				feed(w, reply(xid, 1, 0, body...))
			}
			created := &creation{sent: func() {}}
			l.creations["/x"] = created
			exchange(1, 4)
			fake.Advance(2 * time.Second)
			exchange(2, opSync)
			exchange(3, opMulti, test.member, []byte{0}, int32(-112), int32(-112), int32(-1), []byte{1}, int32(-1))
			if after := l.Session().Lease.Deadline(); after.After(before) != test.renews {
				t.Errorf("the lease is renewed by %v", after.Sub(before))
			}
			if created := created.czxid != 0; created != test.renews {
				t.Errorf("created: %v", created)
			}
		})
	}
}

// TestResumedWithAnotherTimeout tests hazard Z15: a session that is resumed negotiates its timeout again.
func TestResumedWithAnotherTimeout(t *testing.T) {
	const session = 7
	resume := func(l *Link, fake *stillClock, timeout time.Duration) *Wire {
		w := newestWire(l, &scripted{}, time.Second)
		w.Write(connectRequest())
		fake.Advance(100 * time.Millisecond)
		feed(w, connectResponse(int32(timeout.Milliseconds()), session))
		return w
	}
	begin := func(t *testing.T) (*Link, *stillClock, func() time.Duration) {
		l, fake := testLink(t, Config{})
		resume(l, fake, 20*time.Second)
		return l, fake, func() time.Duration { return l.Session().Lease.Deadline().Sub(fake.Time.Mono) }
	}
	t.Run("shorter: the end comes nearer at once", func(t *testing.T) {
		l, fake, left := begin(t)
		fake.Advance(5 * time.Second)
		w := resume(l, fake, 4*time.Second)
		if want := 3700 * time.Millisecond; left() != want { // since the request, less a twentieth
			t.Errorf("%v left, want %v", left(), want)
		}
		if l.times.Session != 4*time.Second || l.Session().Times().Session != 4*time.Second || w.silence != 2*time.Second {
			t.Errorf("timeouts %v and %v, silence %v", l.times.Session, l.Session().Times().Session, w.silence)
		}
		if w.trust.window != 1125*time.Millisecond {
			t.Errorf("window %v", w.trust.window)
		}
		fake.Advance(time.Second)
		w.noteRequest(clientRequest(1, opMulti, "/x"))
		feed(w, reply(1, 1, 0))
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
		feed(w, reply(1, 1, 0))
		if want := 9400 * time.Millisecond; left() != want {
			t.Errorf("%v left, want %v", left(), want)
		}
		if l.times.Session != 12*time.Second || l.Session().Times().Session != 10*time.Second || w.silence != 5*time.Second {
			t.Errorf("timeouts %v and %v, silence %v", l.times.Session, l.Session().Times().Session, w.silence)
		}
		if want := 3375 * time.Millisecond; w.trust.window != want { // of twelve: the leader's tick may be six
			t.Errorf("window %v, want %v", w.trust.window, want)
		}
	})
	t.Run("much longer: the session is to end", func(t *testing.T) {
		l, fake, _ := begin(t)
		for _, timeout := range []time.Duration{30, 31, 20} {
			if resume(l, fake, timeout*time.Second); l.Session().grown != (timeout != 30) {
				t.Errorf("%d s: to end: %v", timeout, l.Session().grown)
			}
		}
	})
}

// deadlines records the read deadlines.
type deadlines struct {
	scripted
	last time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error { d.last = t; return nil }

// TestSilence: the client leaves a silent server while there is time; go-zookeeper alone would wait far longer.
func TestSilence(t *testing.T) {
	l, _ := testLink(t, Config{})
	conn := &deadlines{}
	w := newestWire(l, conn, time.Second)
	now := time.Now()
	within := func(what string, most time.Duration) {
		t.Helper()
		if left := conn.last.Sub(now); left > most+10*time.Second || conn.last.IsZero() {
			t.Errorf("%s: read deadline in %v, want at most %v", what, left, most)
		}
	}
	_ = w.SetReadDeadline(now.Add(400 * time.Second)) // 6.67 times a minute
	within("first reply", time.Second)
	w.Write(connectRequest())
	feed(w, connectResponse(60_000, 7))
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
			delay := dialDelay(failures, standard(timeout).Redial)
			if delay < last || delay <= 0 || delay > time.Second || delay > max(timeout/10, 20*time.Millisecond) {
				t.Fatalf("after %d failures, timeout %v: %v, after %v before", failures, timeout, delay, last)
			}
			last = delay
		}
		for failures := 1; failures <= 5; failures++ {
			total += dialDelay(failures, standard(timeout).Redial)
		}
		if timeout >= 400*time.Millisecond && total > timeout/2 {
			t.Errorf("timeout %v: five tries take %v", timeout, total)
		}
	}
}
