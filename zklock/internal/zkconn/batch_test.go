package zkconn

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/zklock/internal/zktest"
)

// TestNotSentInAnotherSession tests hazard Z30: go-zookeeper is handed no write while the connection is down, or when the
// session is another one already.
func TestNotSentInAnotherSession(t *testing.T) {
	t.Parallel()
	server := &zktest.NodeServer{}
	l := connected(t, server)
	present := l.Session()
	var want []string
	for _, c := range []struct {
		name string
		sess *Session
		up   bool
	}{
		{"in-its-session", present, true},
		{"down", present, false},
		{"in-the-next-session", testSession(present.ID + 1), true},
	} {
		path, sent := "/q/"+c.name, c.up && c.sess == present
		l.mu.Lock()
		l.isOpen = c.up
		l.mu.Unlock()
		w := newWrite(c.sess, path)
		l.batches.single(w)
		if o := <-w.done; errors.Is(o.Err, zk.ErrNoServer) == sent {
			t.Errorf("%s: %v", c.name, o.Err)
		}
		if sent {
			want = append(want, path)
		}
	}
	if deleted := server.Deleted(); !slices.Equal(deleted, want) {
		t.Errorf("sent: %q, want %q", deleted, want)
	}
}
