package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/zklock"
)

const (
	root    = "/holdfast-demo"
	key     = "reports/nightly"
	session = 2 * time.Second // short, to keep the demo quick
)

var names3 = []string{"worker-1", "worker-2", "worker-3"}

// stage is where the play happens.
type stage struct {
	*cast
	server   *server
	resource *resource
	operator *zklock.Client
	steps    int
}

// play performs the whole script.
func play(ctx context.Context) error {
	s := &stage{cast: newCast()}
	var err error
	if s.server, err = findServer(ctx); err != nil {
		return err
	}
	defer s.server.close()
	if s.resource, err = startResource(); err != nil {
		return err
	}
	defer s.resource.close()
	defer s.kill()
	s.note("server", "running", "ZooKeeper, %s: %s", s.server.about, s.server.addr)
	s.operator, err = zklock.Dial(ctx, []string{s.server.addr}, &zklock.Options{Root: root, SessionTimeout: session, Owner: "operator"})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = s.operator.Close(ctx)
	}()

	holder, err := s.compete(ctx)
	for _, step := range []func(context.Context, report) (report, error){s.sigkill, s.ttl, s.paused, s.outage} {
		if err != nil {
			break
		}
		holder, err = step(ctx, holder)
	}
	if err == nil {
		err = s.finish(ctx, holder)
	}
	if err != nil {
		return fmt.Errorf("step %d: %w", s.steps, err)
	}
	return nil
}

// step begins a step of the script.
func (s *stage) step(format string, args ...any) {
	s.steps++
	fmt.Printf("\n%d. %s\n\n", s.steps, fmt.Sprintf(format, args...))
}

// note prints an event that no worker reports.
func (s *stage) note(who, event, format string, args ...any) {
	show(report{Who: who, Time: time.Now(), Event: event, Detail: fmt.Sprintf(format, args...)})
}

