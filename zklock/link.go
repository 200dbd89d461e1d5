package zklock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// link is the way to the servers: the one zk.Conn of a client, the session that
// it has at present, and the gate at which calls wait while there is none.
// go-zookeeper runs what it is handed while it is down on the next connection,
// in whatever session that has, so it is handed nothing then.
type link struct {
	host driver.Host
	opts Options
	conn *zk.Conn

	routines routines
	watches  *watches
	reopened func() // called when calls may be made again
	closing  context.Context
	hopes    *hopes        // set by connect
	begun    chan struct{} // closed when conn is set
	ended    chan struct{} // closed when go-zookeeper has stopped
	quitOnce sync.Once
	quitted  chan struct{} // closed when it was told to

	mu      sync.Mutex
	wire    *wire         // the newest connection
	timeout time.Duration // negotiated last
	session *session      // nil before the first, and from its expiry to the next

	// renounced is a session that is not to be resumed again: its timeout is so much
	// longer now than it once was that the window of the trust rule, which goes by
	// the present one, leaves too little of a lease that goes by the shortest.
	renounced int64

	up       bool             // calls may be made
	ending   bool             // the client closes
	gate     chan struct{}    // closed when up becomes true
	failures int              // connections in a row that came to nothing
	lastErr  error            // why there is no connection
	created  map[string]int64 // czxids; see expectCreated
}

func newLink(closing context.Context, host driver.Host, opts Options) *link {
	l := &link{
		host:     host,
		opts:     opts,
		reopened: func() {},
		closing:  closing,
		begun:    make(chan struct{}),
		ended:    make(chan struct{}),
		quitted:  make(chan struct{}),
		gate:     make(chan struct{}),
		created:  make(map[string]int64),
	}
	l.watches = newWatches(l)
	return l
}

// ready returns the present session, waiting for a connection if need be. While
// there is none, again is asked, like driver.Request.Retry; nil waits until ctx ends.
func (l *link) ready(ctx context.Context, again func(context.Context, error, <-chan struct{}) error) (*session, error) {
	for {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", holdfast.ErrDisconnected, driver.ContextError(ctx))
		}
		l.mu.Lock()
		up, s, gate, lastErr := l.up, l.session, l.gate, l.lastErr
		l.mu.Unlock()
		if up {
			return s, nil
		}
		err := fmt.Errorf("zookeeper: %w", holdfast.ErrDisconnected)
		if lastErr != nil {
			err = fmt.Errorf("%w: %w", err, lastErr)
		}
		if again != nil {
			if err := again(ctx, err, gate); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-gate:
		case <-ctx.Done():
		}
	}
}

// wake returns a channel that closes when the connection that is down at present
// is up again; nil if it is not down.
func (l *link) wake() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up {
		return nil
	}
	return l.gate
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

// same reports whether the connection is up in session s, by the word of
// go-zookeeper too: it stores a new id before it sends anything under it.
func (l *link) same(s *session) bool {
	l.mu.Lock()
	same := l.session == s
	l.mu.Unlock()
	return same && l.conn.SessionID() == s.id
}

// reconnectGrace is how long calls wait, after a session was resumed, for
// go-zookeeper to renew its watches: it does so without synchronisation with
// replies (a data race on its last zxid), and at once if it does it at all.
// Where it has watches to renew, the wait is a longer one, for slow machines: it
// ends when they are on their way.
const (
	reconnectGrace = 10 * time.Millisecond
	watchesGrace   = 250 * time.Millisecond
)

// opened is told that a session is there and requests may be made.
func (l *link) opened() {
	l.mu.Lock()
	w := l.wire
	grace := min(watchesGrace, max(reconnectGrace, l.timeout/10))
	l.failures = 0
	l.mu.Unlock()
	if w == nil {
		return
	}
	if !l.watches.any() {
		grace = reconnectGrace
	}
	l.routines.run(func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-w.watchesSet:
		case <-timer.C:
		case <-l.closing.Done():
			return
		}
		select {
		case <-l.begun: // the first session may be there before go-zookeeper has returned its Conn
		case <-l.closing.Done():
			return
		}
		l.open(w)
	})
}

func (l *link) open(w *wire) {
	l.mu.Lock()
	if l.wire != w || l.up || l.session == nil {
		l.mu.Unlock()
		return
	}
	l.up = true
	l.lastErr = nil
	close(l.gate)
	l.host.SetConnected(true)
	l.mu.Unlock()
	l.reopened()
	l.watches.recheck()
}

// lost is told that a connection is gone. It may be told more than once.
func (l *link) lost(w *wire, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wire != w {
		return
	}
	l.wire = nil
	l.lastErr = err
	l.shutLocked()
}

func (l *link) shutLocked() {
	if !l.up {
		return
	}
	l.up = false
	l.gate = make(chan struct{})
	l.host.SetConnected(false)
}

// drop leaves the present server, if it still is the one of w.
func (l *link) drop(w *wire) {
	if w != nil {
		_ = w.Close()
	}
}

// expectCreated makes the czxid of the node that is about to be created by this
// path be remembered until takeCreated: the zxid of the reply to a creation is
// the czxid of the node. What the application creates is none of our business.
func (l *link) expectCreated(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.created[path] = 0
}

func (l *link) noteCreated(path string, zxid int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, expected := l.created[path]; expected {
		l.created[path] = zxid
	}
}

// takeCreated returns the czxid of the node that was created by this path, and
// forgets it; 0 if there was none.
func (l *link) takeCreated(path string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	zxid := l.created[path]
	delete(l.created, path)
	return zxid
}

// check is a write to the quorum that changes nothing and succeeds only while a
// znode is there.
func (l *link) check(ctx context.Context, path string) error {
	_, err := call(ctx, l, func() (struct{}, error) {
		_, err := l.conn.Multi(&zk.CheckVersionRequest{Path: path, Version: -1})
		return struct{}{}, err
	})
	return err
}

// sync makes the server catch up with the leader, without a transaction.
func (l *link) sync(ctx context.Context, path string) error {
	_, err := call(ctx, l, func() (string, error) { return l.conn.Sync(path) })
	return err
}

// children lists a znode.
func (l *link) children(ctx context.Context, path string) ([]string, error) {
	return call(ctx, l, func() ([]string, error) {
		names, _, err := l.conn.Children(path)
		return names, err
	})
}

// read is what a znode says of itself.
type read struct {
	data []byte
	stat *zk.Stat
}

func (l *link) get(ctx context.Context, path string) (read, error) {
	return call(ctx, l, func() (read, error) {
		data, stat, err := l.conn.Get(path)
		return read{data, stat}, err
	})
}

// retry runs f, which makes one call on the connection, until it has an answer
// that a new connection would not change.
func retry[T any](ctx context.Context, l *link, f func(ctx context.Context) (T, error)) (T, error) {
	for {
		var zero T
		if _, err := l.ready(ctx, nil); err != nil {
			return zero, err
		}
		value, err := f(ctx)
		if err == nil || !transient(err) {
			return value, err
		}
		if ctx.Err() != nil {
			return zero, fmt.Errorf("%w: %w", holdfast.ErrDisconnected, driver.ContextError(ctx))
		}
		l.pause(ctx)
	}
}

// pause keeps a loop from spinning in the moment between the end of a
// connection and the word of it.
func (l *link) pause(ctx context.Context) {
	timer := time.NewTimer(5 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
