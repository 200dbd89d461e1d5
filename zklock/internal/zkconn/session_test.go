package zkconn

import (
	"bytes"
	"testing"
	"time"
)

// TestAskToResume tests what the client says when it connects. Z13: as long as its session may be there, that it has seen what
// it has, so that a server which has seen less hangs up.
func TestAskToResume(t *testing.T) {
	const seen, id = int64(77), int64(5)
	password := []byte("0123456789abcdef")
	asked := func(zxid int64, timeout int32, session int64, password []byte) []byte {
		return frame(int32(0), zxid, timeout, session, string(password))
	}
	for name, c := range map[string]struct {
		session  int64 // that there is
		refusals int   // by servers, of which there are three
		down     time.Duration
		want     []byte
	}{
		"a new session":                 {want: asked(seen, 10_000, 0, make([]byte, 16))},
		"to resume one":                 {session: id, want: asked(seen, 4000, id, password)},
		"one that may be there":         {session: id, refusals: 9, down: 8 * time.Second, want: asked(seen, 4000, id, password)},
		"not all have turned it away":   {session: id, refusals: 5, down: time.Minute, want: asked(seen, 4000, id, password)},
		"one that no server kept alive": {session: id, refusals: 6, down: 9 * time.Second, want: asked(0, 4000, id, password)},
	} {
		l, clock := testLink(t, Config{SessionTimeout: 10 * time.Second})
		if c.session != 0 {
			l.session = testSession(c.session)
			l.session.shortest.Store(standard(4 * time.Second))
			l.session.password = password
		}
		l.servers, l.refusals = make([]*server, 3), c.refusals
		l.lastZxid = seen
		l.usedLast = clock.Time
		clock.Advance(c.down)
		if got := l.connectRequest(); !bytes.Equal(got, c.want) {
			t.Errorf("%s:\n%x, want\n%x", name, got, c.want)
		}
	}
}