// inspect waits until the engine shows the expected state of the key, and
// prints it.
func (s *stage) inspect(ctx context.Context, what string, ok func(holdfast.Info) bool) error {
	for {
		info, err := s.operator.Inspect(ctx, key)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if ok(info) {
			if err := s.drain(); err != nil {
				return err
			}
			s.show(info)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not seen: %w", what, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// show prints the engine's state of the key.
func (s *stage) show(info holdfast.Info) {
	detail := "nobody holds the lock, nobody waits"
	if info.Held {
		detail = "held by " + info.Owner
		for i, waiter := range info.Queue {
			detail += []string{", in the queue: ", ", "}[min(i, 1)] + waiter.Owner
		}
	}
	show(report{Who: "operator", Time: time.Now(), Event: "Inspect", Token: info.Token, Detail: detail})
}

// compete lets three processes compete; one is granted the lock.
func (s *stage) compete(ctx context.Context) (report, error) {
	s.step("Three processes compete for one lock")
	for _, name := range names3 {
		if err := s.start(identity{name: name, server: s.server.addr, resource: s.resource.addr()}); err != nil {
			return report{}, err
		}
	}
	for _, name := range names3 {
		if _, err := s.await(ctx, 0, name+" starts", is(name, "started")); err != nil {
			return report{}, err
		}
	}
	for _, name := range names3 {
		if err := s.tell(name, "compete"); err != nil {
			return report{}, err
		}
	}
	holder, err := s.await(ctx, 0, "a grant", isGrantAfter(0))
	if err != nil {
		return report{}, err
	}
	return holder, s.inspect(ctx, "one holds, two wait", func(info holdfast.Info) bool {
		return info.Owner == holder.Who && info.Token == holder.Token && len(info.Queue) == 2
	})
}

// sigkill kills the holder; when its session has expired, another takes over.
func (s *stage) sigkill(ctx context.Context, holder report) (report, error) {
	s.step("The holder is killed; another takes over when its session has expired")
	mark := s.mark()
	if err := s.signal(holder.Who, syscall.SIGKILL, "SIGKILL", ""); err != nil {
		return report{}, err
	}
	if _, err := s.await(ctx, mark, "the end of "+holder.Who, is(holder.Who, "exited")); err != nil {
		return report{}, err
	}
	next, err := s.await(ctx, mark, "a takeover", isGrantAfter(holder.Token))
	if err == nil && next.Who == holder.Who {
		err = fmt.Errorf("%s was granted the lock after its death", next.Who)
	}
	return next, err
}

// ttl lets the holder's TTL end: the holder stops on its own event, before
// anyone else is granted the lock.
func (s *stage) ttl(ctx context.Context, holder report) (report, error) {
	s.step("A hold reaches its TTL: the holder reacts to the event, another takes over")
	mark := s.mark()
	if err := s.tell(holder.Who, "ttl 1s"); err != nil {
		return report{}, err
	}
	expired, err := s.await(ctx, mark, "TTLExpired", is(holder.Who, "TTLExpired"))
	if err != nil {
		return report{}, err
	}
	next, err := s.await(ctx, mark, "a takeover", isGrantAfter(holder.Token))
	switch {
	case err != nil:
		return report{}, err
	case next.Who == holder.Who:
		return report{}, fmt.Errorf("%s was granted the lock again: nobody took over", next.Who)
	case expired.Token != holder.Token:
		return report{}, fmt.Errorf("the event TTLExpired is about token %d, not %d", expired.Token, holder.Token)
	case !expired.Time.Before(next.Time):
		return report{}, fmt.Errorf("%s was granted the lock at %v, before the TTL ended at %v", next.Who, next.Time, expired.Time)
	}
	return next, s.inspect(ctx, holder.Who+" queues again", func(info holdfast.Info) bool {
		return info.Owner == next.Who && len(info.Queue) == 1 && info.Queue[0].Owner == holder.Who
	})
}

// paused stops the holder in the middle of a write, for longer than its session
// lasts. No lock can stop that write from arriving late; the resource refuses
// it by its token.
func (s *stage) paused(ctx context.Context, holder report) (report, error) {
	s.step("A paused holder writes too late: the resource refuses its old token")
	mark := s.mark()
	if err := s.tell(holder.Who, "write 400ms"); err != nil {
		return report{}, err
	}
	if _, err := s.await(ctx, mark, "a write", is(holder.Who, "writes")); err != nil {
		return report{}, err
	}
	if err := s.signal(holder.Who, syscall.SIGSTOP, "SIGSTOP", "in the middle of its write"); err != nil {
		return report{}, err
	}
	next, err := s.await(ctx, mark, "a takeover", isGrantAfter(holder.Token))
	if err != nil {
		return report{}, err
	}
	if err := s.tell(next.Who, "write 0s"); err != nil {
		return report{}, err
	}
	if _, err := s.await(ctx, mark, "the new holder's write", is(next.Who, "written")); err != nil {
		return report{}, err
	}
	if err := s.signal(holder.Who, syscall.SIGCONT, "SIGCONT", "continues where it stopped"); err != nil {
		return report{}, err
	}
	for _, event := range []string{"Lost", "refused"} {
		r, err := s.await(ctx, mark, event, is(holder.Who, event))
		if err != nil {
			return report{}, err
		}
		if r.Token != holder.Token {
			return report{}, fmt.Errorf("%s is about token %d, not %d", event, r.Token, holder.Token)
		}
	}
	if slices.ContainsFunc(s.history[mark:], is(holder.Who, "written")) {
		return report{}, fmt.Errorf("the late write of %s went through", holder.Who)
	}
	if who, token := s.resource.last(); who != next.Who || token != next.Token {
		return report{}, fmt.Errorf("the resource has what %s wrote with token %d", who, token)
	}
	return next, s.inspect(ctx, holder.Who+" queues again", func(info holdfast.Info) bool {
		return info.Owner == next.Who && len(info.Queue) == 1 && info.Queue[0].Owner == holder.Who
	})
}

// outage stops the server for longer than the session lasts. The holder detects
// the loss on its own clock, while no server can answer.
func (s *stage) outage(ctx context.Context, holder report) (report, error) {
	s.step("The server is down for longer than the lease: the holder detects the loss on its own clock")
	mark := s.mark()
	stopped := time.Now()
	s.note("server", s.server.stops, "")
	s.server.stop(ctx)
	for _, name := range s.alive() {
		if _, err := s.await(ctx, mark, "Disconnected", isSince(stopped, name, "Disconnected")); err != nil {
			return report{}, err
		}
	}
	lost, err := s.await(ctx, mark, "Lost", is(holder.Who, "Lost"))
	if err != nil {
		return report{}, err
	}
	if lost.Token != holder.Token {
		return report{}, fmt.Errorf("the event Lost is about token %d, not %d", lost.Token, holder.Token)
	}
	started := time.Now()
	s.note("server", s.server.starts, "")
	if err := s.server.start(ctx); err != nil {
		return report{}, err
	}
	for _, name := range s.alive() {
		if _, err := s.await(ctx, mark, "Ready", isSince(started, name, "Ready")); err != nil {
			return report{}, err
		}
	}
	return s.await(ctx, mark, "a grant", isGrantAfter(holder.Token))
}

// finish closes all clients cleanly; nothing stays in the engine.
func (s *stage) finish(ctx context.Context, holder report) error {
	s.step("All end; nothing is left in ZooKeeper")
	mark := s.mark()
	// The waiter ends first, or it would be granted the lock once more.
	names := s.alive()
	slices.SortFunc(names, func(a, b string) int {
		switch holder.Who {
		case a:
			return 1
		case b:
			return -1
		}
		return 0
	})
	for _, name := range names {
		s.workers[name].ended = true
		if err := s.tell(name, "quit"); err != nil {
			return err
		}
		r, err := s.await(ctx, mark, "the end of "+name, is(name, "exited"))
		if err != nil {
			return err
		}
		if r.Detail != "exit status 0" {
			return fmt.Errorf("%s: %s", name, r.Detail)
		}
	}
	return s.inspect(ctx, "an empty queue", func(info holdfast.Info) bool {
		return !info.Held && len(info.Queue) == 0
	})
}
