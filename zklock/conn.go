package zklock

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/task"
	"github.com/holdfast-go/holdfast/internal/zktimes"
)

// link is the way to the servers: the one zk.Conn of a client, the session that
// it has at present, and the gate at which calls wait while there is none.
// go-zookeeper runs what it is handed while it is down on the next connection,
// in whatever session that has, so it is handed nothing then.
//
// It, and all else in the files conn*.go, knows nothing of locks.
type link struct {
	host driver.Host
	opts Options
	conn *zk.Conn

	// tasks wait for go-zookeeper, or pass on what it has reported. All of them end by
	// themselves when it has stopped, since it answers every request then.
	tasks    *task.Group
	watches  *watches
	batches  *batches
	reopened func() // called when calls may be made again
	closing  context.Context
	dialling context.Context // ends when no further connection is wanted; with closing at the latest
	noMore   context.CancelFunc
	hopes    *hopes        // set by connect
	servers  []string      // all of them, with ports; set by connect
	begun    chan struct{} // closed when conn is set
	ended    chan struct{} // closed when go-zookeeper has stopped
	quitOnce sync.Once
	quitted  chan struct{} // closed when it was told to
	renewals atomic.Int32  // of watches, which go-zookeeper has handed itself and not sent; see opened

	mu      sync.Mutex
	wire    *wire          // the newest connection
	looked  *wire          // the newest on which all that is watched has been looked at again
	times   *zktimes.Times // of the timeout that was negotiated last; nil before the first session
	session *session       // nil before the first, and from its expiry to the next

	admitted bool                 // the servers have accepted the credentials, if there are any
	up       bool                 // calls may be made
	ending   bool                 // the client closes
	gate     chan struct{}        // closed when up becomes true
	down     driver.Instant       // when up became false
	refusals int                  // connections in a row on which a server has hung up instead of greeting
	failures int                  // attempts in a row at a connection on which a request was answered
	lastErr  error                // why there is no connection
	created  map[string]*creating // by path; see expectCreated
	left     map[int64]*left      // sessions that are not to be resumed again; see conn_leave.go
}

func newLink(closing context.Context, host driver.Host, opts Options) *link {
	l := &link{
		host:     host,
		opts:     opts,
		tasks:    task.NewGroup(),
		reopened: func() {},
		closing:  closing,
		begun:    make(chan struct{}),
		ended:    make(chan struct{}),
		quitted:  make(chan struct{}),
		gate:     make(chan struct{}),
		created:  make(map[string]*creating),
		left:     make(map[int64]*left),
	}
	l.dialling, l.noMore = context.WithCancel(closing)
	l.watches = newWatches(l)
	l.batches = newBatches(l)
	return l
}

// current returns the present session, or nil.
func (l *link) current() *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// present returns the newest connection; nil if that is lost.
func (l *link) present() *wire {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wire
}

// lookedAgain reports whether all that is watched has been looked at again on a connection.
func (l *link) lookedAgain(w *wire) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return w != nil && l.looked == w && l.wire == w
}

// negotiated returns the times of the timeout that was negotiated last.
func (l *link) negotiated() *zktimes.Times {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.times
}

// same reports whether the connection is up in session s, by the word of
// go-zookeeper too: it stores a new id before it sends anything under it.
func (l *link) same(s *session) bool { return l.current() == s && l.conn.SessionID() == s.id }

// upIn reports whether a request that is sent now goes out in session s.
func (l *link) upIn(s *session) bool {
	l.mu.Lock()
	up := l.up
	l.mu.Unlock()
	return up && l.same(s)
}

// drop leaves the present server, if it still is the one of w.
func (l *link) drop(w *wire) {
	if w != nil {
		_ = w.Close()
	}
}

// sendTime is how long the end of the session may take to be sent when there is no
// time to wait for the answer.
const sendTime = 100 * time.Millisecond

// end ends the present session, and those that were left. It returns nil if all are known to be
// over. go-zookeeper ends only one, on the connection that it has just then, and so
// it is asked to only when there is a server that answers and has a quorum, or no more
// time to find one. It begins no other one after that.
func (l *link) end(ctx context.Context) error {
	l.mu.Lock()
	s, again := l.session, l.ending
	l.ending = true
	l.mu.Unlock()
	if again {
		return nil
	}
	if s != nil {
		l.answers(ctx, s)
	}
	l.mu.Lock()
	w, up := l.wire, l.up
	l.mu.Unlock()
	address, confirmed := "", false
	if w != nil {
		address = w.address
	}
	l.noMore()
	l.quit()
	if up {
		confirmed = w.endsSession(ctx)
	}
	if !confirmed {
		l.hangUp()
		l.awaitEnd(ctx)
	}
	l.mu.Lock()
	s = l.session
	owed := s != nil && !confirmed && l.left[s.id] == nil
	l.mu.Unlock()
	err := l.endLeft(ctx, address)
	if owed {
		return fmt.Errorf("zookeeper: the end of session %#x is not confirmed; its nodes go when the servers have not heard of it for %v: %w",
			s.id, s.times().Session, holdfast.ErrDisconnected)
	}
	return err
}

// awaitEnd returns when go-zookeeper, which was told to quit, begins no session any more, or soon after the end of ctx.
func (l *link) awaitEnd(ctx context.Context) {
	select {
	case <-l.ended:
		return
	case <-ctx.Done():
	}
	select {
	case <-l.ended:
	case <-time.After(sendTime):
	}
}

// answers returns when a server has answered that has a quorum, the session is over, or
// ctx is. A server that falls silent is left for the next.
func (l *link) answers(ctx context.Context, s *session) {
	_ = l.retry(ctx, nil, func(now *session) error {
		if now != s {
			return nil
		}
		w := l.present()
		limit := time.AfterFunc(s.times().Answer, func() { l.drop(w) })
		defer limit.Stop()
		return l.sync(ctx, "/")
	})
}

// quit makes go-zookeeper send the end of the session, and stop.
func (l *link) quit() {
	l.quitOnce.Do(func() {
		l.tasks.Go(func(context.Context) {
			defer close(l.quitted)
			l.conn.Close()
		})
	})
}

// stop ends go-zookeeper and its connection, and returns when all goroutines are gone.
func (l *link) stop(stop context.CancelCauseFunc) {
	stop(holdfast.ErrClosed) // it need not finish what it is trying
	l.hangUp()
	l.quit()
	<-l.quitted
	l.hangUp()
	<-l.ended
	l.tasks.Close(context.Background())
}

// hangUp closes the present connection.
func (l *link) hangUp() { l.drop(l.present()) }
