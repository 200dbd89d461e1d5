package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/history"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// strikePatience bounds the beginning and the end of a fault.
const strikePatience = time.Minute

// perpetrate performs a plan, and returns when all its faults are over. Server faults wait for each other, even if that
// delays them: a rolling restart has no fixed length. Those that would then begin in the calm tail are left out.
func (r *run) perpetrate(ctx context.Context, plan []nemesis.Fault) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	servers := make(chan nemesis.Fault, len(plan))
	defer close(servers)
	tasks.Go(func() {
		for f := range servers {
			if time.Since(r.began)+f.For > r.Length-r.shape.Tail()+r.lease {
				r.pass()
				continue
			}
			r.performFault(ctx, f)
			sleep(ctx, r.lease) // to give the clients a quiet period, even if faults are late
		}
	})
	for _, f := range plan {
		if !sleep(ctx, time.Until(r.began.Add(f.At))) {
			return
		}
		if f.Kind.OfServers() {
			servers <- f
			continue
		}
		tasks.Go(func() { r.performFault(ctx, f) })
	}
}

// pass counts a skipped fault.
func (r *run) pass() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passed++
}

// performFault performs one fault from start to end.
func (r *run) performFault(ctx context.Context, f nemesis.Fault) {
	r.linger(ctx, f)
	at := r.now()
	target, end, err := r.strike(ctx, f)
	if ctx.Err() != nil && err != nil {
		return
	}
	if err != nil {
		r.problem(fmt.Errorf("fault %d, %s: %w", f.N, f.Kind, err))
		return
	}
	if target == "" {
		r.pass() // it had no target
		return
	}
	r.journal.add(history.Record{At: at, What: history.Begin, N: f.N, Fault: string(f.Kind), Target: target})
	note := ""
	if end != nil {
		sleep(ctx, f.For)
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), strikePatience)
		defer cancel()
		if err := end(ending); err != nil {
			note = err.Error()
			r.problem(fmt.Errorf("end of fault %d, %s: %w", f.N, f.Kind, err))
		}
	}
	r.journal.add(history.Record{At: r.now(), What: history.End, N: f.N, Fault: string(f.Kind), Target: target, Note: note})
}

// linger makes clients keep their locks through a fault that could end them. Otherwise most locks would be released before
// they could wrongly outlast their lease. It sends the command some time before the fault, so that every lock is held by such
// a client.
func (r *run) linger(ctx context.Context, f nemesis.Fault) {
	slots := r.slots[f.Client : f.Client+1]
	switch f.Kind {
	case nemesis.FollowerCutOff, nemesis.LeaderCutOff, nemesis.LeaderPaused, nemesis.FollowerPaused, nemesis.ServerPaused, nemesis.LinkTurned,
		nemesis.LimitsChanged, nemesis.PrimaryDeposed:
		slots = r.slots
	case nemesis.Cut, nemesis.BlackHole, nemesis.OneWayIn, nemesis.OneWayOut, nemesis.HalfOpen, nemesis.Stall,
		nemesis.EventsLost:
	case nemesis.ClientPaused: // observers of the paused client see a lock before and after
		if f.Pick%2 == 0 {
			slots = r.slots
		}
	default:
		return
	}
	d := f.For + r.lease/2
	for _, s := range slots {
		if p := s.process(); p != nil {
			_ = p.tell("linger %v", d) // it may have been killed
		}
	}
	sleep(ctx, d/8)
}

// strike begins a fault of the processes, or lets the stage begin one.
func (r *run) strike(ctx context.Context, f nemesis.Fault) (target string, end func(context.Context) error, err error) {
	s := r.slots[f.Client]
	switch f.Kind {
	case nemesis.ClientPaused:
		p := s.process()
		if p == nil || !p.pause() {
			return "", nil, nil
		}
		return "client " + p.name(), func(context.Context) error { p.resume(); return nil }, nil
	case nemesis.ClientKilled:
		p := s.process()
		if p == nil {
			return "", nil, nil
		}
		s.kill()
		return "client " + p.name(), func(context.Context) error { return s.replace() }, nil
	case nemesis.ClientClosed:
		name, err := s.finish(ctx, r.settle()+closePatience, "quit")
		if name == "" {
			return "", nil, nil
		}
		return "client " + name, func(context.Context) error { return s.replace() }, err
	case nemesis.ClockJump:
		p := s.process()
		if p == nil || p.tell("jump %v", f.Jump) != nil {
			return "", nil, nil
		}
		return fmt.Sprintf("client %s by %v", p.name(), f.Jump), nil, nil
	case nemesis.BreakHolder:
		verb := [...]string{"break-now", "break", "break-now", "break-insistently"}[f.Pick%4]
		return r.keys[f.Key], nil, r.operator.tell("%s %s", verb, r.keys[f.Key])
	}
	if f.Kind == nemesis.EventsLost && f.Pick/4%2 == 0 { // holders that are not told of a break
		for _, key := range r.keys {
			_ = r.operator.tell("break %s", key) // it ends with the run
		}
	}
	ctx, cancel := context.WithTimeout(ctx, strikePatience)
	defer cancel()
	return r.stage.strike(ctx, f)
}
