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
	root   = "/holdfast-demo"
	key    = "reports/nightly"
	ttl    = time.Second
	slowly = 400 * time.Millisecond
)

// play performs the whole script, with sessions of a length.
func play(ctx context.Context, session time.Duration) (err error) {
	server, err := zkserver.Open(ctx, zkserver.Config{TickTime: 100 * time.Millisecond, MaxSessionTimeout: session})
	if err != nil {
		return err
	}
	defer server.Close()
	proxy, err := faultproxy.Start(server.Addrs()[0])
	if err != nil {
		return err
	}
	defer proxy.Close()
	running := fmt.Sprintf("ZooKeeper, %s: %s", server.Source(), server.Addrs()[0])
	show(report{Who: "server", Time: time.Now(), Event: "running", Detail: running})
	operator, err := zklock.Dial(ctx, []string{proxy.Addr()}, &zklock.Options{Root: root, SessionTimeout: session, Owner: "operator"})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = operator.Close(ctx)
	}()
	d := newDemo(ctx, proxy, operator)
	defer d.kill()
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = fmt.Errorf("step %d: %w", d.steps, p.error)
		default:
			panic(p)
		}
	}()
	holder := d.compete(session)
	for _, step := range []func(report) report{d.sigkill, d.ttl, d.paused, d.outage} {
		holder = step(holder)
	}
	d.finish(holder)
	return nil
}

// compete lets three processes compete; one is granted the lock.
func (d *demo) compete(session time.Duration) report {
	d.step("Three processes compete for one lock")
	for _, name := range []string{"worker-1", "worker-2", "worker-3"} {
		d.start(name, session)
	}
	holder := d.await("a grant", isGrantAfter(0))
	d.inspect("one holds, two wait", func(info holdfast.Info) bool {
		return info.Owner == holder.Who && info.Token == holder.Token && len(info.Queue) == 2
	})
	return holder
}

// sigkill kills the holder; when its session has expired, another takes over.
func (d *demo) sigkill(holder report) report {
	d.step("The holder is killed; another takes over when its session has expired")
	d.ends(holder.Who)
	d.signal(holder.Who, syscall.SIGKILL, "SIGKILL", "")
	d.await("the end of "+holder.Who, is(holder.Who, "exited"))
	next := d.await("a takeover", isGrantAfter(holder.Token))
	if next.Who == holder.Who {
		wrong("%s was granted the lock after its death", next.Who)
	}
	return next
}

// ttl lets the holder's TTL end: the holder stops on its own event, before another worker is granted the lock.
func (d *demo) ttl(holder report) report {
	d.step("A hold reaches its TTL: the holder reacts to the event, another takes over")
	d.tell(holder.Who, "ttl")
	expired := d.await("TTLExpired", is(holder.Who, "TTLExpired"))
	about(expired, holder)
	next := d.await("a takeover", isGrantAfter(holder.Token))
	switch {
	case next.Who == holder.Who:
		fail("%s was granted the lock again: no other worker took over", next.Who)
	case !expired.Time.Before(next.Time):
		wrong("%s was granted the lock at %v, before the TTL ended at %v", next.Who, next.Time, expired.Time)
	}
	d.queuesAgain(holder, next)
	return next
}

// paused stops the holder in the middle of a write, for longer than its session lasts. No lock can stop that write from
// arriving late; the resource refuses it by its token.
func (d *demo) paused(holder report) report {
	d.step("A paused holder writes too late: the resource refuses its old token")
	d.tell(holder.Who, "write slowly")
	d.await("a write", is(holder.Who, "writes"))
	d.signal(holder.Who, syscall.SIGSTOP, "SIGSTOP", "in the middle of its write")
	next := d.await("a takeover", isGrantAfter(holder.Token))
	d.tell(next.Who, "write")
	d.await("the new holder's write", is(next.Who, "written"))
	d.signal(holder.Who, syscall.SIGCONT, "SIGCONT", "continues where it stopped")
	late := d.await("the late write", func(r report) bool { return is(holder.Who, "refused")(r) || is(holder.Who, "written")(r) })
	about(late, holder)
	if late.Event == "written" {
		wrong("the late write of %s went through", holder.Who)
	}
	about(d.await("Lost", is(holder.Who, "Lost")), holder)
	d.queuesAgain(holder, next)
	return next
}

// outage cuts the server off for longer than the session lasts. The holder detects the loss on its own clock, while no server
// can answer.
func (d *demo) outage(holder report) report {
	d.step("The server cannot be reached for longer than the lease: the holder detects the loss on its own clock")
	show(report{Who: "server", Time: time.Now(), Event: "is cut off"})
	d.proxy.Cut()
	for _, name := range d.alive {
		d.await("Disconnected", is(name, "Disconnected"))
	}
	about(d.await("Lost", is(holder.Who, "Lost")), holder)
	d.began = time.Now()
	show(report{Who: "server", Time: d.began, Event: "is back"})
	if err := d.proxy.Heal(); err != nil {
		fail("%w", err)
	}
	for _, name := range d.alive {
		d.await("Ready", is(name, "Ready"))
	}
	return d.await("a grant", isGrantAfter(holder.Token))
}

// finish closes all clients cleanly; nothing stays in the engine.
func (d *demo) finish(holder report) {
	d.step("All end; nothing is left in ZooKeeper")
	// The waiter ends first, or it would be granted the lock once more.
	waiters := slices.DeleteFunc(slices.Clone(d.alive), func(name string) bool { return name == holder.Who })
	for _, name := range append(waiters, holder.Who) {
		d.ends(name)
		_ = d.workers[name].Stdin.Close()
		if r := d.await("the end of "+name, is(name, "exited")); r.Detail != "exit status 0" {
			fail("%s: %s", name, r.Detail)
		}
	}
	d.inspect("an empty queue", func(info holdfast.Info) bool { return !info.Held && len(info.Queue) == 0 })
}

// queuesAgain waits until the former holder is the only one in the queue.
func (d *demo) queuesAgain(former, holder report) {
	d.inspect(former.Who+" queues again", func(info holdfast.Info) bool {
		return info.Owner == holder.Who && len(info.Queue) == 1 && info.Queue[0].Owner == former.Who
	})
}

// about fails if a report is about another token than a grant.
func about(r, grant report) {
	if r.Token != grant.Token {
		fail("%s is about token %d, not %d", r.Event, r.Token, grant.Token)
	}
}
