package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
)

// cast is the processes of the demo and their reports. Only one goroutine
// uses it.
type cast struct {
	workers map[string]*process
	reports chan report
	history []report
	newest  holdfast.Token // of the newest grant
}

// process is a worker process.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	exited chan struct{} // closed when it has been reaped
	ended  bool          // it was killed, or has the command to quit
}

func newCast() *cast {
	return &cast{workers: make(map[string]*process), reports: make(chan report, 64)}
}

// start starts a worker.
func (c *cast) start(me identity) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe, "-worker", me.name, "-server", me.server, "-resource", me.resource)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = childAttr()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = theirs
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		ours.Close()
		return err
	}
	p := &process{cmd: cmd, stdin: stdin, exited: make(chan struct{})}
	c.workers[me.name] = p
	go func() {
		defer ours.Close()
		lines := bufio.NewScanner(ours)
		for lines.Scan() {
			r := report{Who: me.name}
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				r = report{Who: me.name, Time: time.Now(), Event: "garbled", Detail: lines.Text()}
			}
			c.reports <- r
		}
		_ = cmd.Wait()
		close(p.exited)
		c.reports <- report{Who: me.name, Time: time.Now(), Event: "exited", Detail: cmd.ProcessState.String()}
	}()
	return nil
}

// tell sends a worker a command.
func (c *cast) tell(who, format string, args ...any) error {
	_, err := fmt.Fprintf(c.workers[who].stdin, format+"\n", args...)
	return err
}

// signal sends a worker a signal, and prints it.
func (c *cast) signal(who string, sig syscall.Signal, name, why string) error {
	p := c.workers[who]
	if sig == syscall.SIGKILL {
		p.ended = true
	}
	show(report{Who: who, Time: time.Now(), Event: name, Detail: why})
	return p.cmd.Process.Signal(sig)
}

// kill kills all remaining processes, whatever their state.
func (c *cast) kill() {
	for _, p := range c.workers {
		_ = p.cmd.Process.Kill()
	}
	for _, p := range c.workers {
		for waiting := true; waiting; {
			select {
			case <-p.exited:
				waiting = false
			case <-c.reports: // so that the readers can continue
			}
		}
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

// await returns the first report after a mark for which ok is true, and waits
// for it if necessary. what names it in an error.
func (c *cast) await(ctx context.Context, mark int, what string, ok func(report) bool) (report, error) {
	for i := mark; ; i++ {
		if i == len(c.history) {
			select {
			case r := <-c.reports:
				if err := c.take(r); err != nil {
					return report{}, err
				}
			case <-ctx.Done():
				return report{}, fmt.Errorf("%s: not seen: %w", what, context.Cause(ctx))
			}
		}
		if ok(c.history[i]) {
			return c.history[i], nil
		}
	}
}

// drain takes the reports so far.
func (c *cast) drain() error {
	for {
		select {
		case r := <-c.reports:
			if err := c.take(r); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// take prints a report and checks the invariants.
func (c *cast) take(r report) error {
	show(r)
	c.history = append(c.history, r)
	switch r.Event {
	case "granted":
		if r.Token <= c.newest {
			return fmt.Errorf("%s was granted token %d after token %d", r.Who, r.Token, c.newest)
		}
		c.newest = r.Token
	case "exited":
		if !c.workers[r.Who].ended {
			return fmt.Errorf("%s has ended: %s", r.Who, r.Detail)
		}
	case "failed", "garbled", "no write":
		return fmt.Errorf("%s: %s: %s", r.Who, r.Event, r.Detail)
	}
	return nil
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
