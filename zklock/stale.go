package zklock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A server can diverge from its ensemble (ZOOKEEPER-5010): it goes on showing an
// ephemeral znode that all others have deleted. Whoever waits there for that znode to go
// waits for ever, and a sync does not help. But transactions go by the leader's tree. So
// the leader is asked about what has been in the way for long.

// stale asks the leader about znodes of others that have held up this client for long,
// which only a stale server may still show.
type stale struct {
	engine *engine

	mu     sync.Mutex
	paths  map[string]struct{}
	asking bool      // a task does
	aged   time.Time // when a node's age has led to a question last
}

func newStale(e *engine) *stale { return &stale{engine: e, paths: make(map[string]struct{})} }

// askIfOld is ask for a znode that has just been found in the way, if that was made long
// ago. Its age, by clocks that need not agree, decides only whether it is worth
// a question; there is one per session timeout at most.
func (s *stale) askIfOld(path string, made time.Time) {
	t := s.engine.link.negotiated()
	if time.Since(made) < t.Doubt {
		return
	}
	s.mu.Lock()
	early := time.Since(s.aged) < t.Session
	if !early {
		s.aged = time.Now()
	}
	s.mu.Unlock()
	if !early {
		s.ask(path)
	}
}

// ask finds out, in the background, whether a znode is there for the leader too.
func (s *stale) ask(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paths[path] = struct{}{}
	if s.asking {
		return
	}
	s.asking = s.engine.tasks.Go(func(ctx context.Context) {
		for path := s.next(); path != ""; path = s.next() {
			s.compare(ctx, path)
		}
	})
}

// next returns a path to ask about; "" ends the task.
func (s *stale) next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path := range s.paths {
		delete(s.paths, path)
		return path
	}
	s.asking = false
	return ""
}

// compare leaves the present server if that has a znode which the leader has
// not. When the answer to a transaction comes, the server has carried out all
// that the leader had before. Being wrong would cost a reconnection. It leaves a server, too,
// that has not told of the end of a znode: all is looked at again after that, since there may be more that it has not told of.
func (s *stale) compare(ctx context.Context, path string) {
	l, log := s.engine.link, s.engine.host.Logger()
	err := l.retry(ctx, nil, func(*session) error {
		w := l.present()
		if err := l.check(ctx, path); !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		_, err := l.get(ctx, path)
		switch {
		case err == nil && l.present() == w:
			log.Warn("the server shows a znode that the leader has not, and is left for the next", "path", path)
			l.drop(w)
		case errors.Is(err, zk.ErrNoNode) && l.present() == w && l.watches.awaits(path):
			log.Warn("the server has not told that a znode is gone, and is left for the next", "path", path)
			l.drop(w)
		}
		return err
	})
	if err != nil && !errors.Is(err, zk.ErrNoNode) && ctx.Err() == nil {
		log.Debug("cannot ask the leader about a znode", "path", path, "error", err)
	}
}
