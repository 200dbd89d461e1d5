package main

import (
	"context"

	"github.com/holdfast-go/holdfast/memlock"
)

// memoryClient is holdfast in memory.
func memoryClient(_ context.Context, l *lifetime) (*client, error) {
	c, err := memlock.New(&memlock.Options{Owner: owner})
	if err != nil {
		return nil, err
	}
	return holdfastClient(l, c.Client), nil
}

// channelClient is the smallest lock that takes a context: a channel with room for one value.
func channelClient(context.Context, *lifetime) (*client, error) {
	held := make(chan struct{}, 1)
	return &client{acquire: func(ctx context.Context, _ string) (func() error, error) {
		select {
		case held <- struct{}{}:
			return func() error { <-held; return nil }, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}}, nil
}
