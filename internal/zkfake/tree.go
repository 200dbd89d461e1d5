package zkfake

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/jute"
)

// ownerOfContainers marks a znode that is deleted when it has become empty: EphemeralType.CONTAINER_EPHEMERAL_OWNER.
const ownerOfContainers = int64(-1 << 63)

// A znode is immutable: each change replaces it.
type znode struct {
	data                []byte
	acl                 []acl
	czxid, mzxid, pzxid int64
	ctime, mtime        int64 // milliseconds since 1970
	version             int32
	aversion            int32 // of the acl
	created             int32 // children that it has ever had
	owner               int64 // session, ownerOfContainers, or 0
}

type acl struct {
	perms      int32
	scheme, id string
}

// allows reports whether a client has a permission. Credentials are not checked here, so each entry applies to every client.
func (n znode) allows(perm int32) bool {
	return len(n.acl) == 0 || slices.ContainsFunc(n.acl, func(a acl) bool { return a.perms&perm != 0 })
}

// A tree is the data of one member: DataTree.
type tree struct {
	znodes     map[string]znode
	children   map[string]map[string]struct{} // names, by the paths of parents
	ephemerals map[int64]map[string]struct{}  // paths, by the ids of sessions
}

func newTree() *tree {
	return &tree{
		znodes:     map[string]znode{"/": {}},
		children:   make(map[string]map[string]struct{}),
		ephemerals: make(map[int64]map[string]struct{}),
	}
}

// An op is one change, as the log has it.
type op struct {
	kind    int32
	path    string // with the number of a sequential znode
	data    []byte
	acl     []acl
	flags   int32
	version int32 // expected; -1 is any
	owner   int64
	created int32 // of the parent, after a create
}

func split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	return cmp.Or(path[:max(i, 0)], "/"), path[i+1:]
}

// check says whether an op of a session can be carried out, and completes it for the log: PrepRequestProcessor.
func (t *tree) check(o *op, session int64) code {
	switch o.kind {
	case opCreate, opCreate2, opCreateContainer:
		return t.checkCreate(o, session)
	case opDelete, opSetData, opCheck, opSetACL:
		n, ok := t.znodes[o.path]
		perm, version := int32(permWrite), n.version
		switch o.kind {
		case opDelete: // the parent's matters, even if there is no such child
			parent, _ := split(o.path)
			if above, ok := t.znodes[parent]; ok && !above.allows(permDelete) {
				return codeNoAuth
			}
			perm = 0
		case opCheck:
			perm = permRead
		case opSetACL:
			perm, version = permAdmin, n.aversion
		}
		switch {
		case !ok:
			return codeNoNode
		case perm != 0 && !n.allows(perm):
			return codeNoAuth
		case o.version != -1 && o.version != version:
			return codeBadVersion
		case o.kind == opDelete && len(t.children[o.path]) > 0:
			return codeNotEmpty
		}
		return 0
	}
	return codeUnimplemented
}

func (t *tree) checkCreate(o *op, session int64) code {
	if !strings.HasPrefix(o.path, "/") || o.path == "/" {
		return codeBadArguments
	}
	path, _ := split(o.path)
	parent, ok := t.znodes[path]
	switch {
	case !ok:
		return codeNoNode
	case !parent.allows(permCreate):
		return codeNoAuth
	}
	if o.flags&flagSequential != 0 {
		o.path += fmt.Sprintf("%010d", parent.created)
	}
	if _, ok := t.znodes[o.path]; ok {
		return codeNodeExists
	}
	if parent.owner != 0 && parent.owner != ownerOfContainers {
		return codeNoChildren
	}
	switch {
	case o.flags&flagEphemeral != 0:
		o.owner = session
	case o.kind == opCreateContainer || o.flags == flagContainer:
		o.owner = ownerOfContainers
	}
	o.created = parent.created + 1
	return 0
}

// apply carries out an op of the log, and returns its events.
func (t *tree) apply(o op, zxid, now int64) []event {
	parent, name := split(o.path)
	switch o.kind {
	case opCreate, opCreate2, opCreateContainer:
		t.znodes[o.path] = znode{
			data: o.data, acl: o.acl, owner: o.owner,
			czxid: zxid, mzxid: zxid, pzxid: zxid, ctime: now, mtime: now,
		}
		t.adopt(parent, func(p *znode) { p.created, p.pzxid = max(p.created, o.created), zxid })
		add(t.children, parent, name)
		t.own(o.owner, o.path)
		return []event{{eventCreated, o.path}, {eventChildren, parent}}
	case opDelete:
		owner := t.znodes[o.path].owner
		delete(t.znodes, o.path)
		t.adopt(parent, func(p *znode) { p.pzxid = max(p.pzxid, zxid) })
		remove(t.children, parent, name)
		remove(t.ephemerals, owner, o.path)
		return []event{{eventDeleted, o.path}, {eventChildren, parent}}
	case opSetData:
		t.adopt(o.path, func(n *znode) {
			n.data, n.mzxid, n.mtime = o.data, zxid, now
			n.version++
		})
		return []event{{eventData, o.path}}
	case opSetACL:
		t.adopt(o.path, func(n *znode) {
			n.acl = o.acl
			n.aversion++
		})
	}
	return nil
}

// adopt replaces a znode by a changed one.
func (t *tree) adopt(path string, change func(*znode)) {
	n := t.znodes[path]
	change(&n)
	t.znodes[path] = n
}

// try carries out an op and returns the function that takes it back: a transaction is checked so, op by op.
func (t *tree) try(o op, zxid, now int64) (undo func()) {
	parent, name := split(o.path)
	above := t.znodes[parent]
	before, existed := t.znodes[o.path]
	t.apply(o, zxid, now)
	return func() {
		remove(t.children, parent, name)
		remove(t.ephemerals, o.owner, o.path)
		delete(t.znodes, o.path)
		if existed {
			t.znodes[o.path] = before
			t.own(before.owner, o.path)
		}
		if existed && name != "" {
			add(t.children, parent, name)
		}
		t.znodes[parent] = above
	}
}

// own notes the session that an ephemeral znode belongs to.
func (t *tree) own(owner int64, path string) {
	if owner != 0 && owner != ownerOfContainers {
		add(t.ephemerals, owner, path)
	}
}

// names returns a znode's children in order.
func (t *tree) names(path string) []string { return slices.Sorted(maps.Keys(t.children[path])) }

// stat writes a znode's Stat: DataNode.copyStat.
func (t *tree) stat(e *jute.Encoder, path string) {
	n, children := t.znodes[path], int32(len(t.children[path]))
	owner := n.owner
	if owner == ownerOfContainers { // clients are shown the owners of ephemeral znodes only
		owner = 0
	}
	e.Int64(n.czxid)
	e.Int64(n.mzxid)
	e.Int64(n.ctime)
	e.Int64(n.mtime)
	e.Int32(n.version)
	e.Int32(2*n.created - children) // one for each child that came, and one for each that went
	e.Int32(n.aversion)
	e.Int64(owner)
	e.Int32(int32(len(n.data)))
	e.Int32(children)
	e.Int64(n.pzxid)
}

func add[K, V comparable](m map[K]map[V]struct{}, key K, value V) {
	if m[key] == nil {
		m[key] = make(map[V]struct{})
	}
	m[key][value] = struct{}{}
}

func remove[K, V comparable](m map[K]map[V]struct{}, key K, value V) {
	delete(m[key], value)
	if len(m[key]) == 0 {
		delete(m, key)
	}
}
