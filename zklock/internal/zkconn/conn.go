package zkconn

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/task"
	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/internal/zktimes"
)

// Auth is a credential that is presented on every connection.
type Auth struct{ Scheme, Credentials string }

// Config is what the user of a [Link] says.
type Config struct {
	SessionTimeout time.Duration                              // to ask for
	Times          func(session time.Duration) *zktimes.Times // that follow from a timeout
	Rounds         int                                        // over all servers before Connect gives up; 0: until its ctx ends
	AnyAnswer      bool                                       // whatever a server answers renews the lease, as nothing is sent to prove more

	TLS  func() (*tls.Config, error) // of a connection; nil without TLS
	Auth []Auth

	ACL               []zk.ACL // of the znodes that Create makes
	ParentACL         []zk.ACL // of those that CreateParent makes
	PersistentParents bool     // which are containers otherwise

	// Connected is called when calls may be made (true), and when no longer (false): in order, and
	// with a mutex held, so it must not call back.
	Connected func(bool)
	// Reopened is called each time that calls may be made again, in the background; the first time when the servers
	// have accepted the credentials.
	Reopened func(*Session)
}

// Link is the way to the servers: the one zk.Conn of a client, the session that
// it has at present, and the gate at which calls wait while there is none.
// go-zookeeper runs what it is handed while it is down on the next connection,
// in whatever session that has, so it is handed nothing then.
type Link struct {
	host   driver.Host
	config Config
	conn   *zk.Conn

	// tasks wait for go-zookeeper, or pass on what it has reported. All of them end by
	// themselves when it has stopped, since it answers every request then.
	tasks    *task.Group
	watches  *watches
	batches  *batches
	closing  context.Context         // ends when Close begins
	close    context.CancelCauseFunc // ends closing
	dialling context.Context         // ends when no further connection is wanted; with closing at the latest
	noMore   context.CancelFunc      // ends dialling
	names    []string                // of the servers, with ports; set by Connect
	giveUp   context.CancelFunc      // has Connect wait for no session any more
	started  chan struct{}           // closed when conn is set
	stopped  chan struct{}           // closed when go-zookeeper has stopped
	quitOnce sync.Once
	resting  chan struct{} // closed when it has no connection and gets no further one
	quitting chan struct{} // closed when it is told to stop
	quitDone chan struct{} // closed when it was
	renewals atomic.Int32  // of watches, which go-zookeeper has handed itself and not sent; see opened

	mu      strict.Mutex[strict.Link]
	state   state
	wire    *Wire          // the newest connection; nil if the state is down
	looked  *Wire          // the newest on which recheck has read everything again
	times   *zktimes.Times // of the timeout that was negotiated last; nil before the first session
	session *Session       // nil before the first, and from its expiry to the next

	admitted   bool                    // the servers have accepted the credentials, if there are any
	endCalled  bool                    // EndSession has been called
	gate       chan struct{}           // closed while the state is open
	joinedLast driver.Instant          // until when a server kept the session, as far as is known
	refusals   int                     // connections in a row on which a server has hung up instead of greeting
	failures   int                     // attempts at a connection since a request was answered last
	servers    []*server               // that the names stand for, as far as is known
	target     *server                 // that is dialled, or was last
	turns      int                     // how often a server was dialled
	left       int                     // servers that this round has not come to
	rounds     int                     // that have ended before the first session
	lastErr    error                   // why there is no connection
	created    map[string]*creating    // by path; see expectCreated
	toEnd      map[int64]*sessionToEnd // by their ids: sessions that go-zookeeper is not to resume again; see leave.go
}

// New makes a link, which dials as ctx does. Call Connect next, and Close in the end.
func New(ctx context.Context, host driver.Host, config Config) *Link {
	l := &Link{
		host:     host,
		config:   config,
		tasks:    task.NewGroup(),
		started:  make(chan struct{}),
		stopped:  make(chan struct{}),
		resting:  make(chan struct{}),
		quitting: make(chan struct{}),
		quitDone: make(chan struct{}),
		gate:     make(chan struct{}),
		created:  make(map[string]*creating),
		toEnd:    make(map[int64]*sessionToEnd),
	}
	l.closing, l.close = context.WithCancelCause(network.Of(context.Background(), ctx))
	l.dialling, l.noMore = context.WithCancel(l.closing)
	l.watches = newWatches(l)
	l.batches = newBatches(l)
	return l
}

// Conn returns go-zookeeper's connection, which exists once Connect has returned.
func (l *Link) Conn() *zk.Conn { return l.conn }

// Session returns the present session; nil if there is none.
func (l *Link) Session() *Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// Usable returns the connection if calls may be made on it; nil otherwise.
func (l *Link) Usable() *Wire {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != open {
		return nil
	}
	return l.wire
}

// IsOpen reports whether calls may be made.
func (l *Link) IsOpen() bool { return l.Usable() != nil }

// Wire returns the newest connection; nil if that is lost.
func (l *Link) Wire() *Wire {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wire
}

