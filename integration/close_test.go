package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/internal/logtest"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestCloseWithoutServer calls Close as README does while no server answers: it returns when the lease is over and names
// what was not confirmed.
func TestCloseWithoutServer(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*faultproxy.Proxy){
		"silent":  func(p *faultproxy.Proxy) { p.BlackHole(faultproxy.Both) },
		"refuses": func(p *faultproxy.Proxy) { p.RefuseNew(); p.Drop() },
	} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, lost before %v", name, lost), func(t *testing.T) {
				logs := &logtest.Recorder{}
				play(t, &zklock.Options{SessionTimeout: 6 * time.Second, Logger: logs.Logger()}, func(t *testing.T, s *scene) {
					lock := s.take(t)
					fault(s.proxy)
					if lost {
						receive(t, "the lock is lost", lock.Done())
					}
					deadline := lock.Deadline()
					err := receive(t, "Close returns", async(func() error { return s.client.Close(context.WithoutCancel(limited(t))) }))
					if err := lock.Err(); !lost && !errors.Is(err, holdfast.ErrReleased) {
						verdict.Fatalf(t, "the lock was lost before Close: %v", err)
					}
					if !errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, holdfast.ErrDisconnected) {
						t.Errorf("Close: %v", err)
					}
					if !lost && !strings.Contains(fmt.Sprint(err), s.key) {
						t.Errorf("Close does not name the lock: %v", err)
					}
					if early := time.Until(deadline); early > 0 {
						t.Errorf("Close gave up %v before the lease was over, though its ctx allowed more", early)
					}
					if err := lock.Err(); errors.Is(err, holdfast.ErrReleased) == lost {
						t.Errorf("the lock: %v", err)
					}
					if !becomes(func() bool { return logs.Has("closed, and not all is confirmed by the engine") }) {
						t.Error("nothing is logged of it")
					}
				})
			})
		}
	}
}

// TestCloseOfStoppedServer: Close sends the end of the session although no reply comes in time. When the server resumes,
// the lock is free, long before the session would expire.
func TestCloseOfStoppedServer(t *testing.T) {
	start(t)
	s := zkserver.New(t, zkserver.Config{TickTime: tick, MaxSessionTimeout: longest})
	client, key := dial(t, s.Addr(), &zklock.Options{SessionTimeout: longest}), newKey(t)
	take(t, client, key)
	must(t, s.Pause())
	done, cancel := context.WithCancel(context.Background())
	cancel()
	err := receive(t, "Close returns", async(func() error { return client.Close(done) }))
	if !errors.Is(err, holdfast.ErrReleasePending) {
		t.Errorf("Close: %v", err)
	}
	resumed := time.Now()
	must(t, s.Resume())
	noResidue(t, plain(t, s.Addr()), under(key))
	if took := time.Since(resumed); took > longest*3/4 {
		verdict.Fatalf(t, "the lock was free only %v later", took)
	}
}

// TestCloseAfterAnOutage: the connection returns while Close waits.
func TestCloseAfterAnOutage(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		s.take(t)
		s.proxy.RefuseNew()
		s.proxy.Drop()
		result := async(func() error { return s.client.Close(context.WithoutCancel(limited(t))) })
		silent(t, "Close returns while nobody answers", result)
		must(t, s.proxy.Heal())
		must(t, receive(t, "Close returns", result))
		if left := list(t, s.conn, s.parent); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	})
}

// TestCloseDuringReleases: callers release while Close ends the session. What Close confirms, their releases report as
// confirmed.
func TestCloseDuringReleases(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		var locks []*holdfast.Lock
		for range 200 {
			locks = append(locks, take(t, s.client, newKey(t)))
		}
		var releases sync.WaitGroup
		for _, lock := range locks {
			releases.Go(func() { check(t, lock.Release(limited(t))) })
		}
		check(t, s.client.Close(limited(t)))
		releases.Wait()
	})
}

// TestCloseOfMany: the end of a session is one request, however many nodes it has.
func TestCloseOfMany(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		for range 400 {
			take(t, s.client, newKey(t))
		}
		s.proxy.ResetCounts()
		check(t, s.client.Close(limited(t)))
		if n := s.proxy.Count(faultproxy.ToServer, faultproxy.OpDelete); n > 0 {
			t.Errorf("%d nodes deleted one by one at Close", n)
		}
	})
}

// TestSocketOfAnExpiredSession: the client closes the connection on which it learned that its session had expired. A server
// that has told it so leaves its own end open; the fake, whose connections have no halves, does not.
func TestSocketOfAnExpiredSession(t *testing.T) {
	playOnServer(t, nil, func(t *testing.T, s *scene) {
		for range 3 {
			lock := take(t, s.client, newKey(t))
			s.expire()
			receive(t, "the lock is lost", lock.Done())
			take(t, s.client, newKey(t)) // in the next session
		}
		eventually(t, "one connection is left", func() bool { return s.proxy.Conns() == 1 })
	})
}

// outlives returns a goroutine of the library, or "".
func outlives(t *testing.T) string {
	for group := range strings.SplitSeq(goroutines(t.Name()), "\n\n") {
		// go-zookeeper closes its socket again after it has reported that it is done.
		begun := group[strings.LastIndex(strings.TrimRight(group, "\n"), "\n")+1:]
		if group != "" && !strings.Contains(begun, "go-zookeeper/zk.") {
			return group
		}
	}
	return ""
}

// TestCloseLeavesNoGoroutine counts goroutines the moment Close returns, while the client is about to check its watches on
// a new connection.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	start(t)
	for range 20 {
		client, p := proxied(t, nil)
		key := newKey(t)
		take(t, client, key)
		waiting := acquiring(limited(t), client, key)
		p.Drop()
		time.Sleep(20 * time.Millisecond)
		check(t, client.Close(limited(t)))
		<-waiting
		left := outlives(t)
		for tries := 1; left != "" && tries < 50; tries++ { // a goroutine that is done may still be listed
			time.Sleep(2 * time.Millisecond)
			left = outlives(t)
		}
		if left != "" {
			t.Fatalf("a goroutine outlives Close:\n%s", left)
		}
	}
}
