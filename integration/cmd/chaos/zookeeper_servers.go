package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// strikeServers begins a fault of the servers. It is over when they have recovered from it.
func (s *ensembleStage) strikeServers(ctx context.Context, f nemesis.Fault) (string, func(context.Context) error, error) {
	target, end, err := s.begin(ctx, f)
	if err != nil {
		return "", nil, err
	}
	return target, func(ctx context.Context) error {
		if err := end(ctx); err != nil {
			return err
		}
		return s.ensemble.WaitReady(ctx)
	}, nil
}

func (s *ensembleStage) begin(ctx context.Context, f nemesis.Fault) (string, func(context.Context) error, error) {
	leader, err := s.ensemble.Leader(ctx)
	if err != nil {
		return "", nil, err
	}
	follower := s.follower(leader, f)
	servers := s.ensemble.Servers()
	name := func(i int) string { return fmt.Sprintf("server %d", i) }
	switch f.Kind {
	case nemesis.FollowerCutOff:
		return s.cutOff(follower, f)
	case nemesis.LeaderCutOff:
		return s.cutOff(leader, f)
	case nemesis.LinkCut:
		s.ensemble.IsolatePair(leader, follower)
		return fmt.Sprintf("%s and %s", name(leader), name(follower)), s.rejoin, nil
	case nemesis.LeaderKilled:
		servers[leader].Kill()
		return name(leader), func(context.Context) error { return servers[leader].Launch() }, nil
	case nemesis.LeaderPaused, nemesis.FollowerPaused:
		i := leader
		if f.Kind == nemesis.FollowerPaused {
			i = follower
		}
		if err := servers[i].Pause(); err != nil {
			return "", nil, err
		}
		return name(i), func(context.Context) error { return servers[i].Resume() }, nil
	case nemesis.RollingRestart:
		ctx := context.WithoutCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- s.restartAll(ctx, leader) }()
		return "all servers, the leader last", func(ctx context.Context) error {
			select {
			case err := <-done:
				return err
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}, nil
	}
	return "", nil, fmt.Errorf("%s: not known here", f.Kind)
}

// follower is one of those that follow. Rather than any it is one that has clients.
func (s *ensembleStage) follower(leader int, f nemesis.Fault) int {
	var followers []int
	for i := range zkserver.EnsembleSize {
		if i != leader {
			followers = append(followers, i)
		}
	}
	chosen := followers[f.Server%len(followers)]
	if len(s.clientsOf(chosen)) == 0 {
		return followers[(f.Server+1)%len(followers)]
	}
	return chosen
}

// cutOff separates one server from the others. Its clients are cut off with it, or else all clients may go where they like: then
// those that notice soon change sides.
func (s *ensembleStage) cutOff(server int, f nemesis.Fault) (string, func(context.Context) error, error) {
	target := fmt.Sprintf("server %d", server)
	if f.Pick%4 == 0 {
		s.ensemble.Isolate(server)
		return target, s.rejoin, nil
	}
	var ends []func(context.Context) error
	with := s.clientsOf(server)
	for _, slot := range s.slots {
		var far []*zooKeeperWire
		if slices.Contains(with, slot) {
			target += fmt.Sprintf(", client %d", slot.n)
			far = slices.Concat(slot.wires[:server], slot.wires[server+1:])
		} else {
			far = slot.wires[server : server+1]
		}
		ends = append(ends, afflict(far, (*faultproxy.Proxy).Cut))
	}
	s.ensemble.Isolate(server)
	return target, func(ctx context.Context) error {
		errs := []error{s.rejoin(ctx)}
		for _, end := range ends {
			errs = append(errs, end(ctx))
		}
		return errors.Join(errs...)
	}, nil
}

// rejoin ends all partitions between servers.
func (s *ensembleStage) rejoin(context.Context) error { return s.ensemble.HealAll() }

// restartAll restarts one server after the other, each when the others serve.
func (s *ensembleStage) restartAll(ctx context.Context, leader int) error {
	ctx, cancel := context.WithTimeout(ctx, strikePatience)
	defer cancel()
	servers := s.ensemble.Servers()
	for i := range servers {
		server := servers[(leader+1+i)%len(servers)]
		server.Stop(ctx)
		if err := server.Start(ctx); err != nil {
			return err
		}
		if err := s.ensemble.WaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}
