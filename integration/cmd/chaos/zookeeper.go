package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

const (
	// zooKeeperRoot is the parent of a run's locks.
	zooKeeperRoot = "/holdfast-chaos"
	// zooKeeperTick is the servers' tick; a session lasts ten of them.
	zooKeeperTick  = 200 * time.Millisecond
	zooKeeperLease = 10 * zooKeeperTick
)

// ensembleStage is an ensemble of three, with proxies from each slot to each server, and proxies between the servers.
type ensembleStage struct {
	dir      string
	holds    func(slot int) bool
	ensemble *zkserver.Ensemble
	slots    zooKeeperSlots
	proxies  []*faultproxy.Proxy // one slot after the other
}

func startZooKeeper(ctx context.Context, c casting) (stage, error) {
	// The more a follower may fall behind, the longer it serves alone; the less, the sooner it hangs up.
	limits := []int{5, 10}
	ensemble, err := zkserver.StartEnsemble(ctx, zkserver.Config{
		TickTime:  zooKeeperTick,
		SyncLimit: limits[c.Seed%2],
		InitLimit: 6, // an election may fail for so long
	})
	if err != nil {
		return nil, err
	}
	s := &ensembleStage{dir: c.Dir, holds: c.Holds, ensemble: ensemble}
	for n := range c.Slots {
		slot := &zooKeeperSlot{n: n}
		for _, server := range ensemble.Addrs() {
			w, err := newProxyWire(server)
			if err != nil {
				s.close()
				return nil, err
			}
			slot.wires, s.proxies = append(slot.wires, w), append(s.proxies, w.proxy)
		}
		s.slots = append(s.slots, slot)
	}
	return s, nil
}

func (s *ensembleStage) deck() []nemesis.Kind {
	return []nemesis.Kind{
		nemesis.LostReply, nemesis.LostRequest, nemesis.Cut, nemesis.BlackHole, nemesis.OneWayIn, nemesis.OneWayOut,
		nemesis.HalfOpen, nemesis.Stall,
		nemesis.LeaderKilled, nemesis.LeaderPaused, nemesis.FollowerPaused, nemesis.RollingRestart,
		nemesis.ClientPaused, nemesis.ClientKilled, nemesis.ClientClosed, nemesis.ClockJump, nemesis.BreakHolder,
		nemesis.FollowerCutOff, nemesis.FollowerCutOff, // the faults that a lock on an ensemble most likely handles wrongly
		nemesis.LeaderCutOff, nemesis.LinkCut, nemesis.LinkTurned,
	}
}

func (s *ensembleStage) servers() int { return zkserver.EnsembleSize }

func (s *ensembleStage) login(slot int) login {
	l := s.direct()
	l.Servers = nil
	for _, p := range s.proxies[slot*zkserver.EnsembleSize:][:zkserver.EnsembleSize] {
		l.Servers = append(l.Servers, p.Addr())
	}
	return l
}

func (s *ensembleStage) direct() login {
	return login{Engine: "zookeeper", Servers: s.ensemble.Addrs(), Lease: zooKeeperLease}
}

// stall is the delay of a client whose server shows a znode that no other server has (ZOOKEEPER-5010): it waits two session
// timeouts for the node to go; within another one it asks another server and leaves this one.
func (s *ensembleStage) stall() time.Duration { return 3 * zooKeeperLease }

func (s *ensembleStage) strike(ctx context.Context, f nemesis.Fault) (string, func(context.Context) error, error) {
	if f.Kind.OfServers() {
		return s.strikeServers(ctx, f)
	}
	return s.slots[f.Client].strike(f)
}

func (s *ensembleStage) heal(ctx context.Context) error {
	errs := []error{s.ensemble.HealAll()}
	for _, slot := range s.slots {
		for _, w := range slot.wires {
			errs = append(errs, w.heal())
		}
	}
	for _, server := range s.ensemble.Servers() {
		if server.PID() == 0 {
			errs = append(errs, server.Launch())
		} else {
			errs = append(errs, server.Resume())
		}
	}
	return errors.Join(append(errs, s.ensemble.WaitReady(ctx))...)
}

// close saves the servers' logs for failed runs.
func (s *ensembleStage) close() {
	for _, p := range s.proxies {
		_ = p.Close()
	}
	for i, server := range s.ensemble.Servers() {
		text, err := os.ReadFile(server.LogPath())
		if err == nil && s.dir != "" {
			err = os.WriteFile(filepath.Join(s.dir, fmt.Sprintf("server-%d.log", i)), text, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	s.ensemble.Close()
}

// openZooKeeper opens a client of ZooKeeper, in a client process.
func openZooKeeper(ctx context.Context, config clientConfig) (locker, error) {
	opts := &zklock.Options{
		Root:           zooKeeperRoot,
		SessionTimeout: cmp.Or(config.Login.Session, config.Login.Lease),
		Owner:          config.Owner,
		Heartbeat:      config.Login.Heartbeat,
		Margin:         config.Login.Margin,
	}
	if c := config.Login.Credentials; c != "" {
		opts.Auth = []zklock.Auth{{Scheme: "digest", Credentials: c}}
	}
	client, err := zklock.Dial(ctx, config.Login.Servers, opts)
	if err != nil {
		return locker{}, err
	}
	return locker{Client: client.Client}, nil
}
