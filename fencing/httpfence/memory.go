package httpfence

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fencing"
)

// Memory is a [Store] for tests: it forgets all tokens when the process ends, and other replicas do not see them. The zero value is
// ready for use.
type Memory struct {
	resources sync.Map // of *claimed by name
}

type claimed struct {
	turn  chan struct{} // has an element during a hold
	token holdfast.Token
}

// Hold implements [Store].
func (m *Memory) Hold(ctx context.Context, resource string, token holdfast.Token) (release func(), err error) {
	if err := fencing.Check(resource, token); err != nil {
		return nil, err
	}
	found, _ := m.resources.LoadOrStore(resource, &claimed{turn: make(chan struct{}, 1)})
	c := found.(*claimed)
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	release = func() { <-c.turn }
	if token < c.token {
		defer release()
		return nil, fencing.Stale(resource, token, c.token)
	}
	c.token = token
	return release, nil
}