// Lost returns a channel that closes when the present connection is lost, and is closed if there is none.
func (l *Link) Lost() <-chan struct{} {
	if w := l.Wire(); w != nil {
		return w.dead
	}
	lost := make(chan struct{})
	close(lost)
	return lost
}

// LookedAgain reports whether w is the newest connection, and all znodes that are watched by Watch have
// been read again on it.
func (l *Link) LookedAgain(w *Wire) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return w != nil && l.looked == w && l.wire == w
}

// Times returns the times of the timeout that was negotiated last.
func (l *Link) Times() *zktimes.Times {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.times
}

// InSession reports whether the connection is up in session s, by the word of
// go-zookeeper too: it stores a new id before it sends anything under it.
func (l *Link) InSession(s *Session) bool { return l.Session() == s && l.conn.SessionID() == s.ID }

// upIn reports whether a request that is sent now goes out in session s.
func (l *Link) upIn(s *Session) bool {
	return l.IsOpen() && l.InSession(s)
}

// Leave leaves a server for the next, if w is still the connection to it.
func (l *Link) Leave(w *Wire) {
	if w != nil {
		_ = w.Close()
	}
}

// sendTime is how long the end of the session may take to be sent when there is no
// time to wait for the answer.
const sendTime = 100 * time.Millisecond

// EndSession ends the present session, and all others that are to be ended: see sessionToEnd. It returns nil if all are known
// to be over. Only the first call does anything.
//
// go-zookeeper tries to end the present session once, on the connection that it has at that moment. So it is told to only when
// a server answers that has a quorum, or when there is no more time to find one. It begins no other session after that.
// If its try is not confirmed, the session is ended like the others.
func (l *Link) EndSession(ctx context.Context) error {
	l.mu.Lock()
	s, again := l.session, l.endCalled
	l.endCalled = true
	l.mu.Unlock()
	if again || l.conn == nil {
		return nil
	}
	if s != nil {
		l.awaitAnswer(ctx, s)
	}
	l.mu.Lock()
	w, isOpen := l.wire, l.state == open
	l.mu.Unlock()
	confirmed := false
	l.noMore()
	if !isOpen {
		l.hangUp()
		l.awaitRest()
	}
	l.quit()
	if isOpen {
		confirmed = w.awaitCloseSession(ctx)
	}
	if !confirmed {
		l.hangUp()
		l.awaitEnd(ctx)
	}
	l.mu.Lock()
	// It stays the present one, also if its end is confirmed: releases that go on may find the connection that has not ended yet.
	if s = l.session; s != nil && l.toEnd[s.ID] == nil {
		l.noteToEndLocked(s, l.times.Session).over = confirmed
	}
	l.mu.Unlock()
	return l.endAll(ctx)
}

// Ended reports whether the end of a session is confirmed.
func (l *Link) Ended(s *Session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one := l.toEnd[s.ID]; one != nil {
		return one.over
	}
	return s != l.session // what is over is not noted for ever
}

// awaitRest returns when go-zookeeper wants a connection and gets none, or soon: told to quit on its way there, it would take a second.
func (l *Link) awaitRest() {
	select {
	case <-l.resting:
	case <-l.stopped:
	case <-time.After(sendTime):
	}
}

// awaitEnd returns when go-zookeeper, which was told to quit, begins no session any more, or soon after the end of ctx.
func (l *Link) awaitEnd(ctx context.Context) {
	select {
	case <-l.stopped:
		return
	case <-ctx.Done():
	}
	select {
	case <-l.stopped:
	case <-time.After(sendTime):
	}
}

// awaitAnswer returns when a server that has a quorum has answered, or one that is too busy to, the session is over, or
// ctx ends. A server that falls silent is left for the next.
func (l *Link) awaitAnswer(ctx context.Context, s *Session) {
	_ = l.Retry(ctx, nil, func(now *Session) error {
		if now != s {
			return nil
		}
		w := l.Wire()
		limit := time.AfterFunc(s.Times().Answer, func() { l.Leave(w) })
		defer limit.Stop()
		err := l.Sync(ctx, "/")
		if errors.Is(err, errBusy) {
			return nil // no server refuses the end of a session for that (Request.isThrottlable)
		}
		return err
	})
}

// quit makes go-zookeeper send the end of the session, and stop.
func (l *Link) quit() {
	l.quitOnce.Do(func() {
		l.tasks.Go(func(context.Context) {
			defer close(l.quitDone)
			close(l.quitting)
			l.conn.Close()
		})
	})
}

// Close ends go-zookeeper and its connection, and returns when all goroutines are gone.
func (l *Link) Close() {
	l.close(driver.ErrClosed) // it need not finish what it is trying
	if l.conn == nil {
		return
	}
	l.hangUp()
	l.quit()
	<-l.quitDone
	l.hangUp()
	<-l.stopped
	l.tasks.Close(context.Background())
}

// hangUp closes the present connection.
func (l *Link) hangUp() { l.Leave(l.Wire()) }
