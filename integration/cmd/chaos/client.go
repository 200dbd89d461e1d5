package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/history"
	ends "github.com/holdfast-go/holdfast/internal/outcome"
)

// closePatience bounds the closing of a client.
const closePatience = 15 * time.Second

// clientConfig is the configuration of a client process, sent as JSON.
type clientConfig struct {
	Process string // such as "3.2": the second process in slot 3
	Owner   string // of its locks; the next process in the slot has the same owner, and processes in other slots may
	Login   login
	Keys    []string
	Workers int
	// Observers is how many there are. The first stay with one key each, the last goes from key to key.
	Observers int
	Succeeds  bool // a killed process of this slot, which may have left locks
	Seed      uint64
	Quiet     bool // there are no faults, and holds are long
	// Reclaims: one of so many calls of Acquire by workers reclaims. Workers also reclaim all keys after their previous process was
	// killed. Default 0: usualReclaims.
	Reclaims int
	// Look is how often a holder looks at its lock, at most twice as seldom. Default 0: lookEvery.
	Look time.Duration
}

// client is what a client process does: workers that acquire and release locks, observers, and commands:
//
//	jump DURATION    set the wall clock of this process forward, or back, when it holds a lock
//	linger DURATION  keep locks for at least that long that are held now or within the first eighth of that time
//	stop             finish all calls, start no more, and report to be idle; observers go on
//	close            after stop: end
//	quit             close the client while it is in use, and end
//	break KEY        break the grant of a key as an operator would
//	break-now KEY    break it with BreakNow
//	break-insistently KEY  break it again and again while the grant is there
//	bury OWNER       break the grants of an owner whose process has ended
//	take KEY         acquire the lock of a key, write to its register, and release it
//	audit KEY        try for as many grants as a key has, in each of its modes, and for one more
type client struct {
	surroundings
	config   clientConfig
	clock    *drivertest.Clock
	report   *reporter
	locker   locker
	opened   chan struct{} // closed when locker can be used
	ctx      context.Context
	stopping context.Context // ends with the command to stop
	stop     context.CancelFunc
	closing  context.Context // ends with the command to close
	close    context.CancelFunc
	quits    atomic.Bool  // it was told to quit
	shutting atomic.Bool  // the client is being closed
	holding  atomic.Int64 // locks that workers hold
	linger   atomic.Pointer[linger]
	tasks    sync.WaitGroup
}

// linger makes holds that began before one time last until another.
type linger struct{ began, until int64 }

// surroundings are the functions of the process that a client runs in: a process of the operating system or of a simulation.
type surroundings struct {
	now    func() int64         // for stamps
	record func(history.Record) // takes its records
	open   func(context.Context, clientConfig, driver.Clock) (locker, error)
	say    func(format string, args ...any) // for the log
	fail   func(error)                      // ends the process, which has failed
}

// newClient makes a client. Its process is gone when ctx ends.
func newClient(ctx context.Context, config clientConfig, in surroundings) *client {
	c := &client{
		surroundings: in,
		config:       config,
		clock:        &drivertest.Clock{},
		report:       &reporter{process: config.Process, now: in.now, record: in.record},
		opened:       make(chan struct{}),
		ctx:          ctx,
	}
	c.stopping, c.stop = context.WithCancel(c.ctx)
	c.closing, c.close = context.WithCancel(c.ctx)
	return c
}

// run is the life of the process, from the first connection to the last.
func (c *client) run() error {
	defer c.stop()
	defer c.close()
	if err := c.connect(); err != nil {
		if c.stopping.Err() != nil {
			return nil // no server was reachable for all of its life
		}
		return err
	}
	for i := range c.config.Workers {
		w := &worker{client: c, random: rand.New(rand.NewPCG(c.config.Seed, uint64(i)))}
		c.tasks.Go(w.run)
	}
	var observers sync.WaitGroup
	for i := range c.config.Observers {
		o := &observer{client: c, random: rand.New(rand.NewPCG(c.config.Seed, uint64(1000+i)))}
		observers.Go(func() { o.run(i) })
	}
	defer observers.Wait()
	<-c.stopping.Done()
	defer c.tasks.Wait()
	bound := closePatience
	if c.quits.Load() {
		if random := rand.New(rand.NewPCG(c.config.Seed, 2000)); random.IntN(2) == 0 {
			bound = time.Duration(random.Int64N(int64(c.config.Login.Lease)))
		}
	} else {
		c.tasks.Wait()
		c.report.write(history.Record{At: c.now(), What: history.Idle})
		<-c.closing.Done()
	}
	return c.shut(bound)
}

