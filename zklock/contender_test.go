package zklock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/task"
)

// TestLostContenderIsDeleted: a lagging server reports that a contender's node is gone,
// and the contender starts over. If the node does exist, it blocks all others, and this
// client too, until the session ends. So the client deletes it.
func TestLostContenderIsDeleted(t *testing.T) {
	t.Parallel()
	server := &nodeServer{}
	conn, _, err := zk.Connect(
		[]string{"in memory"}, 10*time.Second,
		zk.WithDialer(server.dial),
		zk.WithHostProvider(&ring{closing: t.Context()}),
		zk.WithLogger(discard{}),
		zk.WithLogInfo(false),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for conn.SessionID() == 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	l, _ := testLink(t, Options{})
	sess := testSession(conn.SessionID())
	l.conn, l.session, l.up = conn, sess, true
	e := &engine{host: l.host, link: l, tasks: task.NewGroup(), refused: make(map[string]struct{})}
	req := &driver.Request{Key: "key", Wait: true}

	c := &contender{engine: e, req: req, parent: "/q", sess: sess, guid: newGUID(), node: "a-lock-0000000001"}
	if _, err := c.join(ctx); !errors.Is(err, errStartOver) || c.node != "" {
		t.Errorf("after a list that finds no parent: %v, node %q; want %v and none", err, c.node, errStartOver)
	}
	c = &contender{engine: e, req: req, parent: "/q", sess: sess, guid: newGUID(), node: "b-lock-0000000002"}
	if err := c.vanished(ctx); !errors.Is(err, errStartOver) || c.node != "" {
		t.Errorf("after a list without the node: %v, node %q; want %v and none", err, c.node, errStartOver)
	}
	e.tasks.Close(ctx)
	server.mu.Lock()
	defer server.mu.Unlock()
	slices.Sort(server.deleted)
	if want := []string{"/q/a-lock-0000000001", "/q/b-lock-0000000002"}; !slices.Equal(server.deleted, want) {
		t.Errorf("deleted: %q, want %q", server.deleted, want)
	}
}

// TestFindTwin checks that a contender does not adopt a node that is being deleted: a
// repeated create can leave two nodes, and an operator can delete the chosen one before
// the other.
func TestFindTwin(t *testing.T) {
	t.Parallel()
	e := &engine{tasks: task.NewGroup(), late: &late{stopped: true}}
	e.tasks.Close(t.Context()) // it deletes nothing
	guid := newGUID()
	first, second := e.opts.Names.name(guid)+"2147483647", e.opts.Names.name(guid)+"-2147483648"
	entries := func(names ...string) []entry {
		t.Helper()
		var line []entry
		for _, name := range names {
			c, ok := parseEntry(name)
			if !ok {
				t.Fatalf("%q is no entry", name)
			}
			line = append(line, c)
		}
		return line
	}
	for _, test := range []struct {
		name      string
		node      string
		uncertain bool
		line      []entry
		want      string // "": not found
	}{
		{"both", second, true, entries("a-lock-0000000001", first, second), first},
		{"the second only", second, true, entries("a-lock-0000000001", second), second},
		{"the one that was chosen", first, false, entries("a-lock-0000000001", first, second), first},
		{"a twin that comes before it", second, false, entries("a-lock-0000000001", first, second), second},
		{"its twin only", first, false, entries("a-lock-0000000001", second), ""},
		{"neither", first, false, entries("a-lock-0000000001"), ""},
	} {
		c := &contender{engine: e, sess: testSession(0), guid: guid, node: test.node, uncertain: test.uncertain, own: &own{}}
		_, found := c.find(test.line)
		switch {
		case found != (test.want != ""):
			t.Errorf("%s: found = %v", test.name, found)
		case found && c.node != test.want:
			t.Errorf("%s: found %q, want %q", test.name, c.node, test.want)
		}
	}
}
