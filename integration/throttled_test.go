package integration_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

const codeThrottled = -127 // KeeperException.Code.THROTTLEDOP

// TestSetWatchesThrottled has a server that is too busy refuse to set a client's watches again after a reconnect (Z48), which
// go-zookeeper does not tell. The client must not go on without them: it would hear neither of a break nor of its turn.
func TestSetWatchesThrottled(t *testing.T) {
	start(t)
	s := zkserver.New(t, zkserver.Config{MaxSessionTimeout: longest, Props: map[string]string{
		"zookeeper.request_throttle_max_requests": "1",
		"zookeeper.request_throttle_stall_time":   "20",
		"zookeeper.throttled_op_wait_time":        "5",
	}})
	version, err := zkserver.Version(limited(t), s.Addr())
	must(t, err)
	if zkserver.Before(version, 3, 7) {
		t.Skipf("ZooKeeper %s refuses no requests when it is busy; 3.7 and newer do", version)
	}
	p := proxy(t, s.Addr())
	var refused, set, after atomic.Int64 // SetWatches; set after one was refused
	p.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
		if f.Kind == faultproxy.KindReply && (f.Op == faultproxy.OpSetWatches || f.Op == faultproxy.OpSetWatches2) {
			switch f.Err {
			case codeThrottled:
				refused.Add(1)
			case 0:
				set.Add(1)
				if refused.Load() > 0 {
					after.Add(1)
				}
			}
		}
		return faultproxy.Pass
	})
	client, holder := dialServers(t, *options(), p.Addr()), dialServers(t, *options(), s.Addr())
	conn := plain(t, s.Addr())
	lock := take(t, client, newKey(t))
	before := take(t, holder, newKey(t))
	waits := acquiring(limited(t), client, before.Key())
	contenders(t, conn, before.Key(), 2)

	calm := busy(t, s.Addr())
	for refused.Load() == 0 {
		n := refused.Load() + set.Load()
		p.Drop()
		eventually(t, "an answer to SetWatches", func() bool { return refused.Load()+set.Load() > n })
	}
	calm()
	eventually(t, "the watches are set after all", func() bool { return after.Load() > 0 })
	release(t, before)
	release(t, granted(t, waits))
	if err := lock.Err(); err != nil {
		verdict.Fatalf(t, "the lock ended while the server was busy: %v", err)
	}
	names := contenders(t, conn, lock.Key(), 1)
	untilServed(t, func() error { return conn.Delete(under(lock.Key())+"/"+names[0], -1) })
	receive(t, "the end of the lock", lock.Done())
	if err := lock.Err(); !errors.Is(err, holdfast.ErrBroken) {
		t.Errorf("Err = %v, want ErrBroken", err)
	}
}

// untilServed repeats what a server refuses since it is too busy: then it has not carried it out.
func untilServed(t *testing.T, f func() error) {
	t.Helper()
	throttled := fmt.Sprint("unknown error: ", codeThrottled)
	var err error
	eventually(t, "a busy server serves", func() bool { err = f(); return err == nil || err.Error() != throttled })
	must(t, err)
}

// contenders waits until a lock has n, and returns their names.
func contenders(t *testing.T, conn *zk.Conn, key string, n int) (names []string) {
	t.Helper()
	eventually(t, fmt.Sprint(n, " contenders"), func() bool {
		untilServed(t, func() (err error) { names, _, err = conn.Children(under(key)); return err })
		return len(names) == n
	})
	return names
}

// busy keeps a server busy until calm is called: it always has more writes than it takes at a time.
func busy(t *testing.T, addr string) (calm func()) {
	t.Helper()
	conns := make(map[string]*zk.Conn)
	for range 3 {
		conn := plain(t, addr)
		untilServed(t, func() error {
			path, err := conn.Create("/busy-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
			if err == nil {
				conns[path] = conn
			}
			return err
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	data := make([]byte, 10_000)
	for path, conn := range conns {
		for range 8 {
			writers.Go(func() {
				for ctx.Err() == nil {
					_, _ = conn.Set(path, data, -1) // it may be refused, too
				}
			})
		}
	}
	return func() {
		cancel()
		writers.Wait()
	}
}
