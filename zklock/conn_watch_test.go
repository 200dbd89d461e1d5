package zklock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
)

// slowOwner takes a while to act on what it hears.
type slowOwner struct{ acted zk.EventType }

func (o *slowOwner) read(*watch) {}

func (o *slowOwner) fired(why zk.EventType) {
	time.Sleep(time.Second)
	o.acted = why
}

// Z17. What the reader of a connection hears of an own node has been acted on before it takes the next message from there.
func TestOwnerActsAtOnce(t *testing.T) {
	for _, why := range []zk.EventType{zk.EventNodeDeleted, zk.EventNodeDataChanged} {
		synctest.Test(t, func(t *testing.T) {
			l, _ := testLink(t, Options{})
			l.tasks = testTasks(t)
			ws, o := newWatches(l), &slowOwner{}
			w := &watch{watchKey: watchKey{"/a", watchData}, read: make(chan struct{}), gone: make(chan struct{}), owner: o}
			close(w.read)
			ws.byPath[w.watchKey] = w
			ws.fire(w.path, why)
			if o.acted != why {
				t.Errorf("%v: not acted on yet", why)
			}
			synctest.Wait()
		})
	}
}
