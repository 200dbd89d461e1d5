package zklock

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
)

// TestNotSentInAnotherSession tests hazard Z30: go-zookeeper is handed no write while the connection is down, or when the
// session is another one already.
func TestNotSentInAnotherSession(t *testing.T) {
	t.Parallel()
	server := &nodeServer{}
	l := server.link(t)
	present := l.session
	var want []string
	for _, c := range []struct {
		name string
		sess *session
		up   bool
	}{
		{"in-its-session", present, true},
		{"down", present, false},
		{"in-the-next-session", testSession(present.id + 1), true},
	} {
		path, sent := "/q/"+c.name, c.up && c.sess == present
		l.up = c.up
		w := newWrite(c.sess, path)
		l.batches.single(w)
		if o := <-w.done; errors.Is(o.err, zk.ErrNoServer) == sent {
			t.Errorf("%s: %v", c.name, o.err)
		}
		if sent {
			want = append(want, path)
		}
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if !slices.Equal(server.deleted, want) {
		t.Errorf("sent: %q, want %q", server.deleted, want)
	}
}
