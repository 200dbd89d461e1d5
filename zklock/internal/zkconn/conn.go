package zkconn

import (
	"context"
	"crypto/tls"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/task"
	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/internal/zktimes"
)

// Auth is a credential that the link presents on every connection.
type Auth struct{ Scheme, Credentials string }

// Config configures a [Link].
type Config struct {
	SessionTimeout time.Duration                              // to ask for
	Times          func(session time.Duration) *zktimes.Times // that follow from a timeout
	Rounds         int                                        // over all servers before Connect gives up; 0: until its ctx ends
	AnyAnswer      bool                                       // every reply renews the lease, because the client sends no heartbeats

	TLS  func() (*tls.Config, error) // of a connection; nil without TLS
	Auth []Auth

	ACL               []zk.ACL // of the znodes that Create makes
	ParentACL         []zk.ACL // of the znodes that CreateParent makes
	PersistentParents bool     // CreateParent makes persistent znodes instead of containers

	// Connected reports whether calls can be made. The link calls it in order, with a mutex held, so it must not call back.
	Connected func(bool)
	// Reopened is called in the background each time that calls can be made again.
	Reopened func(*Session)
}

// Link is a client's way to the servers: one session at a time, one connection at a time, and the gate at which calls
// wait while there is no connection.
type Link struct {
	host   driver.Host
	config Config

	tasks    *task.Group // go-zookeeper's calls, and what waits for them; all end when go-zookeeper stops
	watches  *watches
	batches  *batches
	closing  context.Context         // ends when Close begins
	close    context.CancelCauseFunc // ends closing
	dialling context.Context         // ends when no further connection is wanted; with closing at the latest
	noMore   context.CancelFunc      // ends dialling
	names    []string                // of the servers, with ports; set by Connect
	giveUp   context.CancelFunc      // makes Connect stop waiting for a session
	running  sync.WaitGroup          // run

	mu      strict.Mutex[strict.Link]
	wire    *Wire          // the newest connection; nil if that is lost
	isOpen  bool           // calls can be made on wire
	conn    *zk.Conn       // of the newest connection on which calls could be made; nil before the first
	times   *zktimes.Times // of the timeout that was negotiated last; before the first session, of the one to ask for
	session *Session       // nil before the first session, and between two sessions
	auth    []Auth         // to present on each connection

	lastZxid  int64                // of the newest reply in this session
	ending    bool                 // EndSession was called
	gate      chan struct{}        // closed while calls can be made
	usedLast  driver.Instant       // when a server had the session last
	refusals  int                  // connections in a row that a server closed before a greeting
	failures  int                  // attempts at a connection since the last reply to a request
	servers   []*server            // that the names stand for; the one that was dialled longest ago is first
	unvisited int                  // servers that this round has not dialled yet
	rounds    int                  // that have ended before the first session
	lastErr   error                // why there is no connection
	creations map[string]*creation // by the path of the first
}

// New makes a link, which dials as ctx does. The caller calls Connect next, and Close at the end.
func New(ctx context.Context, host driver.Host, config Config) *Link {
	l := &Link{
		host: host, config: config, tasks: task.NewGroup(), gate: make(chan struct{}),
		creations: make(map[string]*creation), auth: config.Auth, times: config.Times(config.SessionTimeout),
	}
	l.closing, l.close = context.WithCancelCause(network.Of(context.Background(), ctx))
	l.dialling, l.noMore = context.WithCancel(l.closing)
	l.watches = &watches{link: l, byPath: make(map[watchKey]*Watch)}
	l.batches = &batches{link: l}
	return l
}

// Conn returns the newest zk.Conn on which calls could be made; not nil once Connect has succeeded.
func (l *Link) Conn() *zk.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn
}

// Session returns the present session; nil if there is none.
func (l *Link) Session() *Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// Wire returns the connection if calls can be made on it; nil otherwise.
func (l *Link) Wire() *Wire {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isOpen {
		return nil
	}
	return l.wire
}

// usableIn returns the zk.Conn if calls can be made in session s, or in any if s is nil; nil otherwise.
func (l *Link) usableIn(s *Session) *zk.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isOpen || s != nil && l.session != s {
		return nil
	}
	return l.conn
}

// Times returns the times of the timeout that was negotiated last; before the first session, of the one to ask for.
func (l *Link) Times() *zktimes.Times {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.times
}

// Close ends the connection, and returns when all goroutines have ended.
func (l *Link) Close() {
	l.close(driver.ErrClosed)
	l.mu.Lock()
	w := l.wire
	l.mu.Unlock()
	_ = w.Close()
	l.running.Wait()
	l.tasks.Close(context.Background())
}
