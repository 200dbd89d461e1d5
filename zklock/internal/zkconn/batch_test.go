package zkconn

import (
	"errors"
	"testing"
	"time"

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
		if w := (&Write{sess: c.sess, path: "/q/n", Done: make(chan Outcome, 1)}); !c.usable {
			go l.batches.single(w)
			select {
			case o := <-w.Done:
				if !errors.Is(o.Err, zk.ErrNoServer) {
					t.Errorf("open %v, session %d: %v", c.up, c.sess.ID, o.Err)
				}
			case <-time.After(time.Minute):
				t.Errorf("open %v, session %d: the write is sent", c.up, c.sess.ID)
			}
		}
	}
}

// TestBatches_TwoSessionsOrOneParent_NotGrouped: a transaction has the writes of one session, and one creation per parent (hazard Z30).
func TestBatches_TwoSessionsOrOneParent_NotGrouped(t *testing.T) {
	one, two := testSession(1), testSession(2)
	b := &batches{flights: 1, waiting: []*Write{{sess: one}, {sess: two}, {sess: one}}}
	for _, want := range []struct {
		sess *Session
		n    int
	}{{one, 2}, {two, 1}, {nil, 0}} {
		group := b.next()
		if len(group) != want.n || want.n > 0 && group[want.n-1].sess != want.sess {
			t.Errorf("%d writes, want %d of one session", len(group), want.n)
		}
	}
	l, _ := testLink(t, Config{})
	l.batches.flights, l.batches.waiting = maxFlights, []*Write{{creates: true, path: "/q/one"}}
	w := &Write{creates: true, path: "/q/two", Done: make(chan Outcome, 1)}
	if l.batches.do(w); len(l.batches.waiting) > 1 || len(w.Done) == 0 {
		t.Error("two creations below one parent are grouped")
	}
}
