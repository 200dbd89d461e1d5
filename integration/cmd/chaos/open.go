package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/zklock"
)

// clientConfig is the configuration of a client process, sent as JSON.
type clientConfig struct {
	Process string // such as "3.2": the second process in slot 3
	Owner   string // of its locks; the next process in the slot has the same, and those in other slots may
	Login   login
	Keys    []string
	Workers int
	// Observers is how many there are. The first stay with one key each, the last goes from key to key.
	Observers int
	Succeeds  bool // a killed process of this slot, which may have left locks
	Seed      uint64
	Sabotage  sabotage
	Quiet     bool // there are no faults, and holds are long
	// Reclaims is one of how many calls of Acquire by workers reclaims, besides those for what a killed process may have left.
	// Default 0: usualReclaims.
	Reclaims int
	// Look is how often a holder looks at its lock, at most twice as seldom. Default 0: lookEvery.
	Look time.Duration
}

// open connects to an engine, in a client process. The clock stands for both
// of the machine's clocks.
func open(ctx context.Context, config clientConfig, clk driver.Clock) (locker, error) {
	ctx = clock.With(ctx, clk)
	switch config.Login.Engine {
	case "zookeeper":
		return openZooKeeper(ctx, config)
	case "dynamodb":
		return openDynamo(ctx, config)
	}
	return locker{}, fmt.Errorf("engine %q: want zookeeper or dynamodb", config.Login.Engine)
}

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
	if config.Sabotage == noHeartbeats {
		opts.Heartbeat = -1
	}
	client, err := zklock.Dial(ctx, config.Login.Servers, opts)
	if err != nil {
		return locker{}, err
	}
	return locker{Client: client.Client}, nil
}
