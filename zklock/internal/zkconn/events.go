package zkconn

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
)

// onEvent takes every event of go-zookeeper: changes of the session's state and
// watches that fired. It is called on go-zookeeper's own goroutines, sometimes
// with its locks held, so it neither blocks nor calls back. (The channel of
// events would be no substitute: it drops what does not fit.)
func (l *Link) onEvent(event zk.Event) {
	switch event.Type {
	case zk.EventNodeCreated, zk.EventNodeDeleted, zk.EventNodeDataChanged, zk.EventNodeChildrenChanged, zk.EventNotWatching:
		l.watches.fire(event.Path, event.Type)
	case zk.EventSession:
		switch event.State {
		case zk.StateHasSession:
			l.opened()
		case zk.StateExpired:
			l.expired()
		case zk.StateDisconnected:
			l.lost(l.Wire(), zk.ErrConnectionClosed) // the wire knows already
		}
	}
}

// reconnectGrace is how long calls wait, after a session was resumed, for
// go-zookeeper to renew its watches: it does so without synchronisation with
// replies (a data race on its last zxid), and at once if it does it at all. The
// wire keeps replies to the application from it for as long. Where it has watches
// to renew, the wait is a longer one, for slow machines: it ends when they are on
// their way.
const reconnectGrace = 10 * time.Millisecond

// opened is called when a session is there and requests may be made.
//
// Where a connection ends before go-zookeeper has sent the renewal of its watches, that is sent on the next one, first and
// perhaps before go-zookeeper has come to the next renewal. So all of them are waited for.
func (l *Link) opened() {
	l.mu.Lock()
	w, t := l.wire, l.times
	l.mu.Unlock()
	if w == nil {
		return
	}
	grace := reconnectGrace
	if l.watches.any() {
		grace = t.Rewatch
		l.renewals.Add(1)
	}
	l.tasks.Go(func(context.Context) {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-w.watchesSet:
		case <-w.dead:
			return
		case <-timer.C:
			l.renewals.Store(0) // if any was to come, it has been sent
		case <-l.closing.Done():
			return
		}
		w.settleOnce.Do(func() { close(w.settled) })
		select {
		case <-l.started: // the first session may be there before go-zookeeper has returned its Conn
		case <-l.closing.Done():
			return
		}
		l.open(w)
	})
}

func (l *Link) open(w *Wire) {
	l.mu.Lock()
	if l.wire != w || l.state != joined || l.session == nil {
		l.mu.Unlock()
		return
	}
	l.enterLocked(open)
	admitted, s := l.admitted, l.session
	l.mu.Unlock()
	if admitted { // a server that demands credentials hangs up on what comes before them
		l.config.Reopened(s)
	}
	l.watches.recheck(w)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wire == w {
		l.looked = w
	}
}
