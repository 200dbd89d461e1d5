package zklock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A creation whose reply was lost may still be carried out long after, even when
// it was repeated elsewhere, and the lock that came of it is released. ZooKeeper
// refuses what arrives over a server that the session has left. But a server that
// was stopped finds, when it goes on, the request on one connection and the
// client's return to it on another, and takes both: then the session is there again
// when the request comes to the leader. (Seen with ZooKeeper 3.8.0, in a third of
// all tries. The client need not even know that it has returned, if it had no
// patience, and went on to another server.) The node that is made belongs to a
// session that lives, and nobody knows of it: the queue would stand still until the
// session ends. So it is looked for, whenever the session has come to a server, and
// every so often. Where the session is not, that is refused, and the connection
// ends; the next one looks.

// strayTime is for how many session timeouts: a follower that is stopped for
// longer than its leader's syncLimit ticks is left by it, and passes nothing on.
// A session timeout is at least two ticks. The time between two looks begins with
// a quarter of a session timeout, and doubles up to longestPause of them.
const (
	strayTime    = 64
	longestPause = 2
)

// stray is a creation that may still be carried out.
type stray struct {
	sess   *session
	parent string
	guid   string // as it stands in node names
	keep   string // the node with this guid that is not stray; "": there is none
	until  time.Time
}

// strays are those of a client.
type strays struct {
	b *engine

	mu      sync.Mutex
	all     []stray
	pause   time.Duration            // until the next look
	timer   interface{ Stop() bool } // of that
	stopped bool
}

// expect has nodes with a guid, other than keep, deleted when they come.
func (s *strays) expect(sess *session, parent, guid, keep string) stray {
	one := stray{sess: sess, parent: parent, guid: guid, keep: keep, until: time.Now().Add(strayTime * sess.timeout())}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, one)
	s.armLocked(sess.timeout() / 4)
	return one
}

// purge deletes, in the background, what has come of creations with a guid, and
// what will.
func (s *strays) purge(sess *session, parent, guid string) {
	one := s.expect(sess, parent, guid, "")
	if s.b.link.wake() == nil { // else see reopened
		s.b.spawn(func(ctx context.Context) { s.remove(ctx, sess, parent, []stray{one}) })
	}
}

// reopened is called when the session has come to a server.
func (s *strays) reopened() {
	if sess := s.look(); sess != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.armLocked(sess.timeout() / 4)
	}
}

// armLocked has the next look made after a pause.
func (s *strays) armLocked(pause time.Duration) {
	if s.stopped {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.pause = pause
	s.timer = s.b.host.AfterFunc(pause, s.again)
}

// again looks once more. While the connection is down there is nothing to be
// seen, and when it is up again, it begins anew.
func (s *strays) again() {
	if sess := s.look(); sess != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.armLocked(min(2*s.pause, longestPause*sess.timeout()))
	}
}

// stop is called when the client closes, and its session ends.
func (s *strays) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.timer != nil {
		s.timer.Stop()
	}
}

// look deletes, in the background, the strays of the present session, and returns
// that; nil if there can be none, or the connection is down.
func (s *strays) look() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.b.link.current()
	if sess == nil || s.b.link.wake() != nil {
		return nil
	}
	byParent := s.expectedLocked(sess, time.Now())
	if len(byParent) == 0 {
		return nil
	}
	for parent, some := range byParent {
		s.b.spawn(func(ctx context.Context) { s.remove(ctx, sess, parent, some) })
	}
	return sess
}

// expectedLocked returns, by their parents, those that may still come in a
// session, and forgets all others.
func (s *strays) expectedLocked(sess *session, now time.Time) map[string][]stray {
	s.all = slices.DeleteFunc(s.all, func(one stray) bool { return one.sess != sess || now.After(one.until) })
	byParent := make(map[string][]stray)
	for _, one := range s.all {
		byParent[one.parent] = append(byParent[one.parent], one)
	}
	return byParent
}

// remove deletes what there is below a parent. The sync, which goes the way of a
// write, makes the list that follows it see what was created before.
func (s *strays) remove(ctx context.Context, sess *session, parent string, some []stray) {
	link := s.b.link
	names, err := retry(ctx, link, func(ctx context.Context) ([]string, error) {
		if !link.same(sess) {
			return nil, nil
		}
		if err := link.sync(ctx, parent); err != nil {
			return nil, err
		}
		return link.children(ctx, parent)
	})
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, zk.ErrNoNode) {
			s.b.host.Logger().Error("cannot look for nodes to delete", "path", parent, "error", err)
		}
		return
	}
	for _, name := range names {
		for _, one := range some {
			if strings.Contains(name, one.guid) && name != one.keep {
				s.b.discard(sess, parent+"/"+name)
			}
		}
	}
}
