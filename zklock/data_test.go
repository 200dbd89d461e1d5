package zklock

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
	"github.com/holdfast-go/holdfast/zklock/internal/zktest"
)

// TestMissingAfterOwnWrites tests hazard Z33: a write that the client itself has made, or
// may have made, is not the sign of a reclaim; one that it knows to be another's is.
func TestMissingAfterOwnWrites(t *testing.T) {
	t.Parallel()
	e, _ := testEngine(t, &zktest.NodeServer{})
	for _, c := range []struct {
		name     string
		watched  int32 // the version on which the watch was set that has reported a write
		unread   bool  // the read that set it has not been answered
		own      []int32
		outcomes []error
		want     error
	}{
		{name: "no own write", watched: 3, want: holdfast.ErrReclaimed},
		{"an own write", 3, false, []int32{3}, []error{nil}, holdfast.ErrBroken},
		{"of unknown outcome", 3, false, []int32{3}, []error{zk.ErrConnectionClosed}, holdfast.ErrBroken},
		{"refused", 3, false, []int32{3}, []error{zk.ErrBadVersion}, holdfast.ErrReclaimed},
		{"refused, the node is gone", 3, false, []int32{3}, []error{zk.ErrNoNode}, holdfast.ErrReclaimed},
		{"lost, and repeated", 3, false, []int32{3, 3}, []error{zk.ErrConnectionClosed, nil}, holdfast.ErrBroken},
		{"several, the watch was set before the first", 3, false, []int32{3, 4, 5}, []error{nil, nil, nil}, holdfast.ErrBroken},
		{"several, the watch was set after the last", 6, false, []int32{3, 4, 5}, []error{nil, nil, nil}, holdfast.ErrReclaimed},
		{"another's, then own ones", 3, false, []int32{3, 4}, []error{zk.ErrBadVersion, nil}, holdfast.ErrReclaimed},
		{"own ones around another's", 4, false, []int32{3, 5}, []error{nil, nil}, holdfast.ErrReclaimed},
		{"own, but nobody knows of which version", 3, true, []int32{3}, []error{nil}, holdfast.ErrReclaimed},
	} {
		w := &zkconn.Watch{Read: make(chan struct{}), Node: zkconn.Znode{Stat: &zk.Stat{Version: c.watched}}}
		if !c.unread {
			close(w.Read)
		}
		reclaims := []string{CuratorNames.form().prefix((&engine{mark: "00000000"}).markedGUID("worker"), driver.Mode{})}
		o := &ownNode{engine: e, sess: e.link.Session(), owner: "worker"}
		queue := &siblings{done: make(chan struct{}), names: reclaims}
		close(queue.done)
		for i, version := range c.own {
			o.writing(version)
			o.wrote(version, c.outcomes[i])
		}
		o.unseen = &written{reported: w, names: queue}
		if err := o.whyGone(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
