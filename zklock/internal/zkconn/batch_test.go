package zkconn

import (
	"testing"

	"github.com/go-zookeeper/zk"
)

// TestUsableIn: go-zookeeper gets no write while the connection is down, or in another session (hazard Z30).
func TestUsableIn(t *testing.T) {
	l, _ := testLink(t, Config{})
	l.session, l.conn = testSession(1), new(zk.Conn)
	for _, c := range []struct {
		sess       *Session
		up, usable bool
	}{{l.session, true, true}, {l.session, false, false}, {testSession(2), true, false}} {
		l.isOpen = c.up
		if got := l.usableIn(c.sess); (got != nil) != c.usable {
			t.Errorf("open %v, session %d: usable %v", c.up, c.sess.ID, got != nil)
		}
	}
}
