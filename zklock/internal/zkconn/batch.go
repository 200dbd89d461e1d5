package zkconn

import (
	"context"
	"errors"
	slashpath "path"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// A transaction costs a server about the same whether it creates one znode or thirty. So while a few creations and deletions are
// in flight, further ones gather, and go out as one transaction (group commit).
//
// If the server refuses a transaction because of one member, the others are sent again, each alone. If the reply is lost, the
// outcome of every member is unknown. A transaction creates at most one znode per parent, because its zxid becomes their token.

const (
	maxFlights = 4       // with fewer, a member would wait for long where round trips are slow
	maxBatch   = 32      // members of a transaction, which then fits in any server's jute.maxbuffer
	MaxGrouped = 1 << 10 // bytes of data; a creation with more goes alone, so that the server's refusal is about this one
)

// Write is the creation of an ephemeral sequential znode, or the deletion of a znode.
type Write struct {
	Done   chan Outcome // receives the outcome
	Listed chan Listing // receives the list that was sent behind a successful creation

	ctx     context.Context // of the caller of a creation, which need not be sent when it ends
	sess    *Session
	path    string // of a creation: without the number
	creates bool
	data    []byte // of the new znode
}

// Outcome is the outcome of a write.
type Outcome struct {
	Path  string
	Czxid int64
	Err   error
}

// Create sends a creation, if the present session is still s, and a list of the new znode's siblings right behind it: a server carries
// out what one session sends in the order in which it was sent.
func (l *Link) Create(ctx context.Context, s *Session, path string, data []byte) *Write {
	w := &Write{ctx: ctx, sess: s, path: path, creates: true, data: data}
	w.Done, w.Listed = make(chan Outcome, 1), make(chan Listing, 2) // a member of a refused transaction is sent twice
	l.tasks.Go(func(context.Context) { l.batches.do(w) })
	return w
}

// Delete deletes a znode of session s.
func (l *Link) Delete(ctx context.Context, s *Session, path string) error {
	w := &Write{sess: s, path: path, Done: make(chan Outcome, 1)}
	l.tasks.Go(func(context.Context) { l.batches.do(w) })
	select {
	case o := <-w.Done:
		return StepError("delete", path, o.Err)
	case <-ctx.Done():
		return StepError("delete", path, driver.ContextError(ctx))
	}
}

func (w *Write) finish(o Outcome) {
	if w.creates && errors.Is(o.Err, zk.ErrNodeExists) {
		o.Err = errCreatedBefore
	}
	w.Done <- o
}

// batches groups the writes of a client.
type batches struct {
	link *Link

	mu      strict.Mutex[strict.Batches]
	flights int // transactions in flight
	waiting []*Write
}

// do carries out a write, or queues it for the next flight that ends. Then it carries out what has gathered.
func (b *batches) do(w *Write) {
	beside := func(x *Write) bool { return w.creates && x.creates && slashpath.Dir(w.path) == slashpath.Dir(x.path) }
	b.mu.Lock()
	switch {
	case len(w.data) > MaxGrouped, slices.ContainsFunc(b.waiting, beside):
		b.mu.Unlock()
		b.single(w)
		return
	case b.flights == maxFlights:
		b.waiting = append(b.waiting, w)
		b.mu.Unlock()
		return
	}
	b.flights++
	b.mu.Unlock()
	for group := []*Write{w}; len(group) > 0; group = b.next() {
		b.send(group)
	}
}

// next returns the writes of one session that replace a flight which has ended.
func (b *batches) next() (group []*Write) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.DeleteFunc(b.waiting, func(w *Write) bool {
		if w.creates && w.ctx.Err() != nil {
			w.finish(Outcome{Err: zk.ErrNoServer})
			return true
		}
		takes := len(group) == 0 || len(group) < maxBatch && w.sess == group[0].sess
		if takes {
			group = append(group, w)
		}
		return takes
	})
	if len(group) == 0 {
		b.flights--
	}
	return group
}

// single carries out one write as it is.
func (b *batches) single(w *Write) {
	var o Outcome
	conn := b.link.usableIn(w.sess)
	switch {
	case conn == nil:
		o.Err = zk.ErrNoServer
	case w.creates:
		o.Czxid = b.link.creating(conn, []*Write{w}, func() {
			o.Path, o.Err = conn.Create(w.path, w.data, zk.FlagEphemeral|zk.FlagSequence, b.link.config.ACL)
		})
	default:
		o.Err = conn.Delete(w.path, -1)
	}
	w.finish(o)
}

// send carries out several writes of one session as one transaction.
func (b *batches) send(group []*Write) {
	conn := b.link.usableIn(group[0].sess)
	if len(group) == 1 || conn == nil {
		for _, w := range group {
			b.single(w)
		}
		return
	}
	// Creations first: the wire knows a transaction by the path that its first member creates.
	creations := slices.DeleteFunc(slices.Clone(group), func(w *Write) bool { return !w.creates })
	group = append(creations, slices.DeleteFunc(group, func(w *Write) bool { return w.creates })...)
	ops := make([]any, len(group))
	for i, w := range group {
		if w.creates {
			ops[i] = &zk.CreateRequest{Path: w.path, Data: w.data, Acl: b.link.config.ACL, Flags: zk.FlagEphemeral | zk.FlagSequence}
		} else {
			ops[i] = &zk.DeleteRequest{Path: w.path, Version: -1}
		}
	}
	var replies []zk.MultiResponse
	var err error
	czxid, refused := b.link.creating(conn, group, func() { replies, err = conn.Multi(ops...) }), -1
	switch {
	case len(replies) == len(group):
		refused = slices.IndexFunc(replies, func(r zk.MultiResponse) bool { return r.Error != nil })
	case err == nil:
		err = zk.ErrConnectionClosed // this is not a reply
	}
	for i, w := range group {
		switch {
		case refused < 0 && err == nil:
			w.finish(Outcome{Path: replies[i].String, Czxid: czxid})
		case refused < 0:
			w.finish(Outcome{Err: err})
		case i == refused:
			w.finish(Outcome{Err: replies[i].Error})
		case !b.link.tasks.Go(func(context.Context) { b.single(w) }):
			w.finish(Outcome{Err: zk.ErrNoServer})
		}
	}
}

// creation is a request under way that creates znodes.
type creation struct {
	sent  func() // called by the goroutine that has sent the request
	czxid int64  // of the znodes: the zxid of the reply; guarded by the link's mutex
}

// creating calls send, which sends some writes as one request, and returns the czxid of the znodes that it creates. Each creation is
// followed by a list.
func (l *Link) creating(conn *zk.Conn, writes []*Write, send func()) (czxid int64) {
	path, c := writes[0].path, &creation{sent: func() {
		for _, w := range writes {
			if w.creates {
				l.tasks.Go(func(context.Context) { w.Listed <- list(conn, slashpath.Dir(w.path)) })
			}
		}
	}}
	l.mu.Lock()
	l.creations[path] = c
	l.mu.Unlock()
	send()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.creations, path)
	return c.czxid
}
