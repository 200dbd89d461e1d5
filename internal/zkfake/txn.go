package zkfake

import (
	"slices"
	"sort"
	"time"

	"github.com/holdfast-go/holdfast/internal/jute"
)

// A txn is an entry of the log. A request that fails is one, too: it takes a zxid, and changes nothing.
type txn struct {
	kind      int32
	zxid, now int64
	session   int64
	ops       []op
	code      code
	results   [][]byte // of the operations of a transaction
	request   *request // of the client; nil if there is none
}

// propose is how the leader takes in a write: PrepRequestProcessor. The request came over member m; if that is a follower, the
// session is not touched.
func (e *Ensemble) propose(m *Member, rq *request) {
	id := rq.conn.session
	s := e.sessions[id]
	if s != nil && s.owner == nil {
		s.owner = m
	}
	t := &txn{kind: rq.kind, session: id, request: rq}
	switch {
	case s == nil:
		t.code = codeSessionExpired
		if rq.kind == opMulti { // each operation is checked alone
			t.code = 0
			t.results = refusals(len(rq.ops), 0, codeSessionExpired)
		}
		e.commit(t)
	case rq.kind == opCloseSession: // whichever member it came over
		e.end(id, rq)
	case s.owner != m:
		t.code = codeSessionMoved
		e.commit(t)
	case rq.ops == nil:
		t.code = codeUnimplemented
		e.commit(t)
	default:
		e.prepare(t, slices.Clone(rq.ops))
		e.commit(t)
	}
}

// prepare checks the operations of a request, one after the other, and takes them into the transaction if all are right.
func (e *Ensemble) prepare(t *txn, ops []op) {
	tree, now := e.leader().tree, time.Now().UnixMilli()
	var undos []func()
	defer func() {
		for _, undo := range slices.Backward(undos) {
			undo()
		}
	}()
	for i := range ops {
		if refused := tree.check(&ops[i], t.session); refused != 0 {
			if t.kind != opMulti {
				t.code = refused
			}
			t.results = refusals(len(ops), i, refused)
			return
		}
		undos = append(undos, tree.try(ops[i], e.lastZxid+1, now))
		result := &jute.Encoder{}
		if t.kind == opMulti {
			kind := ops[i].kind
			if kind == opCreateContainer { // OpResult.CreateResult: only whether it has a Stat counts
				kind = opCreate2
			}
			header(result, kind, 0)
		}
		tree.result(result, ops[i])
		t.results = append(t.results, result.B)
	}
	t.ops = ops
}

// header writes a MultiHeader.
func header(e *jute.Encoder, kind int32, refused code) {
	e.Int32(kind)
	e.Bool(false)
	e.Int32(int32(refused))
}

// refusals are the results of a transaction whose operation i failed.
func refusals(n, i int, refused code) [][]byte {
	var out [][]byte
	for j := range n {
		c := refused
		switch {
		case j < i:
			c = 0
		case j > i:
			c = codeInconsistent
		}
		e := &jute.Encoder{}
		header(e, -1, c)
		e.Int32(int32(c))
		out = append(out, e.B)
	}
	return out
}

// result writes the answer to an operation that has been carried out.
func (t *tree) result(e *jute.Encoder, o op) {
	switch o.kind {
	case opCreate:
		e.String(o.path)
	case opCreate2, opCreateContainer:
		e.String(o.path)
		t.stat(e, o.path)
	case opSetData, opSetACL:
		t.stat(e, o.path)
	}
}

// reply writes the body of the reply to the request that a transaction came from.
func (t *txn) reply(e *jute.Encoder) {
	for _, result := range t.results {
		e.B = append(e.B, result...)
	}
	if t.kind == opMulti {
		e.Int32(-1)
		e.Bool(true)
		e.Int32(-1)
	}
}

// since returns the transactions after a zxid.
func (e *Ensemble) since(zxid int64) []*txn {
	return e.log[sort.Search(len(e.log), func(i int) bool { return e.log[i].zxid > zxid }):]
}

// commit gives a transaction the next zxid, and has all members carry it out.
func (e *Ensemble) commit(t *txn) {
	e.lastZxid++
	t.zxid, t.now = e.lastZxid, time.Now().UnixMilli()
	e.log = append(e.log, t)
	for _, m := range e.members {
		if m.leads() {
			m.apply(t)
		} else if m.following {
			e.toFollower(m, func() { m.apply(t) })
		}
	}
}
