package cli_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// TestWatchIsCheap checks that an open watch sets one watch on ZooKeeper, and prints changes of holder although it reads the key
// seldom.
func TestWatchIsCheap(t *testing.T) {
	begin(t)
	// The server reports only the total number of child watches, so this test has its own server.
	server := zkserver.New(t, zkserver.Config{})
	e := zooKeeperAt(t, server.Addr())
	key := newKey(t)
	p := launch(t, e.direct, "watch", key)
	p.writes("stdout", " free key="+key)
	watches := func() float64 {
		t.Helper()
		all, err := zkserver.Metrics(limited(t), server.Addr())
		must(t, err)
		return all["zk_watch_count"]
	}
	client := e.dial(t, "owner")
	for i := range 5 {
		lock, err := client.Acquire(limited(t), key)
		must(t, err)
		p.writes("stdout", " token="+lock.Token().String())
		release(t, lock)
		await(t, func() bool { return strings.Count(read(p.stdout), " free ") == i+2 }, "watch is not told of the release")
	}
	must(t, client.Close(limited(t)))
	await(t, func() bool { return watches() == 1 }, "not one watch is set")
	received := func() (connection string, n int) {
		t.Helper()
		all, err := zkserver.Connections(limited(t), server.Addr())
		must(t, err)
		for _, c := range all {
			if c["sid"] != "" {
				_, _ = fmt.Sscan(c["recved"], &n)
				connection += c["est"] + " "
			}
		}
		return connection, n
	}
	// Without a change or a reconnection, the session sends heartbeats, and watch reads the queue now and then.
	await(t, func() bool {
		on, before := received()
		since := time.Now()
		time.Sleep(3 * time.Second)
		still, n := received()
		n -= before
		took := time.Since(since)
		most := int(5 * took / time.Second)
		t.Logf("%d requests in %v, after %d; want at most %d", n, took, before, most)
		return on != "" && still == on && before > 0 && n <= most
	}, "there are many requests all the time, and nothing happens")
	p.signal(syscall.SIGINT)
	p.exits(130)
	await(t, func() bool { return watches() == 0 }, "a watch is left behind")
}
