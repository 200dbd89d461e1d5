package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/zklock"
)

// demo is the processes of the demo, their reports, and the resource to which they write. Only one goroutine uses it.
type demo struct {
	ctx      context.Context
	proxy    *faultproxy.Proxy // before the server
	operator *zklock.Client
	workers  map[string]*child.Process
	alive    []string // names of the workers that are not about to end
	reports  chan report
	history  []report
	steps    int
	began    time.Time      // of the step
	newest   holdfast.Token // of the newest grant
	written  holdfast.Token // of the last write that the resource has accepted
}

func newDemo(ctx context.Context, proxy *faultproxy.Proxy, operator *zklock.Client) *demo {
	return &demo{ctx: ctx, proxy: proxy, operator: operator, workers: map[string]*child.Process{}, reports: make(chan report, 64)}
}

// failure ends the script by a panic, which play recovers.
type failure struct{ error }

func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// errWrong is an error of the locks. All others may be due to a machine that stands still, and ends locks too early.
var errWrong = errors.New("this must not happen")

// wrong is fail for what locks must not do, however slow the machine is.
func wrong(format string, args ...any) { fail("%w: %w", errWrong, fmt.Errorf(format, args...)) }

// step begins a step of the script.
func (d *demo) step(text string) {
	d.steps++
	fmt.Printf("\n%d. %s\n\n", d.steps, text)
	d.began = time.Now()
}

// start starts a worker.
func (d *demo) start(name string, session time.Duration) {
	exe, err := os.Executable()
	if err != nil {
		fail("%w", err)
	}
	p, err := child.Start("/dev/stderr", true, exe, "-worker", name, "-server", d.proxy.Addr(), "-session", session.String())
	if err != nil {
		fail("%w", err)
	}
	d.workers[name], d.alive = p, append(d.alive, name)
	go func() {
		defer p.Stdout.Close()
		for lines := json.NewDecoder(bufio.NewReader(p.Stdout)); ; {
			r := report{Who: name}
			if lines.Decode(&r) != nil {
				break
			}
			d.reports <- r
		}
		<-p.Done()
		d.reports <- report{Who: name, Time: time.Now(), Event: "exited", Detail: p.Err().Error()}
	}()
}

// ends notes that a worker is about to end.
func (d *demo) ends(who string) {
	d.alive = slices.DeleteFunc(d.alive, func(name string) bool { return name == who })
}

func (d *demo) kill() {
	for _, p := range d.workers {
		p.Kill()
	}
}

// tell sends a worker a command.
func (d *demo) tell(who, command string) {
	if _, err := fmt.Fprintln(d.workers[who].Stdin, command); err != nil {
		fail("%w", err)
	}
}

// signal sends a worker a signal, and prints it.
func (d *demo) signal(who string, sig syscall.Signal, name, why string) {
	show(report{Who: who, Time: time.Now(), Event: name, Detail: why})
	if err := d.workers[who].Signal(sig); err != nil {
		fail("%w", err)
	}
}

// await returns the first report of the step for which ok is true, and waits for it if necessary. what names it in an error.
func (d *demo) await(what string, ok func(report) bool) report {
	for i := 0; ; i++ {
		if i == len(d.history) {
			select {
			case r := <-d.reports:
				d.take(r)
			case <-d.ctx.Done():
				fail("%s: not seen: %w", what, context.Cause(d.ctx))
			}
		}
		if r := d.history[i]; r.Time.After(d.began) && ok(r) {
			return r
		}
	}
}

// take prints a report and checks the invariants. It is also the resource that the lock protects: a value that remembers the greatest
// token that has written it, and refuses smaller ones.
func (d *demo) take(r report) {
	if r.Event == "write" {
		if r.Token < d.written {
			r.Event, r.Detail = "refused", fmt.Sprintf("by the resource: written with token %d since", d.written)
		} else {
			r.Event, d.written = "written", r.Token
		}
	}
	show(r)
	d.history = append(d.history, r)
	switch {
	case r.Event == "granted" && r.Token <= d.newest:
		wrong("%s was granted token %d after token %d", r.Who, r.Token, d.newest)
	case r.Event == "granted":
		d.newest = r.Token
	case r.Event == "exited" && slices.Contains(d.alive, r.Who):
		fail("%s has ended: %s", r.Who, r.Detail)
	}
}

// inspect waits until the engine shows the expected state of the key, and prints it.
func (d *demo) inspect(what string, ok func(holdfast.Info) bool) {
	for {
		info, err := d.operator.Inspect(d.ctx, key)
		if err != nil {
			fail("%s: %w", what, err)
		}
		if !ok(info) {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		for len(d.reports) > 0 {
			d.take(<-d.reports)
		}
		detail := "not held, no waiter"
		if info.Held {
			detail = "held by " + info.Owner
			for i, waiter := range info.Queue {
				detail += []string{", in the queue: ", ", "}[min(i, 1)] + waiter.Owner
			}
		}
		show(report{Who: "operator", Time: time.Now(), Event: "Inspect", Token: info.Token, Detail: detail})
		return
	}
}

func is(who, event string) func(report) bool {
	return func(r report) bool { return r.Who == who && r.Event == event }
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
