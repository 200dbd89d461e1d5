package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

// elections is holdfast's Election: to take a lock is to be elected, and to release it is to resign, and to withdraw then.
var elections = library{onZK.name, func(ctx context.Context, s *servers, p place) (*client, error) {
	e, err := s.zooKeeper(ctx)
	if err != nil {
		return nil, err
	}
	c, err := e.connect(ctx, e.addr(p))
	if err != nil {
		return nil, err
	}
	return &client{take: electedOf(c.Client), queue: ourQueue, close: func() { closeClient(c.Client) }}, nil
}}

// ownLock is the hand-off that is the least which a resignation can take.
var ownLock = library{"holdfast's Lock", onZK.open}

// standing is where elections take place.
var (
	standing = place{name: "ZooKeeper, loopback", ours: elections, times: 1}
	withEtcd = place{name: "ZooKeeper and etcd, loopback", ours: elections, times: 1}
)

// resignations are hand-offs of leaders.
func resignations(waiters int) work {
	w := handoffs(waiters)
	w.what, w.op, w.election = fmt.Sprintf("Resign until the next leads, %d wait", waiters), "resignation", true
	return w
}

// electedOf lets candidates stand.
func electedOf(c *holdfast.Client) func(context.Context, string) (func() error, error) {
	return func(ctx context.Context, key string) (func() error, error) {
		e, err := c.Election(key, nil)
		if err != nil {
			return nil, err
		}
		elected, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- e.Run(ctx, func(ctx context.Context, _ *holdfast.Lock) error {
				close(elected)
				<-ctx.Done()
				return holdfast.ErrWithdrawn
			})
		}()
		select {
		case <-elected:
			return func() error { return e.Resign(ctx) }, nil
		case err := <-ended:
			return nil, err
		}
	}
}

// heat is a number of elections, each with one candidate in this process.
type heat struct{ led chan led }

// led says when the candidate of an election came to lead.
type led struct {
	i   int
	at  time.Time
	err error
}

// newHeat lets candidates stand, each with the client that open returns. It returns when all have one. Their heartbeats are not
// sent at the same time.
func newHeat(ctx context.Context, key string, n int, pace time.Duration, open func() (*holdfast.Client, error)) (*heat, error) {
	h := &heat{led: make(chan led, n)}
	for i := range n {
		c, err := open()
		if err != nil {
			return nil, err
		}
		go func() {
			_, err := electedOf(c)(ctx, heatKey(key, i))
			h.led <- led{i, time.Now(), err}
		}()
		if err := pause(ctx, pace); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func heatKey(key string, i int) string { return fmt.Sprintf("%s-%d", key, i) }

// lead waits until all lead, and returns how long after the call each did.
func (h *heat) lead(ctx context.Context, n int) ([]time.Duration, error) {
	began := time.Now()
	took := make([]time.Duration, n)
	for range n {
		select {
		case l := <-h.led:
			if l.err != nil {
				return nil, l.err
			}
			took[l.i] = max(0, l.at.Sub(began))
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return took, nil
}
