package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/history"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// settings describe a run.
type settings struct {
	Engine  string
	Seed    uint64
	Length  time.Duration // of the time with clients running, including the calm tail
	Grants  int           // that there are at least, even if that takes longer on a busy machine
	Clients int
	Workers int // of each client, on average
	Keys    int
	Kinds   []nemesis.Kind // the faults; empty: all faults of the stage
	Quiet   bool           // no faults, and long holds
	Owners  int            // how many names of owners the clients share, and reclaim locks by; 0: each client has its own
	Dir     string         // for history and logs; it must exist
}

// startPatience bounds the start of servers.
const startPatience = 2 * time.Minute

// run is a run under way.
type run struct {
	settings
	world
	stage    stage
	journal  *journal
	lease    time.Duration
	shape    nemesis.Shape
	keys     []string
	slots    []*slot
	operator process
	began    time.Time

	mu       sync.Mutex
	problems []error
	passed   int // planned faults that were skipped
}

// play performs a whole run. It returns an error if the run could not be performed; the verdict has the findings.
func play(ctx context.Context, s settings) (*verdict, error) { return playIn(ctx, s, machine(s)) }

func playIn(ctx context.Context, s settings, w world) (*verdict, error) {
	r, err := prepare(ctx, s, w)
	if err != nil {
		return nil, err
	}
	defer r.close()
	err = r.perform(ctx)
	r.killAll()
	if err := errors.Join(err, r.journal.close()); err != nil {
		return nil, err
	}
	return r.judge(), nil
}

// prepare starts everything that a run needs except the clients.
func prepare(ctx context.Context, s settings, w world) (_ *run, err error) {
	r := &run{settings: s, world: w}
	r.keys = s.keys()
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.journal, err = newJournal(w.history, w.now); err != nil {
		return nil, err
	}
	if r.stage, err = r.begin(ctx); err != nil {
		return nil, err
	}
	r.lease, r.shape = r.stage.direct().Lease, s.shape(r.stage)
	return r, nil
}

// close ends the processes and servers of a run.
func (r *run) close() {
	r.killAll()
	if r.stage != nil {
		r.stage.close()
	}
}

// begin starts the servers.
func (r *run) begin(ctx context.Context) (stage, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	st, err := r.start(ctx, casting{Slots: r.Clients, Holds: r.holds, Seed: r.Seed, Dir: r.Dir})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", r.Engine, err)
	}
	return st, nil
}

func (r *run) holds(slot int) bool {
	p := r.slots[slot].process()
	return p != nil && r.journal.holds(p.name())
}

// perform does everything between the start of the servers and the verdict.
func (r *run) perform(ctx context.Context) error {
	var err error
	operator := r.config("operator", "operator", r.stage.direct(), 0)
	operator.Observers = len(r.keys) + 1
	if r.operator, err = r.process(r.journal, operator); err != nil {
		return err
	}
	for i := range r.Clients {
		s := &slot{run: r, n: i}
		if err := s.start(); err != nil {
			return err
		}
		r.slots = append(r.slots, s)
	}
	r.began = time.Now()
	watching, stopWatching := context.WithCancelCause(ctx)
	defer stopWatching(nil)
	var watch sync.WaitGroup
	watch.Go(func() { r.watch(watching, stopWatching) })
	err = r.faults(watching)
	stopWatching(nil)
	watch.Wait()
	if cause := context.Cause(watching); err != nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if err != nil {
		return err
	}
	return r.finish(ctx)
}

// faults performs the plan and waits until the clients had a calm time.
func (r *run) faults(ctx context.Context) error {
	r.perpetrate(ctx, nemesis.Draw(r.Seed, r.shape))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	healing, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := r.stage.heal(healing); err != nil {
		return fmt.Errorf("heal: %w", err)
	}
	r.journal.note(history.Calm, "")
	sleep(ctx, max(2*r.lease, time.Until(r.began.Add(r.Length))))
	for r.journal.granted() < r.Grants && time.Since(r.began) < startPatience && sleep(ctx, 20*time.Millisecond) {
	}
	return context.Cause(ctx)
}

// shape describes the run for the plan.
func (s *settings) shape(st stage) nemesis.Shape {
	kinds := s.Kinds
	switch {
	case s.Quiet:
		kinds = nil
	case len(kinds) == 0:
		kinds = st.deck()
	}
	return nemesis.Shape{
		Clients: s.Clients, Servers: st.servers(), Keys: s.Keys,
		Lease: st.direct().Lease, Length: s.Length, Deck: kinds,
	}
}

