package zkconn

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/zklock/internal/zktest"
)

// TestEndOfAnotherSession checks that the end of a session does not count as the end of
// one that was left: the servers keep that one until it expires.
func TestEndOfAnotherSession(t *testing.T) {
	for _, isLeft := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l, _ := testLink(t, Config{})
			l.conn = &zk.Conn{}
			l.quitOnce.Do(func() {}) // it has not been started
			l.names, l.servers, l.times = []string{"server:2181"}, []*server{theServer}, l.config.Times(standardSession)
			l.closing = network.With(t.Context(), func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			before, after := testSession(1), testSession(2)
			l.session = before
			result := make(chan error, 1)
			go func() { result <- l.EndSession(ctx) }()
			synctest.Wait() // it waits for a server
			l.mu.Lock()
			if isLeft {
				l.toEnd[before.ID] = &sessionToEnd{greeting: zktest.ConnectRequest(), timer: zktest.StillTimer{}}
			}
			l.session, l.wire, l.state = after, settledWire(nil, l, time.Second), open
			close(l.wire.closeConfirmed)
			close(l.gate)
			l.mu.Unlock()
			if err := <-result; (err != nil) != isLeft {
				t.Errorf("left %v: %v", isLeft, err)
			}
		})
	}
}

// TestCallsBehindTheEnd: calls that go on while the client closes find no connection without a session, also in the moment in which the
// end of the session is confirmed and the connection has not ended yet.
func TestCallsBehindTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := testLink(t, Config{})
		l.conn = &zk.Conn{}
		l.quitOnce.Do(func() {}) // it has not been started
		l.times = l.config.Times(standardSession)
		l.session = testSession(1)
		result := make(chan error, 1)
		go func() { result <- l.EndSession(t.Context()) }()
		synctest.Wait() // it waits for a server
		present := testSession(2)
		l.mu.Lock()
		l.session, l.wire, l.state = present, settledWire(nil, l, time.Second), open
		close(l.wire.closeConfirmed)
		close(l.gate)
		l.mu.Unlock()
		if err := <-result; err != nil || !l.Ended(present) {
			t.Errorf("the end of the session: %v; it is confirmed: %v", err, l.Ended(present))
		}
		err := l.Retry(t.Context(), nil, func(s *Session) error {
			if s == nil {
				t.Error("a call is made without a session")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestReadErrorEndsWrites checks that a connection whose reader has failed does not block writers.
func TestReadErrorEndsWrites(t *testing.T) {
	l, _ := testLink(t, Config{})
	ours, theirs := net.Pipe()
	defer theirs.Close()
	w := settledWire(ours, l, time.Millisecond)
	l.connected(w)
	written := make(chan error, 1)
	go func() {
		_, err := w.Write(zktest.ConnectRequest())
		written <- err
	}()
	_ = w.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := w.Read(make([]byte, 4)); err == nil {
		t.Fatal("a read without an answer succeeded")
	}
	select {
	case err := <-written:
		if err == nil {
			t.Error("a write that nobody has read succeeded")
		}
	case <-time.After(patience):
		t.Error("a write goes on, on a connection that is not read any more")
	}
}

// TestSessionBeforeConn: the first session may begin before zk.Connect returns the Conn.
func TestSessionBeforeConn(t *testing.T) {
	reopened := make(chan struct{})
	l, _ := testLink(t, Config{Reopened: func(*Session) { close(reopened) }})
	w := settledWire(nil, l, time.Second)
	l.wire, l.state, l.times, l.admitted = w, joined, l.config.Times(time.Second), true
	l.session = testSession(1)
	l.opened()
	select {
	case <-reopened:
		t.Fatal("requests may be made, and there is no Conn")
	case <-time.After(10 * reconnectGrace):
	}
	close(l.started)
	select {
	case <-reopened:
	case <-time.After(time.Minute):
		t.Fatal("requests may still not be made")
	}
}
