package zkconn

import (
	"context"
	"io"
	"log"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
)

// Each connection has a zk.Conn of its own, which ends with the connection. So go-zookeeper never reconnects: it repeats no
// credentials, renews no watches, and never runs a request in another session.
//
// The link assumes this of go-zookeeper 1.0.4, beyond its documentation. TestGoZooKeeper has a case for each, by the same name.
//
//	frames    It writes each frame by one Write. See wire.go.
//	session   It reports the session before it sends a request in it. See Link.visit.
//	answers   When a connection ends, it fails all requests that it has sent there; when it is closed, all that it was handed.
//	order     It reports an event before it answers what was answered after it. See Owner.
//	rounds    It looks whether it is to be closed only between two rounds of servers. See onlyServer.
//	closing   It asks a server to end the session when it is closed, and sends nothing after that. See Link.endOn.
//	unnamed   It makes an error with a fixed text of a code that it does not know. See StepError.

// start hands a connection to a new zk.Conn, which sends the request for a session.
func (l *Link) start(w *Wire) {
	provider := &onlyServer{again: make(chan struct{}), quit: make(chan struct{})}
	conn, events, _ := zk.Connect( // which fails only without a server
		[]string{w.server.at}, l.config.SessionTimeout,
		zk.WithDialer(func(string, string, time.Duration) (net.Conn, error) { return w, nil }),
		zk.WithHostProvider(provider),
		zk.WithEventCallback(func(e zk.Event) { l.onEvent(w, e) }),
		zk.WithLogger(log.New(io.Discard, "", 0)),
		zk.WithLogInfo(false),
	)
	w.conn = conn
	l.tasks.Go(func(context.Context) {
		for again, open := provider.again, true; open; {
			select {
			case <-again:
				again = nil
				close(provider.quit)
				w.closeConn()
			case _, open = <-events: // onEvent has seen it
			}
		}
	})
}

// closeConn closes the zk.Conn, which asks the server to end the session. Only the first call does that, and waits for the reply.
func (w *Wire) closeConn() {
	if w.closed.CompareAndSwap(false, true) {
		w.conn.Close()
	}
}

// onEvent takes an event of go-zookeeper. It runs on go-zookeeper's goroutines, sometimes with its locks held, so it neither
// blocks nor calls back.
func (l *Link) onEvent(w *Wire, event zk.Event) {
	switch {
	case event.Type == zk.EventSession && event.State == zk.StateHasSession:
		close(w.hasSession)
	case event.Type == zk.EventSession && event.State == zk.StateExpired:
		_ = w.Close() // go-zookeeper leaves it open
	case event.Type != zk.EventSession && event.Type != zk.EventNotWatching && l.Wire() == w:
		l.watches.fire(event.Path, event.Type)
	}
}

// onlyServer is a zk.HostProvider that has go-zookeeper connect once.
type onlyServer struct {
	used  bool
	asked bool          // again is closed
	again chan struct{} // closed when go-zookeeper wants to connect again
	quit  chan struct{} // closed when the zk.Conn is about to be closed
}

func (o *onlyServer) Init([]string) error { return nil }
func (o *onlyServer) Len() int            { return 1 }
func (o *onlyServer) Connected()          {}

// Next returns the server once. After that it waits until the zk.Conn is closed, and ends a round: go-zookeeper then looks whether
// it is closed, and fails what it was handed and has not sent. Without the pause, zk.Conn.Close could hand over its request after
// that, and would wait for the reply for a second.
func (o *onlyServer) Next() (server string, roundOver bool) {
	if !o.used {
		o.used = true
		return "", false
	}
	if !o.asked { // it asks once more if the process stands still before it closes the zk.Conn
		o.asked = true
		close(o.again)
	}
	<-o.quit
	time.Sleep(handTime)
	return "", true
}

// handTime is long for what go-zookeeper does before it waits, in zk.Conn.Close and when it has a session.
const handTime = 5 * time.Millisecond