// shut closes the client.
func (c *client) shut(bound time.Duration) error {
	ctx, cancel := context.WithTimeout(c.ctx, bound)
	defer cancel()
	c.shutting.Store(true)
	invoked := c.report.invoke(history.Record{Call: history.Close, TTL: int64(bound)})
	err := c.locker.Close(ctx)
	invoked.returned(err, 0, "")
	unconfirmed := (c.quits.Load() || c.config.Login.Mode != dynamolock.FailOpen) && isAny(err, holdfast.ErrReleasePending, holdfast.ErrLost)
	// A fault may have disconnected the client. Then the engine ends its locks later, and the stage looks for grants that remain.
	if err == nil || unconfirmed || errors.Is(err, holdfast.ErrDisconnected) {
		return nil
	}
	return fmt.Errorf("close: %w", err)
}

// connect retries without limit: the faults may have begun.
func (c *client) connect() error {
	for {
		l, err := c.open(c.stopping, c.config, c.clock)
		switch {
		case err == nil:
			c.locker = l
			close(c.opened)
			return nil
		case c.stopping.Err() != nil, errors.Is(err, holdfast.ErrInvalid):
			return err
		}
		c.say("once more: %v", err)
		sleep(c.stopping, 50*time.Millisecond)
	}
}

// obey executes a command.
func (c *client) obey(line string) error {
	verb, argument, _ := strings.Cut(line, " ")
	var task func(key string) error
	if verb == "close" {
		c.close()
		return nil
	}
	if c.stopping.Err() != nil {
		return nil
	}
	switch verb {
	case "quit":
		c.quits.Store(true)
		fallthrough
	case "stop":
		c.stop()
		return nil
	case "jump":
		d, err := time.ParseDuration(argument)
		if err == nil {
			c.tasks.Go(func() { c.jump(d) })
		}
		return err
	case "linger":
		d, err := time.ParseDuration(argument)
		if now := c.now(); err == nil {
			c.linger.Store(&linger{began: now + int64(d)/8, until: now + int64(d)})
		}
		return err
	case "break":
		task = func(key string) error { return c.breakGrant(key, false, false) }
	case "break-now":
		task = func(key string) error { return c.breakGrant(key, true, false) }
	case "break-insistently":
		task = func(key string) error { return c.breakGrant(key, false, true) }
	case "bury":
		task = c.bury
	case "take":
		task = c.take
	case "audit":
		task = c.audit
	default:
		return errors.New("unknown command")
	}
	c.tasks.Go(func() {
		select {
		case <-c.opened:
		case <-c.stopping.Done():
			return
		}
		if err := task(argument); err != nil {
			c.fail(fmt.Errorf("%s: %w", line, err))
		}
	})
	return nil
}

// sleep waits, and reports whether ctx had not ended by then.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// write writes a grant's token to the register of its key.
func (c *client) write(key string, token uint64, shared bool) {
	c.report.write(history.Record{What: history.Wrote, Key: key, Token: token, Mode: history.Mode{Shared: shared}})
}

// held records that a lock was held at a moment.
func (c *client) held(at int64, key string, token uint64) {
	c.report.write(history.Record{At: at, What: history.Held, Key: key, Token: token})
}

// lostBy records the end of a lock that was not released.
func (c *client) lostBy(err error, key string, token uint64, term bool) {
	cause := ends.End(err)
	if c.shutting.Load() && errors.Is(err, holdfast.ErrReleased) && !term { // a term lasts until lead has returned
		cause = history.ByClose
	}
	c.report.write(history.Record{At: c.now(), What: history.Lost, Key: key, Token: token, Cause: cause})
}
