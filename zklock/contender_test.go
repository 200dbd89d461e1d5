package zklock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
	"github.com/holdfast-go/holdfast/zklock/internal/zktest"
)

// TestLostContenderIsDeleted: a lagging server reports that a contender's node is gone,
// and the contender starts over. If the node does exist, it blocks all others, and this
// client too, until the session ends. So the client deletes it.
func TestLostContenderIsDeleted(t *testing.T) {
	t.Parallel()
	server := &zktest.NodeServer{}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e, _ := testEngine(t, server)
	sess := e.link.Session()
	req := &driver.Request{Key: "key", Wait: true}

	c := &contender{engine: e, req: req, parent: "/q", sess: sess, guid: newGUID(), node: "a-lock-0000000001", stage: queued}
	if _, err := c.join(ctx); !errors.Is(err, errStartOver) || c.node != "" {
		t.Errorf("after a list that finds no parent: %v, node %q; want %v and none", err, c.node, errStartOver)
	}
	c = &contender{engine: e, req: req, parent: "/q", sess: sess, guid: newGUID(), node: "b-lock-0000000002", stage: created}
	if err := c.vanished(ctx); !errors.Is(err, errStartOver) || c.node != "" {
		t.Errorf("after a list without the node: %v, node %q; want %v and none", err, c.node, errStartOver)
	}
	e.tasks.Close(ctx)
	deleted := server.Deleted()
	slices.Sort(deleted)
	if want := []string{"/q/a-lock-0000000001", "/q/b-lock-0000000002"}; !slices.Equal(deleted, want) {
		t.Errorf("deleted: %q, want %q", deleted, want)
	}
}

// TestFindTwin checks that a contender, whose repeated create left two nodes, keeps to the one it has chosen.
func TestFindTwin(t *testing.T) {
	t.Parallel()
	e, _ := testEngine(t, &zktest.NodeServer{})
	guid := newGUID()
	prefix := e.opts.Names.form().prefix(guid, driver.Mode{})
	first, second := prefix+"2147483647", prefix+"-2147483648"
	entries := func(names ...string) (line []entry) {
		for _, name := range names {
			c, _ := parseEntry(name)
			line = append(line, c)
		}
		return line
	}
	for _, test := range []struct {
		name  string
		node  string
		stage stage
		line  []entry
		want  string // "": not found
	}{
		{"both", second, doubled, entries("a-lock-0000000001", first, second), first},
		{"the second only", second, doubled, entries("a-lock-0000000001", second), second},
		{"the one that was chosen", first, created, entries("a-lock-0000000001", first, second), first},
		{"a twin that comes before it", second, created, entries("a-lock-0000000001", first, second), second},
		{"its twin only", first, created, entries("a-lock-0000000001", second), ""},
		{"neither", first, created, entries("a-lock-0000000001"), ""},
	} {
		c := &contender{engine: e, req: &driver.Request{}, parent: "/q", sess: e.link.Session(), guid: guid, node: test.node, stage: test.stage}
		_, found := c.find(test.line)
		switch {
		case found != (test.want != ""):
			t.Errorf("%s: found = %v", test.name, found)
		case found && (c.node != test.want || c.stage != queued):
			t.Errorf("%s: found %q, want %q; stage %d", test.name, c.node, test.want, c.stage)
		}
	}
}

