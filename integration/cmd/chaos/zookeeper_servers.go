package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// strikeServers begins a fault of the servers. The fault is over when they have recovered.
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
	// On a busy machine a leader may step down without a fault.
	leader, _, err := s.ensemble.Roles(ctx)
	if err != nil {
		return "", nil, err
	}
	follower := s.slots.follower(leader, f, s.holds)
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
	case nemesis.LinkTurned:
		return s.turn(leader, follower, f)
	case nemesis.RollingRestart:
		return "all servers, the leader last", wait(ctx, func(ctx context.Context) error { return s.restartAll(ctx, leader) }), nil
	}
	return "", nil, fmt.Errorf("%s: not known here", f.Kind)
}

// cutOff separates one server from the others.
func (s *ensembleStage) cutOff(server int, f nemesis.Fault) (string, func(context.Context) error, error) {
	target, end := s.slots.apart(server, f, func() { s.ensemble.Isolate(server) }, s.rejoin)
	return target, end, nil
}

// turn holds back the leader's messages to a follower, for longer than a ping takes in any supported network. Then the held messages
// arrive, and the follower's replies are lost.
func (s *ensembleStage) turn(leader, follower int, f nemesis.Fault) (string, func(context.Context) error, error) {
	// From a quarter of a session, which is some pings, to just under the time after which the follower hangs up.
	held := zooKeeperLease/4 + time.Duration(f.Pick%8)*zooKeeperTick/4
	target, end := s.slots.apart(follower, f, func() { s.ensemble.HoldBack(leader, follower) }, s.rejoin)
	turned := time.AfterFunc(held, func() { s.ensemble.Turn(leader, follower) })
	return fmt.Sprintf("server %d to %s, held back for %v", leader, target, held), func(ctx context.Context) error {
		turned.Stop()
		return end(ctx)
	}, nil
}

// wait starts a slow step, and returns a function that waits for its end.
func wait(ctx context.Context, f func(context.Context) error) func(context.Context) error {
	ctx = context.WithoutCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	return func(ctx context.Context) error {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// rejoin ends all partitions between servers.
func (s *ensembleStage) rejoin(context.Context) error { return s.ensemble.HealAll() }

// restartAll restarts the servers one after another, each when the others serve.
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
