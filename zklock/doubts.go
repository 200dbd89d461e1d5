package zklock

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/strict"
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
}

// askIfOld asks about a znode that was created long ago: a try does not wait for two session timeouts. It asks at most once per session
// timeout, so that clocks that disagree cost little.
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

// ask finds out in the background whether the server shows what the leader has.
func (s *doubts) ask(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paths[path] = struct{}{}
	if !s.asking {
		s.asking = s.engine.tasks.Go(s.run)
	}
}

// run asks about znodes, and leaves a server that hides a change. It does so once per session timeout, because the next connection may
// lead to the same server.
func (s *doubts) run(ctx context.Context) {
	link := s.engine.link
	for {
		s.mu.Lock()
		paths := s.paths
		s.paths = make(map[string]struct{})
		s.asking = len(paths) > 0
		s.mu.Unlock()
		if len(paths) == 0 {
			return
		}
		var leave sync.Once
		atOnce(ctx, maps.Keys(paths), func(path string) {
			if w := link.Hides(ctx, path); w != nil {
				leave.Do(func() {
					s.engine.host.Logger().Warn("the server hides a change that the leader has, and is left for the next", "path", path)
					_ = w.Close() // on the next connection the client reads all watched znodes again
				})
			}
		})
		backoff.Sleep(ctx, s.engine.host, link.Times().Session, nil)
	}
}
