package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

const (
	root = "/holdfast-demo"
	key  = "reports/nightly"
)

var names3 = []string{"worker-1", "worker-2", "worker-3"}

// stage is where the play happens.
type stage struct {
	*cast
	proxy    *faultproxy.Proxy // before the server
	operator *zklock.Client
	steps    int
}

// play performs the whole script, with sessions of a length.
func play(ctx context.Context, session time.Duration) error {
	server, err := zkserver.Open(ctx, zkserver.Config{TickTime: 100 * time.Millisecond, MaxSessionTimeout: session})
	if err != nil {
		return err
	}
	defer server.Close()
	s := &stage{cast: newCast(ctx, session)}
	if s.proxy, err = faultproxy.Start(server.Addrs()[0]); err != nil {
		return err
	}
	defer s.proxy.Close()
	defer s.kill()
	s.note("server", "running", "ZooKeeper, %s: %s", server.Source(), server.Addrs()[0])
	s.operator, err = zklock.Dial(ctx, []string{s.proxy.Addr()}, &zklock.Options{Root: root, SessionTimeout: session, Owner: "operator"})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = s.operator.Close(ctx)
	}()

	holder := s.compete()
	for _, step := range []func(report) report{s.sigkill, s.ttl, s.paused, s.outage} {
		if s.err == nil {
			holder = step(holder)
		}
	}
	if s.err == nil {
		s.finish(holder)
	}
	if s.err != nil {
		return fmt.Errorf("step %d: %w", s.steps, s.err)
	}
	return nil
}

// step begins a step of the script.
func (s *stage) step(text string) {
	s.steps++
	fmt.Printf("\n%d. %s\n\n", s.steps, text)
}

// note prints an event that no worker reports.
func (s *stage) note(who, event, format string, args ...any) {
	show(report{Who: who, Time: time.Now(), Event: event, Detail: fmt.Sprintf(format, args...)})
}

