package integration_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/internal/logtest"
	"github.com/holdfast-go/holdfast/zklock"
)

// closing calls Close on a goroutine and returns a channel of its result.
func closing(ctx context.Context, client *zklock.Client) <-chan error {
	result := make(chan error, 1)
	go func() { result <- client.Close(ctx) }()
	return result
}

// TestCloseWithCtxDone closes as deferred calls do, with a healthy server: when Close
// returns, the server has confirmed that nothing is left.
func TestCloseWithCtxDone(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	done, cancel := context.WithCancel(context.Background())
	cancel()
	logs := &logtest.Recorder{}
	for range 35 {
		o := options()
		o.Logger = logs.Logger()
		client := dial(t, server(t).Addr(), o)
		key := newKey(t)
		take(t, client, key)
		if err := client.Close(done); err != nil {
			t.Errorf("Close: %v", err)
		}
		if left := list(t, conn, under(key)); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}
	logs.Check(t, nil, logtest.Want{Text: "connected", Level: slog.LevelInfo}) // and no outage
}

// TestCloseWithoutServer calls Close as README does while no server answers: it returns
// when the lease is over and names what was not confirmed.
func TestCloseWithoutServer(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*faultproxy.Proxy){
		"silent":  func(p *faultproxy.Proxy) { p.BlackHole(faultproxy.Both) },
		"refuses": func(p *faultproxy.Proxy) { p.RefuseNew(); p.Drop() },
	} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, lost before %v", name, lost), func(t *testing.T) {
				start(t)
				logs := &logtest.Recorder{}
				o := options()
				o.SessionTimeout, o.Logger = 3*time.Second, logs.Logger()
				client, p := proxied(t, o)
				key := newKey(t)
				lock := take(t, client, key)
				fault(p)
				if lost {
					receive(t, "the lock is lost", lock.Done())
				}
				deadline := lock.Deadline()
				result := closing(context.WithoutCancel(limited(t)), client)
				err := receive(t, "Close returns", result)
				if !errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, holdfast.ErrDisconnected) {
					t.Errorf("Close: %v", err)
				}
				if !lost && !strings.Contains(fmt.Sprint(err), key) {
					t.Errorf("Close does not name the lock: %v", err)
				}
				if early := time.Until(deadline); early > 0 {
					t.Errorf("Close gave up %v before the lease was over, though its ctx allowed more", early)
				}
				if err := lock.Err(); errors.Is(err, holdfast.ErrReleased) == lost {
					t.Errorf("the lock: %v", err)
				}
				if !logs.Has("closed, and not all is confirmed by the engine") {
					t.Error("nothing is logged of it")
				}
			})
		}
	}
}

// TestCloseOfStoppedServer: Close sends the end of the session although no reply comes in
// time. When the server resumes, the lock is free, long before the session would expire.
func TestCloseOfStoppedServer(t *testing.T) {
	start(t)
	s, err := zkserver.Start(limited(t), zkserver.Config{TickTime: tick, MaxSessionTimeout: longest})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	o := options()
	o.SessionTimeout = longest
	client := dial(t, s.Addr(), o)
	key := newKey(t)
	take(t, client, key)
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	result := closing(done, client)
	if err := receive(t, "Close returns", result); !errors.Is(err, holdfast.ErrReleasePending) {
		t.Errorf("Close: %v", err)
	}
	resumed := time.Now()
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	noResidue(t, plain(t, s.Addr()), under(key))
	if took := time.Since(resumed); took > longest*3/4 {
		t.Errorf("the lock was free only %v later", took)
	}
}

// TestCloseAfterAnOutage: the connection returns while Close waits.
func TestCloseAfterAnOutage(t *testing.T) {
	start(t)
	client, p := proxied(t, nil)
	key := newKey(t)
	take(t, client, key)
	p.RefuseNew()
	p.Drop()
	result := closing(context.WithoutCancel(limited(t)), client)
	silent(t, "Close returns while nobody answers", result)
	if err := p.Heal(); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, "Close returns", result); err != nil {
		t.Errorf("Close: %v", err)
	}
	if left := list(t, plain(t, server(t).Addr()), under(key)); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestCloseDuringReleases: callers release while Close ends the session. What Close
// confirms, their releases report as confirmed.
func TestCloseDuringReleases(t *testing.T) {
	start(t)
	client := dial(t, server(t).Addr(), nil)
	var locks []*holdfast.Lock
	for range 200 {
		locks = append(locks, take(t, client, newKey(t)))
	}
	var releases sync.WaitGroup
	for _, lock := range locks {
		releases.Go(func() {
			if err := lock.Release(limited(t)); err != nil {
				t.Errorf("Release: %v", err)
			}
		})
	}
	if err := client.Close(limited(t)); err != nil {
		t.Errorf("Close: %v", err)
	}
	releases.Wait()
}

// TestCloseOfMany compares the end of a session that has many nodes with that of one
// that has few: it is one request, however many there are.
func TestCloseOfMany(t *testing.T) {
	start(t)
	var requests [2]int
	for i, n := range []int{2, 400} {
		client, p := proxied(t, nil)
		for range n {
			take(t, client, newKey(t))
		}
		p.ResetCounts()
		if err := client.Close(limited(t)); err != nil {
			t.Errorf("Close with %d locks: %v", n, err)
		}
		requests[i] = p.Count(faultproxy.ToServer, faultproxy.OpDelete)
	}
	if requests != [2]int{} {
		t.Errorf("nodes deleted one by one at Close: %v", requests)
	}
}

// TestSocketOfAnExpiredSession: the client closes the connection on which it learned that
// its session had expired.
func TestSocketOfAnExpiredSession(t *testing.T) {
	start(t)
	client, p, expire := expirable(t, nil)
	for range 3 {
		lock := take(t, client, newKey(t))
		expire()
		receive(t, "the lock is lost", lock.Done())
		take(t, client, newKey(t)) // in the next session
	}
	eventually(t, "one connection is left", func() bool { return p.Conns() == 1 })
}

// TestCloseLeavesNoGoroutine counts goroutines the moment Close returns, while the client
// is about to check its watches on a new connection.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	start(t)
	for range 20 {
		client, p := proxied(t, nil)
		key := newKey(t)
		take(t, client, key)
		waiting := make(chan error, 1)
		go func() { _, err := client.Acquire(limited(t), key); waiting <- err }()
		p.Drop()
		time.Sleep(20 * time.Millisecond)
		if err := client.Close(limited(t)); err != nil {
			t.Errorf("Close: %v", err)
		}
		<-waiting
		runtime.Gosched() // a goroutine that is done may still be listed
		for group := range strings.SplitSeq(goroutines(t.Name()), "\n\n") {
			// go-zookeeper closes its socket again after it has reported that it is done.
			begun := group[strings.LastIndex(strings.TrimRight(group, "\n"), "\n")+1:]
			if group != "" && !strings.Contains(begun, "go-zookeeper/zk.") {
				t.Fatalf("a goroutine outlives Close:\n%s", group)
			}
		}
	}
}
