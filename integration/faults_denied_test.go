package integration_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/logtest"
)

// Z20. The server refuses to delete the node for a while. Release reports that at once.
// The client goes on trying, even if nobody calls Release.
func TestReleaseDenied(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"release", "TTL"} {
		t.Run(how, func(t *testing.T) {
			start(t)
			conn := plain(t, server(t).Addr())
			logs := &logtest.Recorder{}
			opts := options()
			opts.SessionTimeout = 4 * time.Second // a quarter of it is the first pause
			opts.Logger = logs.Logger()
			client := dial(t, server(t).Addr(), opts)
			key := newKey(t)
			parent := prepare(t, conn, key)
			permit := func(perms int32) {
				t.Helper()
				if _, err := conn.SetACL(parent, zk.WorldACL(perms), -1); err != nil {
					t.Fatal(err)
				}
			}
			permit(zk.PermAll &^ zk.PermDelete)
			var options []holdfast.Option
			if how == "TTL" {
				options = append(options, holdfast.WithTTL(time.Millisecond))
			}
			lock := granted(t, acquiring(limited(t), client, key, options...))
			if how == "TTL" {
				receive(t, "end of the TTL", lock.Done())
			} else if err := lock.Release(limited(t)); !errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, holdfast.ErrDenied) {
				t.Errorf("Release returns %v; want %v and %v", err, holdfast.ErrReleasePending, holdfast.ErrDenied)
			}
			eventually(t, "the log reports the refusal", func() bool { return logs.Has("cannot delete own node") })
			holds(t, conn, parent, 1)
			permit(zk.PermAll)
			next := granted(t, acquiring(limited(t), dial(t, server(t).Addr(), nil), key))
			release(t, next)
			checkClean(t, conn, key)
			logs.Check(t, nil, logtest.Want{Text: "cannot delete own node", Level: slog.LevelError, Attrs: "path error"})
		})
	}
}

// Z20. go-zookeeper queues a delete in one session, sends it in the next, and finds no
// node. That does not mean that somebody broke the lock: the node ended with its session.
func TestDeletionQueuedUnderDeadSession(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	opts := options()
	opts.SessionTimeout = longest // the queue is to last
	client, p, expire := expirable(t, opts)
	key := newKey(t)
	lock := granted(t, acquiring(limited(t), client, key))
	reads(t, p, 1)
	p.Stall(faultproxy.ToServer)
	ballast := make([]byte, 800<<10)
	var wg sync.WaitGroup
	defer wg.Wait()
	for range 60 {
		wg.Go(func() { _, _ = client.Conn().Set("/nowhere", ballast, -1) })
	}
	eventually(t, "sender and queue are full", func() bool {
		return strings.Contains(goroutines(t.Name()), "zk.(*Conn).queueRequest")
	})
	released := make(chan error, 1)
	go func() { released <- lock.Release(limited(t)) }()
	eventually(t, "the deletion is queued", func() bool {
		return strings.Contains(goroutines(t.Name()), "zk.(*Conn).Delete")
	})
	p.Cut()
	expire()
	if err := p.Heal(); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, "Release returns", released); err != nil {
		t.Errorf("Release returns %v", err)
	}
	checkClean(t, conn, key)
}