// TestMissing tests hazards Z18 and Z37: only events of the node's own session say why the node is gone, and of those who
// write to it and delete it only one that reclaims reclaims.
func TestMissing(t *testing.T) {
	t.Parallel()
	const owner = "worker"
	same, _ := testEngine(t, &zktest.NodeServer{})
	other := &engine{mark: "11111111"}
	name := func(e *engine, owner string) []string {
		return []string{
			CuratorNames.form().prefix(newGUID(), driver.Mode{}) + "0000000001",
			KazooNames.form().prefix(e.markedGUID(owner), driver.Mode{Shared: true}) + "0000000002",
		}
	}
	reclaimed := name(other, owner)
	for _, c := range []struct {
		name  string
		write bool     // was told of, and the node has not been seen since
		queue []string // after it
		over  bool     // the session
		want  error
	}{
		{"nothing was told", false, nil, false, holdfast.ErrBroken},
		{"it was written to", true, reclaimed, false, holdfast.ErrReclaimed},
		{"it was written to, and nobody reclaims", true, nil, false, holdfast.ErrBroken},
		{"it was written to, and another name reclaims", true, name(other, "worker2"), false, holdfast.ErrBroken},
		{"it was written to, and its own client reclaims", true, name(same, owner), false, holdfast.ErrBroken},
		{"nothing was told, in the next session", false, nil, true, holdfast.ErrSessionExpired},
		{"it was written to, in the next session", true, reclaimed, true, holdfast.ErrSessionExpired},
	} {
		sess := same.link.Session()
		if c.over {
			sess = testSession(sess.ID)
		}
		o := &ownNode{
			engine: same, sess: sess, path: "/q/n", owner: owner,
		}
		if c.write {
			o.unseen = &written{names: &siblings{done: make(chan struct{}), names: c.queue}}
			close(o.unseen.names.done)
		}
		if err := o.whyGone(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// TestMissingIsToldInTime tests hazard Z37: a hold is told that its node is gone although the list that would tell why is not
// answered any more, as the connection on which both were asked for is gone.
func TestMissingIsToldInTime(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"before", "meanwhile"} {
		server := &zktest.NodeServer{}
		e, _ := testEngine(t, server)
		server.Refuse()
		o := &ownNode{
			engine: e, sess: e.link.Session(), path: "/q/n", owner: "worker",
			unseen: &written{names: &siblings{done: make(chan struct{})}},
		}
		if lost == "meanwhile" {
			w := e.link.Wire()
			time.AfterFunc(10*time.Millisecond, func() { e.link.Leave(w) })
		} else {
			cut(t, e)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := o.whyGone(ctx); !errors.Is(err, holdfast.ErrBroken) || ctx.Err() != nil {
			t.Errorf("the connection was lost %s: %v, %v", lost, err, ctx.Err())
		}
		cancel()
	}
}

// TestDoubtful tests hazard Z17: a watch on the own node counts for the connection on which it was set, and for no other.
// After a reconnection the event of a predecessor may come before that of the own node.
func TestDoubtful(t *testing.T) {
	t.Parallel()
	server := &zktest.NodeServer{}
	e, _ := testEngine(t, server)
	o := &ownNode{engine: e}
	doubtful := func(set *zkconn.Wire, w *zkconn.Watch) bool {
		o.view = &view{watch: w, on: set}
		_, yes := o.doubt()
		return yes
	}
	unread := &zkconn.Watch{Read: make(chan struct{})}
	failed := &zkconn.Watch{Read: make(chan struct{}), Err: zk.ErrNoAuth}
	close(failed.Read)

	former := e.link.Wire()
	cut(t, e)
	eventually(t, "another connection", func() bool { return e.link.Wire() != nil })
	present := e.link.Wire()
	if _, yes := o.doubt(); yes {
		t.Error("doubt before it is watched: see watchLater")
	}
	for _, c := range []struct {
		name  string
		set   *zkconn.Wire // the connection when the watch was set
		watch *zkconn.Watch
		want  bool
	}{
		{"set on the present connection", present, unread, false},
		{"set on a former one", former, unread, true},
		{"set when there was none, so on some later one", nil, unread, true},
		{"it could not be set", present, failed, true},
	} {
		if yes := doubtful(c.set, c.watch); yes != c.want {
			t.Errorf("%s: %v", c.name, yes)
		}
	}
	server.Refuse()
	cut(t, e)
	if !doubtful(present, unread) || !doubtful(nil, unread) {
		t.Error("no doubt without a connection")
	}
}

// TestLateExpected tests what the client looks for, and that it does not do so for ever.
func TestLateExpected(t *testing.T) {
	before, now := testSession(1), testSession(2)
	patience := now.Times().Late
	s := &lateCreations{stopped: true} // sets no timer
	s.expect(before, "/a", "old", "")
	s.expect(now, "/a", "1", "kept")
	s.expect(now, "/a", "2", "")
	s.expect(now, "/b", "3", "")
	if first := s.expectedLocked(now, time.Now()); len(first) != 3 || first[0].keep != "kept" || len(s.all) != 3 {
		t.Errorf("%+v of %+v", first, s.all)
	}
	if some := s.expectedLocked(now, time.Now().Add(patience-time.Minute/2)); len(some) != 3 {
		t.Errorf("too early forgotten: %+v", some)
	}
	if some := s.expectedLocked(now, time.Now().Add(patience+time.Second)); len(some) != 0 || len(s.all) != 0 {
		t.Errorf("never forgotten: %+v, %+v", some, s.all)
	}
}

// TestLateNext tests that all that is looked for in one session goes together, each once.
func TestLateNext(t *testing.T) {
	before, now := testSession(1), testSession(2)
	s := newLateCreations(nil)
	s.looking = true // there is a task
	s.lookForLocked(creation{sess: now, parent: "/a", guid: "1"}, creation{sess: now, parent: "/b", guid: "2"})
	s.lookForLocked(creation{sess: now, parent: "/a", guid: "3"}, creation{sess: now, parent: "/a", guid: "1"})
	if some := s.next(); len(some) != 2 || len(some["/a"]) != 2 || len(some["/b"]) != 1 || !s.looking {
		t.Errorf("%+v", some)
	}
	s.lookForLocked(creation{sess: before, parent: "/a", guid: "4"}, creation{sess: now, parent: "/a", guid: "5"})
	first, second := s.next(), s.next()
	if len(first["/a"]) != 1 || len(second["/a"]) != 1 || first["/a"][0].sess == second["/a"][0].sess {
		t.Errorf("%+v, then %+v", first, second)
	}
	if some := s.next(); len(some) != 0 || s.looking {
		t.Errorf("%+v", some)
	}
}

// TestSeen tests hazard Z17: the node is in doubt from the word of a write until it has been seen after that very write.
func TestSeen(t *testing.T) {
	t.Parallel()
	e, _ := testEngine(t, &zktest.NodeServer{})
	first, second := &written{}, &written{}
	node := zkconn.Znode{Stat: &zk.Stat{EphemeralOwner: e.link.Session().ID, Czxid: 1}}
	set := func(unseen *written) *view {
		return &view{watch: &zkconn.Watch{Read: make(chan struct{}), Node: node}, on: e.link.Wire(), unseen: unseen}
	}
	for name, c := range map[string]struct {
		unseen *written
		do     func(o *ownNode)
		doubt  bool
	}{
		"read by a watch that was set after it":     {first, func(o *ownNode) { o.view = set(first); o.Read(o.view.watch) }, false},
		"read by a watch that was set before it":    {first, func(o *ownNode) { o.view = set(nil); o.Read(o.view.watch) }, true},
		"read by a watch that is not the last":      {first, func(o *ownNode) { o.view = set(first); o.Read(set(first).watch) }, true},
		"read after the first of two":               {second, func(o *ownNode) { o.view = set(first); o.Read(o.view.watch) }, true},
		"found by the quorum":                       {first, func(o *ownNode) { o.seen(first) }, false},
		"found by the quorum, and written to again": {second, func(o *ownNode) { o.seen(first) }, true},
		"found when there was no write":             {first, func(o *ownNode) { o.seen(nil) }, true},
	} {
		o := &ownNode{engine: e, sess: e.link.Session(), known: make(chan struct{}), gone: make(chan struct{}), unseen: c.unseen}
		c.do(o)
		if _, yes := o.doubt(); yes != c.doubt {
			t.Errorf("%s: %v", name, yes)
		}
	}
}

// TestProveByTheClientsClock tests that what is left of the lease is measured by the clock that the lease runs on: right after the
// session has begun, nothing has to be sent for a proof.
func TestProveByTheClientsClock(t *testing.T) {
	t.Parallel()
	e, _ := testEngine(t, &zktest.NodeServer{}) // on a clock that stands, far from the machine's
	c := &contender{engine: e, sess: e.link.Session(), own: &ownNode{engine: e}, parent: "/a", node: "missing"}
	if err := c.prove(t.Context()); err != nil {
		t.Errorf("a request was sent, and said: %v", err)
	}
}