// inspect waits until the engine shows the expected state of the key, and prints it.
func (s *stage) inspect(what string, ok func(holdfast.Info) bool) {
	for s.err == nil {
		info, err := s.operator.Inspect(s.ctx, key)
		if err != nil {
			s.fail("%s: %w", what, err)
			return
		}
		if ok(info) {
			s.drain()
			detail := "nobody holds the lock, nobody waits"
			if info.Held {
				detail = "held by " + info.Owner
				for i, waiter := range info.Queue {
					detail += []string{", in the queue: ", ", "}[min(i, 1)] + waiter.Owner
				}
			}
			show(report{Who: "operator", Time: time.Now(), Event: "Inspect", Token: info.Token, Detail: detail})
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// queuesAgain waits until the former holder is the only one in the queue.
func (s *stage) queuesAgain(former, holder report) {
	s.inspect(former.Who+" queues again", func(info holdfast.Info) bool {
		return info.Owner == holder.Who && len(info.Queue) == 1 && info.Queue[0].Owner == former.Who
	})
}

// about fails if a report is about another token than that of a grant.
func (s *stage) about(r, grant report) {
	if r.Token != grant.Token {
		s.fail("%s is about token %d, not %d", r.Event, r.Token, grant.Token)
	}
}

// compete lets three processes compete; one is granted the lock.
func (s *stage) compete() report {
	s.step("Three processes compete for one lock")
	for _, name := range names3 {
		s.start(name, s.proxy.Addr())
	}
	for _, name := range names3 {
		s.await(0, name+" starts", is(name, "started"))
	}
	for _, name := range names3 {
		s.tell(name, "compete")
	}
	holder := s.await(0, "a grant", isGrantAfter(0))
	s.inspect("one holds, two wait", func(info holdfast.Info) bool {
		return info.Owner == holder.Who && info.Token == holder.Token && len(info.Queue) == 2
	})
	return holder
}

// sigkill kills the holder; when its session has expired, another takes over.
func (s *stage) sigkill(holder report) report {
	s.step("The holder is killed; another takes over when its session has expired")
	mark := s.mark()
	s.signal(holder.Who, syscall.SIGKILL, "SIGKILL", "")
	s.await(mark, "the end of "+holder.Who, is(holder.Who, "exited"))
	next := s.await(mark, "a takeover", isGrantAfter(holder.Token))
	if next.Who == holder.Who {
		s.wrong("%s was granted the lock after its death", next.Who)
	}
	return next
}

// ttl lets the holder's TTL end: the holder stops on its own event, before anyone else is granted the lock.
func (s *stage) ttl(holder report) report {
	s.step("A hold reaches its TTL: the holder reacts to the event, another takes over")
	mark := s.mark()
	s.tell(holder.Who, "ttl 1s")
	expired := s.await(mark, "TTLExpired", is(holder.Who, "TTLExpired"))
	s.about(expired, holder)
	next := s.await(mark, "a takeover", isGrantAfter(holder.Token))
	switch {
	case next.Who == holder.Who:
		s.fail("%s was granted the lock again: nobody took over", next.Who)
	case !expired.Time.Before(next.Time):
		s.wrong("%s was granted the lock at %v, before the TTL ended at %v", next.Who, next.Time, expired.Time)
	}
	s.queuesAgain(holder, next)
	return next
}

// paused stops the holder in the middle of a write, for longer than its session lasts. No lock can stop that write from
// arriving late; the resource refuses it by its token.
func (s *stage) paused(holder report) report {
	s.step("A paused holder writes too late: the resource refuses its old token")
	mark := s.mark()
	s.tell(holder.Who, "write 400ms")
	s.await(mark, "a write", is(holder.Who, "writes"))
	s.signal(holder.Who, syscall.SIGSTOP, "SIGSTOP", "in the middle of its write")
	next := s.await(mark, "a takeover", isGrantAfter(holder.Token))
	s.tell(next.Who, "write 0s")
	s.await(mark, "the new holder's write", is(next.Who, "written"))
	s.signal(holder.Who, syscall.SIGCONT, "SIGCONT", "continues where it stopped")
	for _, event := range []string{"Lost", "refused"} {
		s.about(s.await(mark, event, is(holder.Who, event)), holder)
	}
	if slices.ContainsFunc(s.history[mark:], is(holder.Who, "written")) {
		s.wrong("the late write of %s went through", holder.Who)
	}
	if s.written.Who != next.Who || s.written.Token != next.Token {
		s.fail("the resource has what %s wrote with token %d", s.written.Who, s.written.Token)
	}
	s.queuesAgain(holder, next)
	return next
}

// outage cuts the server off for longer than the session lasts. The holder detects the loss on its own clock, while no server
// can answer.
func (s *stage) outage(holder report) report {
	s.step("The server cannot be reached for longer than the lease: the holder detects the loss on its own clock")
	mark := s.mark()
	cut := time.Now()
	s.note("server", "is cut off", "")
	s.proxy.Cut()
	for _, name := range s.alive() {
		s.await(mark, "Disconnected", isSince(cut, name, "Disconnected"))
	}
	s.about(s.await(mark, "Lost", is(holder.Who, "Lost")), holder)
	healed := time.Now()
	s.note("server", "is back", "")
	if err := s.proxy.Heal(); err != nil {
		s.fail("%w", err)
	}
	for _, name := range s.alive() {
		s.await(mark, "Ready", isSince(healed, name, "Ready"))
	}
	return s.await(mark, "a grant", isGrantAfter(holder.Token))
}

// finish closes all clients cleanly; nothing stays in the engine.
func (s *stage) finish(holder report) {
	s.step("All end; nothing is left in ZooKeeper")
	mark := s.mark()
	// The waiter ends first, or it would be granted the lock once more.
	waiters := slices.DeleteFunc(s.alive(), func(name string) bool { return name == holder.Who })
	for _, name := range append(waiters, holder.Who) {
		s.workers[name].ended = true
		s.tell(name, "quit")
		if r := s.await(mark, "the end of "+name, is(name, "exited")); r.Detail != "exit status 0" {
			s.fail("%s: %s", name, r.Detail)
		}
	}
	s.inspect("an empty queue", func(info holdfast.Info) bool { return !info.Held && len(info.Queue) == 0 })
}
