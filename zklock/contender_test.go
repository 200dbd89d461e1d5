package zklock

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
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
