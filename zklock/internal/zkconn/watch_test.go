package zkconn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
)

// slowOwner takes a while to act on what it hears.
type slowOwner struct{ acted zk.EventType }

func (o *slowOwner) Read(*Watch) {}

func (o *slowOwner) Fired(why zk.EventType) {
	time.Sleep(time.Second)
	o.acted = why
}

// Z17. What the reader of a connection hears of an own node has been acted on before it takes the next message from there.
func TestOwnerActsAtOnce(t *testing.T) {
	for _, why := range []zk.EventType{zk.EventNodeDeleted, zk.EventNodeDataChanged} {
		synctest.Test(t, func(t *testing.T) {
			l, _ := testLink(t, Config{})
			l.tasks = testTasks(t)
			ws, o := newWatches(l), &slowOwner{}
			w := &Watch{Path: "/a", Read: make(chan struct{}), Gone: make(chan struct{}), owner: o}
			close(w.Read)
			ws.byPath[w.key()] = w
			ws.fire(w.Path, why)
			if o.acted != why {
				t.Errorf("%v: not acted on yet", why)
			}
			synctest.Wait()
		})
	}
}

// Z32. What go-zookeeper renews after a reconnect is known exactly, also while the answer to a read is under way, and where nobody waits
// on a watch any more.
func TestKeptWatches(t *testing.T) {
	l, _ := testLink(t, Config{})
	ws := newWatches(l)
	key := watchKey{"/a", WatchData}
	for _, c := range []struct {
		what string
		do   func()
		any  bool
	}{
		{"nothing has been read", func() {}, false},
		{"a read that fails is under way", func() {
			failed := ws.asks(key)
			if !ws.any() {
				t.Error("none while a read is under way")
			}
			failed(false)
		}, false},
		{"an event comes before the answer is looked at", func() {
			set := ws.asks(key)
			ws.fire(key.path, zk.EventNodeDataChanged)
			set(true)
		}, false},
		{"one is set", func() { ws.asks(key)(true) }, true},
		{"another read fails", func() { ws.asks(key)(false) }, true},
		{"another is set", func() { ws.asks(watchKey{"/b", WatchChildren})(true) }, true},
		{"an event of another kind", func() { ws.fire(key.path, zk.EventNodeChildrenChanged) }, true},
		{"the first fires", func() { ws.fire(key.path, zk.EventNodeDeleted) }, true},
		{"the session ends", func() { ws.fire("/b", zk.EventNotWatching) }, false},
	} {
		if c.do(); ws.any() != c.any {
			t.Errorf("%s: %t", c.what, ws.any())
		}
	}
	if len(ws.kept) > 0 {
		t.Errorf("%d are remembered", len(ws.kept))
	}
}
