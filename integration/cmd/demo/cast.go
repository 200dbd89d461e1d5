package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/child"
)

// report is a line that a worker prints, or what the demo itself has to say.
type report struct {
	Who    string `json:"-"`
	Time   time.Time
	Event  string
	Token  holdfast.Token
	Detail string
}

// cast is the processes of the demo, their reports, and the resource to which they write. Only one goroutine uses it. After
// a first error, kept in err, it does nothing.
type cast struct {
	ctx     context.Context
	session time.Duration // timeout of the workers' sessions
	workers map[string]*process
	reports chan report
	history []report
	newest  holdfast.Token // of the newest grant
	written report         // the last write that the resource has accepted
	err     error
}

// process is a worker process.
type process struct {
	*child.Process
	ended bool // it was killed, or has the command to quit
}

func newCast(ctx context.Context, session time.Duration) *cast {
	return &cast{ctx: ctx, session: session, workers: make(map[string]*process), reports: make(chan report, 64)}
}

// fail keeps the first error.
func (c *cast) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// errWrong is an error of the locks. All others may be due to a machine that stands still, and ends locks too early.
var errWrong = errors.New("this must not happen")

// wrong is fail for what locks must not do, however slow the machine is.
func (c *cast) wrong(format string, args ...any) {
	c.fail("%w: %w", errWrong, fmt.Errorf(format, args...))
}

// start starts a worker.
func (c *cast) start(name, server string) {
	exe, err := os.Executable()
	if err != nil {
		c.fail("%w", err)
		return
	}
	p, err := child.Start("/dev/stderr", true, exe, "-worker", name, "-server", server, "-session", c.session.String())
	if err != nil {
		c.fail("%w", err)
		return
	}
	c.workers[name] = &process{Process: p}
	go func() {
		defer p.Stdout.Close()
		lines := bufio.NewScanner(p.Stdout)
		for lines.Scan() {
			r := report{Who: name}
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				r = report{Who: name, Time: time.Now(), Event: "garbled", Detail: lines.Text()}
			}
			c.reports <- r
		}
		<-p.Done()
		c.reports <- report{Who: name, Time: time.Now(), Event: "exited", Detail: p.Err().Error()}
	}()
}

// tell sends a worker a command.
func (c *cast) tell(who, format string, args ...any) {
	if c.err != nil {
		return
	}
	if _, err := fmt.Fprintf(c.workers[who].Stdin, format+"\n", args...); err != nil {
		c.fail("%w", err)
	}
}

// signal sends a worker a signal, and prints it.
func (c *cast) signal(who string, sig syscall.Signal, name, why string) {
	if c.err != nil {
		return
	}
	p := c.workers[who]
	p.ended = p.ended || sig == syscall.SIGKILL
	show(report{Who: who, Time: time.Now(), Event: name, Detail: why})
	if err := p.Signal(sig); err != nil {
		c.fail("%w", err)
	}
}

// kill kills all remaining processes, whatever their state.
func (c *cast) kill() {
	for _, p := range c.workers {
		p.Kill()
	}
}

// alive returns the names of the workers that were not killed.
func (c *cast) alive() []string {
	var names []string
	for _, name := range names3 {
		if p := c.workers[name]; p != nil && !p.ended {
			names = append(names, name)
		}
	}
	return names
}

// mark returns the position in the history from which await looks.
func (c *cast) mark() int { return len(c.history) }

// await returns the first report after a mark for which ok is true, and waits for it if necessary. what names it in an error.
func (c *cast) await(mark int, what string, ok func(report) bool) report {
	for i := mark; c.err == nil; i++ {
		if i == len(c.history) {
			select {
			case r := <-c.reports:
				c.take(r)
			case <-c.ctx.Done():
				c.fail("%s: not seen: %w", what, context.Cause(c.ctx))
				return report{}
			}
		}
		if ok(c.history[i]) {
			return c.history[i]
		}
	}
	return report{}
}

// drain takes the reports so far.
func (c *cast) drain() {
	for {
		select {
		case r := <-c.reports:
			c.take(r)
		default:
			return
		}
	}
}

// take prints a report and checks the invariants.
func (c *cast) take(r report) {
	if r.Event == "write" {
		c.write(&r)
	}
	show(r)
	c.history = append(c.history, r)
	switch r.Event {
	case "granted":
		if r.Token <= c.newest {
			c.wrong("%s was granted token %d after token %d", r.Who, r.Token, c.newest)
		}
		c.newest = r.Token
	case "exited":
		if !c.workers[r.Who].ended {
			c.fail("%s has ended: %s", r.Who, r.Detail)
		}
	case "garbled", "no write":
		c.fail("%s: %s: %s", r.Who, r.Event, r.Detail)
	}
}

// write is the resource that the lock protects: a value that remembers the greatest token that has written it, and refuses
// smaller ones.
func (c *cast) write(r *report) {
	if r.Token < c.written.Token {
		r.Event, r.Detail = "refused", fmt.Sprintf("by the resource: written with token %d since", c.written.Token)
		return
	}
	r.Event, c.written = "written", *r
}

func is(who, event string) func(report) bool {
	return func(r report) bool { return r.Who == who && r.Event == event }
}

// isSince matches only reports after a time: an earlier one may arrive late.
func isSince(since time.Time, who, event string) func(report) bool {
	return func(r report) bool { return r.Who == who && r.Event == event && r.Time.After(since) }
}

func isGrantAfter(token holdfast.Token) func(report) bool {
	return func(r report) bool { return r.Event == "granted" && r.Token > token }
}

// show prints one event per line.
func show(r report) {
	token := ""
	if r.Token != 0 {
		token = "token " + r.Token.String()
	}
	line := fmt.Sprintf("%s  %-8s  %-13s  %-16s  %s", r.Time.Format("15:04:05.000"), r.Who, r.Event, token, r.Detail)
	fmt.Println(strings.TrimRight(line, " "))
}
