package zkconn

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/strict"
)

// A transaction costs a server, its disk and its followers about the same whether it creates
// one znode or thirty. So while a few creations and deletions of a session are on their way,
// further ones gather, and go out together as one transaction (group commit). A client that
// does one thing at a time has nothing to gather, and sends each as it is.
//
// A transaction is carried out as a whole or not at all. If the server refuses it, it says for
// which of its members; the others are sent again, one by one. If its reply is lost, the outcome
// of each member is unknown. Of several creations below one parent only one may be in a
// transaction, since its zxid becomes the token of each; the others go alone.

const (
	maxFlights = 4       // with fewer, a member would wait for long where round trips are slow
	maxBatch   = 64      // members of a transaction
	MaxGrouped = 1 << 10 // bytes of data; a creation with more goes alone, so that it is known which one a server hangs up on
	maxBytes   = 1 << 14 // of a transaction: far less than any server's jute.maxbuffer
	warySpell  = 64      // creations, after one whose parent was missing
)

// write is the creation of an ephemeral sequential znode, or the deletion of a znode.
type write struct {
	sess   *Session
	path   string
	create *NewNode // nil for a deletion
	alone  bool     // not to be grouped

	unwanted atomic.Bool // nobody waits for it any more; it need not be sent

	sent chan bool    // of a creation: that it has been sent, or that it will not be
	done chan Outcome // what came of it
}

// Outcome is what came of a write.
type Outcome struct {
	Path      string
	Czxid     int64
	InSession bool // it was made in the session that it was meant for
	Err       error
}

func newWrite(sess *Session, path string) *write {
	return &write{sess: sess, path: path, done: make(chan Outcome, 1)}
}

func (w *write) data() []byte {
	if w.create == nil {
		return nil
	}
	return w.create.Data
}

// tell says whether it has been sent, unless that has been said before: a member of a
// transaction that was refused is sent twice.
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

// batches groups the writes of a client.
type batches struct {
	link    *Link
	aclSize int // of Config.ACL, in a request

	mu      strict.Mutex[strict.Batches]
	flights int // transactions on their way
	waiting []*write
	parents map[string]bool // in which one of those is to create
	wary    int             // for how many creations: parents were missing of late
}

func newBatches(l *Link) *batches {
	b := &batches{link: l, parents: make(map[string]bool)}
	for _, acl := range l.config.ACL {
		b.aclSize += len(acl.Scheme) + len(acl.ID) + 12
	}
	return b
}

// do carries out a write, or has that done as soon as one of those under way is answered.
// Then it goes on with what has gathered.
func (b *batches) do(w *write) {
	b.mu.Lock()
	alone := w.alone || len(w.data()) > MaxGrouped || (w.create != nil && b.parents[dir(w.path)])
	if w.create != nil && !w.create.HasParent && b.wary > 0 {
		b.wary--
		alone = true
	}
	if !alone && b.flights == maxFlights {
		b.waiting = append(b.waiting, w)
		if w.create != nil {
			b.parents[dir(w.path)] = true
		}
		b.mu.Unlock()
		return
	}
	if !alone {
		b.flights++
	}
	b.mu.Unlock()
	b.single(w)
	if alone {
		return
	}
	for group := b.next(); len(group) > 0; group = b.next() {
		b.send(group)
	}
}

// next returns what is to go out instead of a flight that is over.
func (b *batches) next() []*write {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, size := 0, 0
	for n < min(len(b.waiting), maxBatch) && size < maxBytes {
		w := b.waiting[n]
		size += len(w.path) + len(w.data()) + b.aclSize
		if w.create != nil {
			delete(b.parents, dir(w.path))
		}
		n++
	}
	group := slices.Clone(b.waiting[:n])
	b.waiting = slices.Delete(b.waiting, 0, n)
	if n == 0 {
		b.flights--
	}
	return group
}

// parentMissing is called when a creation has found no parent.
func (b *batches) parentMissing() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wary = warySpell
}

// drop finishes a write that is not to be sent: nobody waits for it, or the connection has been
// lost. What go-zookeeper is handed then runs on the next one, in whatever session that has.
func (b *batches) drop(w *write) bool {
	drop := w.unwanted.Load() || !b.link.upIn(w.sess)
	if drop {
		w.finish(Outcome{Err: zk.ErrNoServer})
	}
	return drop
}

// single carries out one write as it is.
func (b *batches) single(w *write) {
	if b.drop(w) {
		return
	}
	l := b.link
	if w.create == nil {
		w.finish(Outcome{Err: l.conn.Delete(w.path, -1)})
		return
	}
	l.expectCreated(w.path, func() { w.tell(true) })
	path, err := l.conn.Create(w.path, w.data(), newNodeFlags, l.config.ACL)
	if errors.Is(err, zk.ErrNoNode) {
		b.parentMissing()
	}
	w.finish(Outcome{Path: path, Czxid: l.takeCreated(w.path), InSession: l.InSession(w.sess), Err: err})
}

const newNodeFlags = zk.FlagEphemeral | zk.FlagSequence

func (l *Link) creation(n *NewNode) *zk.CreateRequest {
	return &zk.CreateRequest{Path: n.Path, Data: n.Data, Acl: l.config.ACL, Flags: newNodeFlags}
}

// send carries out several writes as one transaction.
func (b *batches) send(group []*write) {
	l := b.link
	group = slices.DeleteFunc(group, b.drop)
	if len(group) < 2 {
		for _, w := range group {
			b.single(w)
		}
		return
	}
	// Creations first: the wire knows a transaction by the path that its first member creates.
	slices.SortStableFunc(group, func(x, y *write) int {
		switch {
		case (x.create != nil) == (y.create != nil):
			return 0
		case x.create != nil:
			return -1
		}
		return 1
	})
	ops := make([]any, len(group))
	for i, w := range group {
		if w.create != nil {
			ops[i] = l.creation(w.create)
		} else {
			ops[i] = &zk.DeleteRequest{Path: w.path, Version: -1}
		}
	}
	l.expectCreated(group[0].path, func() {
		for _, w := range group {
			w.tell(true)
		}
	})
	replies, err := l.conn.Multi(ops...)
	czxid, refused := l.takeCreated(group[0].path), -1
	switch {
	case len(replies) == len(group):
		refused = slices.IndexFunc(replies, func(r zk.MultiResponse) bool { return r.Error != nil })
	case err == nil:
		err = zk.ErrConnectionClosed // that was no answer
	}
	for i, w := range group {
		switch {
		case refused < 0 && err == nil:
			w.finish(Outcome{Path: replies[i].String, Czxid: czxid, InSession: l.InSession(w.sess)})
		case refused < 0:
			w.finish(Outcome{Err: err})
		case i == refused:
			if w.create != nil && errors.Is(replies[i].Error, zk.ErrNoNode) {
				b.parentMissing()
			}
			w.finish(Outcome{Err: replies[i].Error})
		case !l.tasks.Go(func(context.Context) { b.single(w) }):
			w.finish(Outcome{Err: zk.ErrNoServer})
		}
	}
}
