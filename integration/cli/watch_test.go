package cli_test

import (
	"bufio"
	"context"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// watchQuick is the interval of the tests' watches.
const watchQuick = "--interval=50ms"

// moment is the name of the time that an engine reports for a holder.
func (e *engine) moment() string {
	if e.name == "zookeeper" {
		return "queued"
	}
	return "since"
}

// moments matches a time as watch prints it.
const moments = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?(Z|[-+]\d\d:\d\d)`

// wait starts a waiter for a key, and returns a function that makes it give up.
func (e *engine) wait(t *testing.T, key, owner string) context.CancelFunc {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	client := e.dial(t, owner)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if lock, err := client.Acquire(ctx, key); err == nil {
			_ = lock.Release(limited(t))
		}
	}()
	stop := func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}

// line waits for the n-th line of stdout, from 1, and checks what follows its time.
func (p *tool) line(n int, pattern string) {
	p.t.Helper()
	p.writes("stdout", "\n")
	all := func() []string { return strings.SplitAfter(read(p.stdout), "\n") }
	if !becomes(func() bool { return len(all()) > n || p.hasEnded() }) || len(all()) <= n {
		verdict.Fatalf(p.t, "never: line %d, which is to be %s, of\n%s", n, pattern, read(p.stdout))
	}
	got := all()[n-1]
	if regexp.MustCompile("^" + moments + " " + pattern + "\n$").MatchString(got) {
		return
	}
	if strings.Contains(read(p.stdout), " disconnected key=") {
		verdict.Fatalf(p.t, "line %d is %q, want %s", n, got, pattern)
	}
	p.t.Errorf("line %d is %q, want %s", n, got, pattern)
}

// TestWatchBrokenPipe checks that watch ends when nobody reads any more, even without a change.
func TestWatchBrokenPipe(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		for _, changes := range []bool{false, true} {
			key := newKey(t)
			r, w := pipe(t)
			p := launchTo(t, w, e.direct, "watch", key, watchQuick)
			_ = w.Close()
			in := bufio.NewScanner(r)
			if !in.Scan() || !strings.Contains(in.Text(), "free key="+key) {
				t.Errorf("the first line is %q", in.Text())
			}
			if changes {
				e.acquire(t, key, "owner")
				if !in.Scan() || !strings.Contains(in.Text(), "held key="+key) {
					t.Errorf("the second line is %q", in.Text())
				}
			}
			_ = r.Close()
			p.exits(141, "")
		}
	})
}

// TestWatchIsCheap checks that an open watch has one watch on ZooKeeper, and that it hears of changes of
// holder although it hardly looks.
func TestWatchIsCheap(t *testing.T) {
	begin(t)
	// The server reports only the total number of child watches, so this test has its own server.
	server := zkserver.New(t, zkserver.Config{})
	e := zooKeeperAt(t, server.Addr())
	key := newKey(t)
	p := launch(t, e.direct, nil, "watch", key)
	p.line(1, "free key="+key)
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
		p.line(2*i+2, "held .*")
		release(t, lock)
		p.line(2*i+3, "free .*")
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
	// In a time in which nothing happens, not even a reconnection, there are heartbeats of the session, and now and then a look
	// who waits.
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
