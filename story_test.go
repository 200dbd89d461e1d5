package holdfast_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// story is an engine that tells what it was asked for, in order.
type story struct {
	engine
	mu    sync.Mutex
	lines []string
	lost  map[string]func(error) // of the latest grant
}

// released is a hold that tells its release.
type released struct {
	*story
	key string
}

func (r released) Release(ctx context.Context) error {
	r.tell("release " + r.key)
	return r.engine.Release(ctx)
}

func (s *story) tell(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
}

func (s *story) told() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, ", ")
}

// lose loses the latest grant of a key, if there was one.
func (s *story) lose(key string, cause error) {
	s.mu.Lock()
	lost := s.lost[key]
	s.mu.Unlock()
	if lost != nil {
		lost(cause)
	}
}

// openStory makes a client of an engine that grants each key at once, or as acquire says.
func openStory(t *testing.T, acquire func(context.Context, *driver.Request) error, onEvent ...func(holdfast.Event)) (*holdfast.Client, *story) {
	s := &story{lost: make(map[string]func(error))}
	s.engine.acquire = func(ctx context.Context, req *driver.Request) (driver.Grant, error) {
		s.tell("acquire " + req.Key)
		if acquire != nil {
			if err := acquire(ctx, req); err != nil {
				return driver.Grant{}, err
			}
		}
		s.mu.Lock()
		s.lost[req.Key] = req.Lost
		s.mu.Unlock()
		g := s.grant()
		g.Hold = released{s, req.Key}
		return g, nil
	}
	return s.open(t, driver.Config{}, onEvent...), s
}
