package zklock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/driver"
)

// TestLostPlaceIsDeleted: a server that shows less than others have says that a place's
// node is gone. The place is given up; but if the node is there, it is in the way of all
// others, and of this very client, until the session ends. So it is deleted.
func TestLostPlaceIsDeleted(t *testing.T) {
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
	sess := &session{id: conn.SessionID()}
	l.conn, l.session, l.up = conn, sess, true
	b := &engine{host: l.host, link: l, background: ctx, refused: make(map[string]struct{})}
	req := &driver.Request{Key: "key", Wait: true}

	p := &place{b: b, req: req, parent: "/q", sess: sess, guid: newGUID(), node: "a-lock-0000000001"}
	if _, err := p.join(ctx); !errors.Is(err, errNotGranted) || p.node != "" {
		t.Errorf("after a list that finds no parent: %v, node %q; want %v and none", err, p.node, errNotGranted)
	}
	p = &place{b: b, req: req, parent: "/q", sess: sess, guid: newGUID(), node: "b-lock-0000000002"}
	if err := p.vanished(ctx); !errors.Is(err, errNotGranted) || p.node != "" {
		t.Errorf("after a list without the node: %v, node %q; want %v and none", err, p.node, errNotGranted)
	}
	b.tasks.Wait()
	server.mu.Lock()
	defer server.mu.Unlock()
	slices.Sort(server.deleted)
	if want := []string{"/q/a-lock-0000000001", "/q/b-lock-0000000002"}; !slices.Equal(server.deleted, want) {
		t.Errorf("deleted: %q, want %q", server.deleted, want)
	}
}
