package zklock

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
)

// TestMissing tests the cure of hazard Z18: only events that this client received in the
// node's own session say why the node is gone.
func TestMissing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		writes, found int
		over          bool // the session
		want          error
	}{
		{"nothing was told", 0, 0, false, holdfast.ErrBroken},
		{"it was written to", 1, 0, false, holdfast.ErrReclaimed},
		{"it was written to, and seen after that", 1, 1, false, holdfast.ErrBroken},
		{"nothing was told, in the next session", 0, 0, true, holdfast.ErrSessionExpired},
		{"it was written to, in the next session", 1, 0, true, holdfast.ErrSessionExpired},
	} {
		l, _ := testLink(t, Options{})
		sess := testSession(0)
		l.conn, l.session = &zk.Conn{}, sess
		if c.over {
			l.session = testSession(0)
		}
		o := &own{engine: &engine{link: l}, sess: sess, writes: c.writes, found: c.found}
		if err := o.missing(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
