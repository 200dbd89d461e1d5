package zkconn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
)

// slowOwner takes a while to act on what it hears.
type slowOwner struct{ acted zk.EventType }

func (o *slowOwner) Read(Znode) {}

func (o *slowOwner) Fired(why zk.EventType, _ error) {
	time.Sleep(time.Second)
	o.acted = why
}

// Z17. The client acts on an event of its own node before the reader of the connection takes the next message.
func TestOwnerActsAtOnce(t *testing.T) {
	for _, why := range []zk.EventType{zk.EventNodeDeleted, zk.EventNodeDataChanged} {
		synctest.Test(t, func(t *testing.T) {
			l, _ := testLink(t, Config{})
			l.tasks = testTasks(t)
			o := &slowOwner{}
			ws := l.watches
			w := &Watch{Path: "/a", Read: make(chan struct{}), Gone: make(chan struct{}), owner: o}
			close(w.Read)
			ws.byPath[watchKey{w.Path, w.Kind}] = w
			ws.fire(w.Path, why)
			if o.acted != why {
				t.Errorf("%v: not acted on yet", why)
			}
			synctest.Wait()
		})
	}
}
