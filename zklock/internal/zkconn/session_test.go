package zkconn

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/zklock/internal/zktest"
)

// TestAskToResume tests what the client says when it connects. Z13: as long as its session may be there, that it has seen what
// it has, so that a server which has seen less hangs up.
func TestAskToResume(t *testing.T) {
	const seen, id = int64(77), int64(5)
	password := []byte("0123456789abcdef")
	asked := func(zxid int64, timeout int32, session int64, password []byte) []byte {
		return zktest.Frame(int32(0), zxid, timeout, session, string(password))
	}
	for name, c := range map[string]struct {
		session  int64 // that go-zookeeper asks for
		refusals int   // by servers, of which there are three
		down     time.Duration
		want     []byte
	}{
		"a new session":                  {session: 0, want: asked(seen, 10_000, 0, password)},
		"to resume one":                  {session: id, want: asked(seen, 4000, id, password)},
		"one that may be there":          {session: id, refusals: 9, down: 20 * time.Second, want: asked(seen, 4000, id, password)},
		"not all have turned it away":    {session: id, refusals: 5, down: time.Minute, want: asked(seen, 4000, id, password)},
		"one that nobody has kept alive": {session: id, refusals: 6, down: 21 * time.Second, want: asked(0, 4000, id, password)},
		"one that is to be over":         {session: 6, want: asked(0, 4000, 6, append([]byte{'0' ^ 0xff}, password[1:]...))},
		"one of which others know it":    {session: 8, want: asked(0, 4000, 8, append([]byte{'0' ^ 0xff}, password[1:]...))},
	} {
		l, clock := testLink(t, Config{SessionTimeout: 10 * time.Second})
		l.session, l.servers, l.refusals, l.toEnd = testSession(id), make([]*server, 3), c.refusals, map[int64]*sessionToEnd{6: {}, 8: {over: true}}
		l.session.shortest.Store(standard(10 * time.Second))
		l.joinedLast = clock.Time
		clock.Time = clock.Time.Add(c.down)
		before := asked(seen, 4000, c.session, password)
		given := bytes.Clone(before)
		if got := l.rewriteConnect(given); !bytes.Equal(got, c.want) {
			t.Errorf("%s:\n%x, want\n%x", name, got, c.want)
		}
		if !bytes.Equal(given, before) {
			t.Errorf("%s: the caller's bytes were changed", name)
		}
	}
}

// TestGivenAndLost: a session that was given a moment ago may be there, though no call was made in it and all servers have turned
// the client away since.
func TestGivenAndLost(t *testing.T) {
	l, clock := testLink(t, Config{})
	l.servers = make([]*server, 3)
	w := settledWire(nil, l, time.Second)
	l.connected(w)
	w.noteRequest(zktest.ConnectRequest())
	if err := w.scan(zktest.ConnectResponse(10_000, 5)); err != nil {
		t.Fatal(err)
	}
	l.lost(w, net.ErrClosed)
	l.refusals = 2 * len(l.servers)
	request := zktest.Frame(int32(0), int64(77), int32(10_000), int64(5), string(make([]byte, 16)))
	for _, over := range []bool{false, true} {
		if forgets := !bytes.Equal(l.rewriteConnect(request), request); forgets != over {
			t.Errorf("after %v it says that it has seen nothing: %v", clock.Time.Mono.Sub(zktest.At(0).Mono), forgets)
		}
		clock.Advance(21 * time.Second)
	}
}