// settle is how long a call may still take after the last fault: each request in the queue has a turn, a dead holder's lease
// must run out, and a hold may be longer than a lease. If the faults leave a server with which a client cannot continue,
// all clients may be connected to it and in one queue, where each finds out only when its turn comes. In a quiet run all
// holds are long, and a client may wait for all other clients, which wait for each other with some of their keys held.
func (r *run) settle() time.Duration {
	each := r.stage.stall()
	if r.Quiet {
		each = mostTogether * longestHold(r.lease)
	}
	return 10*r.lease + 10*time.Second + time.Duration(r.Clients)*each
}

// finish ends the clients cleanly, and checks that they leave no grant behind.
func (r *run) finish(ctx context.Context) error {
	r.idle(ctx)
	r.problem(r.inspect(ctx))
	var ends sync.WaitGroup
	for _, s := range r.slots {
		ends.Go(func() {
			_, err := s.finish(ctx, r.settle()+closePatience, "stop", "close")
			r.problem(err)
		})
	}
	ends.Wait()
	r.problem(finish(ctx, r.operator, r.settle()+closePatience, "stop", "close"))
	asking, cancel := context.WithTimeout(ctx, r.settle())
	defer cancel()
	left, err := r.stage.residue(asking, r.keys)
	r.problem(err)
	for _, line := range left {
		r.problem(fmt.Errorf("left behind: %s", line))
	}
	found, err := races(r.Dir)
	r.problem(err)
	for _, report := range found {
		r.problem(fmt.Errorf("data race: %s", report))
	}
	return context.Cause(ctx)
}

// idle makes the clients end their work, and returns when only observers are left. A client that does not end it is
// reported, and killed by finish.
func (r *run) idle(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.settle(), errors.New("it has not ended its work after the stop command"))
	defer cancel()
	var ends sync.WaitGroup
	for _, s := range r.slots {
		ends.Go(func() { r.problem(s.idle(ctx)) })
	}
	ends.Wait()
}

// inspect has a fresh client acquire and release every key, waits until observers were told that all keys are free, and has the client
// try for all grants of each key. The judge knows how many it must get.
func (r *run) inspect(ctx context.Context) error {
	p, err := r.process(r.journal, r.config("fresh", "fresh", r.stage.direct(), 0))
	if err != nil {
		return err
	}
	defer p.kill()
	errs := []error{r.errands(ctx, p, "take", history.Release)}
	for began := time.Now(); r.journal.behind() > 0 && time.Since(began) < r.settle() && sleep(ctx, 20*time.Millisecond); {
	}
	r.journal.note(history.Quiet, "")
	errs = append(errs, r.errands(ctx, p, "audit", history.Try), finish(ctx, p, r.settle()+closePatience, "stop", "close"))
	return errors.Join(errs...)
}

// errands has a client run a command for each key, and waits for the return of a call of each.
func (r *run) errands(ctx context.Context, p process, command, call string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.settle(), errors.New("a fresh client waits in vain"))
	defer cancel()
	for _, key := range r.keys {
		from := r.journal.size()
		if err := p.tell("%s %s", command, key); err != nil {
			return err
		}
		if _, err := r.journal.await(ctx, from, func(rec history.Record) bool {
			return rec.Process == p.name() && rec.Key == key && rec.What == history.Return && rec.Call == call
		}); err != nil {
			return fmt.Errorf("%s %s, after the run: %w", command, key, err)
		}
	}
	return nil
}

// watch checks that no process ends on its own.
func (r *run) watch(ctx context.Context, fail context.CancelCauseFunc) {
	for sleep(ctx, 200*time.Millisecond) {
		for _, s := range r.slots {
			if err := s.died(); err != nil {
				fail(err)
			}
		}
		if err := died(r.operator); err != nil {
			fail(err)
		}
	}
}

// problem notes an error that the history does not show; nil is ignored.
func (r *run) problem(err error) {
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.problems = append(r.problems, err)
	}
}

// killAll ends every process that is left.
func (r *run) killAll() {
	for _, s := range r.slots {
		s.kill()
	}
	if r.operator != nil {
		r.operator.kill()
	}
}

// config is the configuration of a client process.
func (r *run) config(process, owner string, where login, workers int) clientConfig {
	return clientConfig{
		Process: process, Owner: owner, Login: where, Keys: r.keys, Workers: workers, Seed: r.Seed, Quiet: r.Quiet,
	}
}
