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

// Z3, G10. The client repeats a delete without a reply until it knows the outcome; "no node" then means success.
func TestReleaseLost(t *testing.T) {
	t.Parallel()
	for direction, lose := range losses {
		t.Run(direction, func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				lost := lose(s.proxy, faultproxy.OpDelete, s.parent)
				lock := s.take(t)
				release(t, lock)
				receive(t, "loss", lost)
				if err := lock.Err(); !errors.Is(err, holdfast.ErrReleased) {
					t.Errorf("Err is %v", err)
				}
				s.clean(t)
			})
		})
	}
}

// Z3, G10. "No node" at the first delete means that the lock had been lost, although no watch has reported it.
func TestReleaseOfNodeThatIsGone(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		s.proxy.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
			if f.Kind == faultproxy.KindWatchEvent {
				return faultproxy.DropFrame
			}
			return faultproxy.Pass
		})
		lock := s.take(t)
		s.reads(t, 1)
		s.delete(t, s.newest(t, 1))
		for range 2 {
			if err := lock.Release(limited(t)); !errors.Is(err, holdfast.ErrLost) {
				t.Errorf("Release returns %v, want %v", err, holdfast.ErrLost)
			}
		}
		s.clean(t)
	})
}

// Z3. The session ends while a release waits to be delivered: that completes the release.
func TestReleaseAsSessionExpires(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		lock := s.take(t)
		held, pass := s.proxy.HoldRequest(faultproxy.OpDelete, s.parent)
		defer pass()
		released := async(func() error { return lock.Release(limited(t)) })
		receive(t, "delete", held)
		s.expire()
		pass()
		must(t, receive(t, "Release returns", released))
		next := s.take(t)
		if next.Token() <= lock.Token() {
			t.Errorf("tokens fall from %v to %v", lock.Token(), next.Token())
		}
		release(t, next)
		s.clean(t)
	})
}

// Z3, G6. A reconnect does not end locks that are held, and a repeated release does not touch the next holder's lock.
func TestReleaseLeavesNextHolderAlone(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		lock := s.take(t)
		next := acquiring(limited(t), s.other(t), s.key)
		holds(t, s.conn, s.parent, 2)
		lost := s.proxy.LoseReply(faultproxy.OpDelete, s.parent)
		reconnecting, reconnect := s.proxy.HoldRequest(faultproxy.OpConnect, "")
		defer reconnect()
		released := async(func() error { return lock.Release(limited(t)) })
		receive(t, "loss", lost)
		receive(t, "reconnection", reconnecting)
		theirs := granted(t, next)
		reconnect()
		must(t, receive(t, "Release returns", released))
		must(t, theirs.Verify(limited(t)))
		release(t, theirs)
		s.clean(t)
	})
}

// Z20. The server refuses to delete the node for a while. Release reports that at once. The client goes on trying, even if
// nobody calls Release.
func TestReleaseDenied(t *testing.T) {
	t.Parallel()
	for how, options := range map[string][]holdfast.Option{"release": nil, "TTL": {holdfast.WithTTL(time.Millisecond)}} {
		t.Run(how, func(t *testing.T) {
			logs := &logtest.Recorder{}
			// The first pause is a quarter of the timeout.
			play(t, &zklock.Options{SessionTimeout: 12 * time.Second, Logger: logs.Logger()}, func(t *testing.T, s *scene) {
				s.prepare(t)
				permit := func(perms int32) {
					t.Helper()
					must(t, errOf(s.conn.SetACL(s.parent, zk.WorldACL(perms), -1)))
				}
				permit(zk.PermAll &^ zk.PermDelete)
				lock := s.take(t, options...)
				if how == "TTL" {
					receive(t, "end of the TTL", lock.Done())
				} else if err := lock.Release(limited(t)); !errors.Is(err, holdfast.ErrReleasePending) || !errors.Is(err, holdfast.ErrDenied) {
					t.Errorf("Release returns %v; want %v and %v", err, holdfast.ErrReleasePending, holdfast.ErrDenied)
				}
				eventually(t, "the log reports the refusal", func() bool { return logs.Has("cannot delete own node") })
				holds(t, s.conn, s.parent, 1)
				permit(zk.PermAll)
				release(t, take(t, s.other(t), s.key))
				s.clean(t)
				logs.Check(t, nil, logtest.Want{Text: "cannot delete own node", Level: slog.LevelError, Attrs: "path error"})
			})
		})
	}
}

// Z20. go-zookeeper queues a delete in one session, sends it in the next, and finds no node. That does not mean that
// somebody broke the lock: the node ended with its session.
func TestDeletionQueuedUnderDeadSession(t *testing.T) {
	// The session is to outlast what is in the queue.
	play(t, &zklock.Options{SessionTimeout: longest}, func(t *testing.T, s *scene) {
		lock := s.take(t)
		s.reads(t, 1)
		s.queueUp(t)
		released := async(func() error { return lock.Release(limited(t)) })
		runs(t, "zk.(*Conn).Delete")
		s.proxy.Cut()
		s.expire()
		must(t, s.proxy.Heal())
		must(t, receive(t, "Release returns", released))
		s.clean(t)
	})
}
