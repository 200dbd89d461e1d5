package integration_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/logtest"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestZooKeeperLogs takes a client through the events that can happen on ZooKeeper, and
// checks the names, types and levels of its log records. memlock tests the records that
// all engines share.
func TestZooKeeperLogs(t *testing.T) {
	start(t)
	const secret = "SECRET"
	data := holdfast.WithData([]byte(secret))
	logs := &logtest.Recorder{}
	o := options()
	o.SessionTimeout = 6 * time.Second
	o.Logger = logs.Logger()
	o.Auth = []zklock.Auth{{Scheme: "digest", Credentials: "somebody:" + secret}}
	client, p := proxied(t, o)

	key := newKey(t)
	first := take(t, dial(t, server(t).Addr(), nil), key, holdfast.WithOwner("worker"))
	lock := take(t, client, key, holdfast.WithOwner("worker"), holdfast.WithReclaim(), data)
	receive(t, "the end of the first lock", first.Done())

	events := client.Events()
	for range 5 { // no heartbeat has to fail before the lock is lost
		p.BlackHole(faultproxy.Both)
		receive(t, "Disconnected", events.Disconnected())
		must(t, p.Heal())
		receive(t, "Ready", events.Ready())
		if logs.Has("heartbeat failed") {
			break
		}
		_ = lock.Release(limited(t))
		lock = take(t, client, key, data)
	}
	receive(t, "the end of the lock, which was cut off or is released", func() <-chan struct{} {
		go func() { _ = lock.Release(limited(t)) }()
		return lock.Done()
	}())
	finish(t, client)
	logs.Check(
		t, []string{secret},
		logtest.Want{Text: "connected", Level: slog.LevelInfo},
		logtest.Want{Text: "disconnected", Level: slog.LevelWarn},
		logtest.Want{Text: "lock reclaimed", Level: slog.LevelInfo, Attrs: "key path owner token"},
		logtest.Want{Text: "heartbeat failed", Level: slog.LevelDebug, Attrs: "error"},
	)
}

// TestZooKeeperLogsOfDenial: a client that may neither read nor delete its own nodes logs
// that.
func TestZooKeeperLogsOfDenial(t *testing.T) {
	start(t)
	logs := &logtest.Recorder{}
	o := options()
	o.Root = "/" + newKey(t)
	o.Logger = logs.Logger()
	o.ACL = zk.WorldACL(zk.PermWrite)
	o.ParentACL = zk.WorldACL(zk.PermCreate | zk.PermRead | zk.PermWrite)
	o.PersistentParents = true
	client := dial(t, server(t).Addr(), o)
	take(t, client, "k")
	if _, err := client.Acquire(limited(t), "k"); !errors.Is(err, holdfast.ErrDenied) { // nor its predecessor
		t.Errorf("Acquire = %v, want ErrDenied", err)
	}
	eventually(t, "both are logged", func() bool {
		return logs.Has("own node cannot be watched") && logs.Has("cannot delete own node")
	})
	finish(t, client)
	logs.Check(
		t, nil,
		logtest.Want{Text: "own node cannot be watched", Level: slog.LevelWarn, Attrs: "path error"},
		logtest.Want{Text: "cannot delete own node", Level: slog.LevelError, Attrs: "path error"},
	)
}
