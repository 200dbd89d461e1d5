package zkconn

import (
	"context"
	"strings"

	"github.com/go-zookeeper/zk"
)

// NewNode is an ephemeral sequential znode that is to be created.
type NewNode struct {
	Path string // without the number
	Data []byte
}

// Creation is a creation in flight.
type Creation struct {
	link  *Link
	write *write

	Listed <-chan Listing // the children of the parent after the creation
}

// Create sends a creation, if the present session is still s, and the list of the new znode's
// siblings in one flight: a server carries out what one session sends in the order in
// which it was sent. Writes of many callers go together: see batches.
func (l *Link) Create(s *Session, n NewNode) *Creation {
	w := newWrite(s, n.Path)
	w.create = &n
	w.sent = make(chan bool, 1)
	listed := make(chan Listing, 1)
	l.tasks.Go(func(context.Context) { l.batches.do(w) })
	l.tasks.Go(func(context.Context) {
		if sent, conn := <-w.sent, l.usableIn(s); sent && conn != nil {
			listed <- list(conn, dir(w.path))
		} else {
			listed <- Listing{Err: zk.ErrNoServer}
		}
	})
	return &Creation{link: l, write: w, Listed: listed}
}

// Done delivers the outcome, once.
func (c *Creation) Done() <-chan Outcome { return c.write.done }

// Abandon is for a creation whose caller has given up. The creation need not be sent; then is called in the background, with the
// outcome.
func (c *Creation) Abandon(then func(Outcome)) {
	c.write.unwanted.Store(true)
	c.link.tasks.Go(func(context.Context) { then(<-c.write.done) })
}

// creating is what is noted of a request under way that creates a znode, or several.
type creating struct {
	sent  func() // called when it has been sent, by the goroutine that sends
	czxid int64
}

// expectCreated makes the czxid of the node that is about to be created by this
// path be remembered until takeCreated: the zxid of the reply to a creation is
// the czxid of the node. What the application creates is none of our business.
func (l *Link) expectCreated(path string, sent func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.created[path] = &creating{sent: sent}
}

func (l *Link) noteSent(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.created[path]; c != nil && c.sent != nil {
		c.sent()
		c.sent = nil
	}
}

func (l *Link) noteCreated(path string, zxid int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.created[path]; c != nil {
		c.czxid = zxid
	}
}

// takeCreated returns the czxid of the node that was created by this path, and
// forgets it; 0 if there was none.
func (l *Link) takeCreated(path string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.created[path]
	delete(l.created, path)
	if c == nil {
		return 0
	}
	return c.czxid
}

// dir returns the parent of a path; "/" for a top-level one.
func dir(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 1)] }
