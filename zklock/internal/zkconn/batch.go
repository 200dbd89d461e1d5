package zkconn

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

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

// write is the creation of an ephemeral sequential znode, or the deletion of a znode.
type write struct {
	sess   *Session
	path   string
	create *NewNode // nil for a deletion
	alone  bool     // not to be grouped

	unwanted atomic.Bool // no caller waits for the outcome; the write need not be sent

	sent chan bool    // of a creation: whether it has been sent
	done chan Outcome // of the write
}

// Outcome is the outcome of a write.
type Outcome struct {
	Path  string
	Czxid int64
	Err   error
}

func newWrite(sess *Session, path string) *write {
	return &write{sess: sess, path: path, done: make(chan Outcome, 1)}
}

// tell says whether the creation has been sent. Only the first call counts: a member of a refused transaction is sent twice.
func (w *write) tell(sent bool) {
	select {
	case w.sent <- sent:
	default:
	}
}

func (w *write) finish(o Outcome) {
	w.tell(false)
	if w.create != nil && errors.Is(o.Err, zk.ErrNodeExists) {
		o.Err = errCreatedBefore
	}
	w.done <- o
}

// createsBeside reports whether both writes create a znode with the same parent.
func (w *write) createsBeside(x *write) bool {
	return w.create != nil && x.create != nil && dir(w.path) == dir(x.path)
}

// batches groups the writes of a client.
type batches struct {
	link *Link

	mu      strict.Mutex[strict.Batches]
	flights int // transactions in flight
	waiting []*write
}

// do carries out a write, or queues it for the next flight that ends. Then it carries out what has gathered.
func (b *batches) do(w *write) {
	b.mu.Lock()
	switch {
	case w.alone, w.create != nil && len(w.create.Data) > MaxGrouped, slices.ContainsFunc(b.waiting, w.createsBeside):
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
	for group := []*write{w}; len(group) > 0; group = b.next() {
		b.send(group)
	}
}

// next returns the writes of one session that replace a flight which has ended.
func (b *batches) next() (group []*write) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.DeleteFunc(b.waiting, func(w *write) bool {
		if w.unwanted.Load() {
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
func (b *batches) single(w *write) {
	l := b.link
	conn := l.usableIn(w.sess)
	switch {
	case conn == nil:
		w.finish(Outcome{Err: zk.ErrNoServer})
	case w.create == nil:
		w.finish(Outcome{Err: conn.Delete(w.path, -1)})
	default:
		l.expectCreated(w.path, func() { w.tell(true) })
		path, err := conn.Create(w.path, w.create.Data, newNodeFlags, l.config.ACL)
		w.finish(Outcome{Path: path, Czxid: l.takeCreated(w.path), Err: err})
	}
}

// send carries out several writes of one session as one transaction.
func (b *batches) send(group []*write) {
	l, conn := b.link, b.link.usableIn(group[0].sess)
	if len(group) == 1 || conn == nil {
		for _, w := range group {
			b.single(w)
		}
		return
	}
	// Creations first: the wire knows a transaction by the path that its first member creates.
	creations := slices.DeleteFunc(slices.Clone(group), func(w *write) bool { return w.create == nil })
	group = append(creations, slices.DeleteFunc(group, func(w *write) bool { return w.create != nil })...)
	ops := make([]any, len(group))
	for i, w := range group {
		if w.create != nil {
			ops[i] = l.creation(w.create)
		} else {
			ops[i] = &zk.DeleteRequest{Path: w.path, Version: -1}
		}
	}
	l.expectCreated(group[0].path, func() {
		for _, w := range creations {
			w.tell(true)
		}
	})
	replies, err := conn.Multi(ops...)
	czxid, refused := l.takeCreated(group[0].path), -1
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
		case !l.tasks.Go(func(context.Context) { b.single(w) }):
			w.finish(Outcome{Err: zk.ErrNoServer})
		}
	}
}

const newNodeFlags = zk.FlagEphemeral | zk.FlagSequence

func (l *Link) creation(n *NewNode) *zk.CreateRequest {
	return &zk.CreateRequest{Path: n.Path, Data: n.Data, Acl: l.config.ACL, Flags: newNodeFlags}
}
