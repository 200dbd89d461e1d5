package zklock

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// A server can diverge from its ensemble (ZOOKEEPER-5010): it shows an ephemeral znode that all others have deleted. A server can
// also suppress the event of a watch (ZOOKEEPER-4799, from 3.8.4 and 3.9.2 on). A waiter would wait for ever in both cases. So after
// two session timeouts the client asks the leader, by a transaction, whether the znode is there.

// doubts are the znodes to ask about.
type doubts struct {
	engine *engine

	mu     strict.Mutex[strict.Doubts]
	paths  map[string]struct{}
	asking bool
	aged   time.Time // when the age of a znode led to a question last
	left   time.Time // when the client left a server
}

// askIfOld asks about a znode that was created long ago: a try does not wait for two session timeouts. It asks once per session
// timeout at most, so clocks that disagree cost little.
func (s *doubts) askIfOld(path string, created time.Time) {
	t := s.engine.link.Times()
	s.mu.Lock()
	due := time.Since(created) >= t.Doubt && time.Since(s.aged) >= t.Session
	if due {
		s.aged = time.Now()
	}
	s.mu.Unlock()
	if due {
		s.ask(path)
	}
}

// ask finds out in the background, one znode after the other, whether the server shows what the leader has.
func (s *doubts) ask(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paths[path] = struct{}{}
	if s.asking {
		return
	}
	s.asking = s.engine.tasks.Go(func(ctx context.Context) {
		for {
			var path string
			s.mu.Lock()
			for path = range s.paths {
				break
			}
			delete(s.paths, path)
			s.asking = path != ""
			s.mu.Unlock()
			if path == "" {
				return
			}
			s.compare(ctx, path)
		}
	})
}

// compare asks about one znode. When the reply to a transaction comes, the server has carried out all that the leader had before, and
// has reported it to the watches of this client.
func (s *doubts) compare(ctx context.Context, path string) {
	l := s.engine.link
	err := l.Retry(ctx, nil, func(*zkconn.Session) error {
		w := l.Wire()
		err := l.Check(ctx, path)
		if !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		if _, err := l.Stat(ctx, path); err == nil || l.Watches(path) {
			s.leave(w, path)
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		s.engine.host.Logger().Debug("cannot ask the leader about a znode", "path", path, "error", err)
	}
}

// leave leaves a server that shows an old znode, or has not reported a change: once per session timeout, because the next connection
// may lead to the same server. On the next connection the client reads all watched znodes again.
func (s *doubts) leave(w *zkconn.Wire, path string) {
	s.mu.Lock()
	due := s.engine.link.Wire() == w && time.Since(s.left) >= s.engine.link.Times().Session
	if due {
		s.left = time.Now()
		clear(s.paths) // their waiters ask again
	}
	s.mu.Unlock()
	if due {
		s.engine.host.Logger().Warn("the server hides a change that the leader has, and is left for the next", "path", path)
		_ = w.Close()
	}
}
