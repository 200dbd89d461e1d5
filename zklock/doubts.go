package zklock

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/zklock/internal/zkconn"
)

// A server can diverge from its ensemble (ZOOKEEPER-5010): it goes on showing an
// ephemeral znode that all others have deleted. Whoever waits there for that znode to go
// waits for ever, and a sync does not help. But transactions go by the leader's tree. So
// the leader is asked about what has been in the way for long.
//
// A server can also keep back what a watch should report: with ZOOKEEPER-4799, so from 3.8.4 and 3.9.2 on, it does
// so where the permission to read has been taken away meanwhile. So it is asked, too, whether what has long been
// watched is still as it was.

// doubts are the questions about what has held up this client for long.
type doubts struct {
	engine *engine

	mu        strict.Mutex[strict.Doubts]
	questions map[question]struct{}
	asking    bool      // a task does
	aged      time.Time // when a node's age has led to a question last
	left      time.Time // when a server was left that had diverged
}

// question is whether a znode is there for the leader too; or, if watch is not nil, whether
// what that watches is as it was.
type question struct {
	path  string
	watch *zkconn.Watch
}

func newDoubts(e *engine) *doubts { return &doubts{engine: e, questions: make(map[question]struct{})} }

// askIfOld is ask for a znode that has just been found in the way, if that was made long
// ago. Its age, by clocks that need not agree, decides only whether it is worth
// a question; there is one per session timeout at most.
func (s *doubts) askIfOld(path string, made time.Time) {
	t := s.engine.link.Times()
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
func (s *doubts) ask(path string) { s.put(question{path: path}) }

// askOf finds out, in the background, whether a watch has kept something back.
func (s *doubts) askOf(w *zkconn.Watch) { s.put(question{w.Path, w}) }

func (s *doubts) put(q question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.questions[q] = struct{}{}
	if s.asking {
		return
	}
	s.asking = s.engine.tasks.Go(func(ctx context.Context) {
		for q, ok := s.next(); ok; q, ok = s.next() {
			if q.watch != nil {
				s.compareWatch(ctx, q.watch)
			} else {
				s.compare(ctx, q.path)
			}
		}
	})
}

// next returns a question; none ends the task.
func (s *doubts) next() (question, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for q := range s.questions {
		delete(s.questions, q)
		return q, true
	}
	s.asking = false
	return question{}, false
}

// compare leaves the present server if that has a znode which the leader has
// not. When the answer to a transaction comes, the server has carried out all
// that the leader had before. Being wrong would cost a reconnection.
func (s *doubts) compare(ctx context.Context, path string) {
	l, log := s.engine.link, s.engine.host.Logger()
	err := l.Retry(ctx, nil, func(*zkconn.Session) error {
		w := l.Wire()
		if err := l.Check(ctx, path); !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		_, err := l.Get(ctx, path)
		switch {
		case err == nil && l.Wire() == w && s.mayLeave():
			log.Warn("the server shows a znode that the leader has not, and is left for the next", "path", path)
			l.Leave(w)
		case errors.Is(err, zk.ErrNoNode) && l.IsWatched(path):
			s.untold(w, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, zk.ErrNoNode) && ctx.Err() == nil {
		log.Debug("cannot ask the leader about a znode", "path", path, "error", err)
	}
}

// mayLeave reports whether it is time to leave a server that has diverged: once per session timeout, since the next connection may
// lead to the same server. What else was to be asked about was seen there, too, and will be asked about again.
func (s *doubts) mayLeave() bool {
	t := s.engine.link.Times()
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.left) < t.Session {
		return false
	}
	s.left = time.Now()
	for q := range s.questions {
		if q.watch == nil {
			delete(s.questions, q)
		}
	}
	return true
}

// compareWatch leaves the present server if that has not told what has happened to a watched znode. Whoever watches it hears of
// that at once: the next server would not tell what had happened before.
func (s *doubts) compareWatch(ctx context.Context, watched *zkconn.Watch) (untold bool) {
	w := s.engine.link.Wire()
	if untold = s.engine.link.Recheck(ctx, watched); untold {
		s.untold(w, watched.Path)
	}
	return untold
}

// askNow is for a watch whose znode does not fit what was read after it. Usually something has happened to that by then, and the watch has
// fired. If not, its event may be lost, and whoever looks again would find the same: nobody waits for it who would ask in the end. It
// reports whether that is so.
func (s *doubts) askNow(ctx context.Context, w *zkconn.Watch) (untold bool) {
	select {
	case <-w.Gone:
		return false
	default:
		return s.compareWatch(ctx, w)
	}
}

// untold leaves a server that has not told what has happened to a znode: all is looked at again after that, since there may be
// more that it has not told. Where that is still going on, it will be found anyway.
func (s *doubts) untold(w *zkconn.Wire, path string) {
	if l := s.engine.link; l.LookedAgain(w) {
		s.engine.host.Logger().Warn("the server has not told that a znode has changed, and is left for the next", "path", path)
		l.Leave(w)
	}
}
