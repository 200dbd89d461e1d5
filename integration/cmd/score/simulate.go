package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// endless is how many virtual hours are asked for: more than anybody waits for.
	endless = "1000000"
	// longestSilence is how long a simulation may print nothing. It tells about once a minute how far it is, whenever a
	// run ends. One that does not tell is in a run that does not end: in a deadlock, or busy without virtual time going on.
	longestSilence = 100 * time.Second
	// lookEvery is how often the time of processors is looked at.
	lookEvery = 100 * time.Millisecond
	// tick is the unit of times in /proc, on all platforms that Go knows.
	tick = 10 * time.Millisecond
	// mostTail is how much of the output is kept.
	mostTail = 4096
)

// result is what came of a mutant.
type result struct {
	used   time.Duration // of processors, until then
	sign   string        // what the simulation found first, "" if nothing
	test   string        // one that fails, "" if none does
	enough bool          // it has used its time
	tail   string        // of the output
}

// simulate runs the simulation until it finds something, or has used that much time of processors.
func (c *copied) simulate(ctx context.Context, engine string, most time.Duration) (result, error) {
	kept := filepath.Join(c.scratch, "kept")
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return result{}, err
	}
	defer os.RemoveAll(kept)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cmd := exec.CommandContext(ctx, c.binary(), "-test.run", "^TestSimulation$", "-test.v", "-test.timeout", "0")
	cmd.Dir = filepath.Join(c.dir, "integration", "cmd", "chaos")
	cmd.Env = append(os.Environ(), "TMPDIR="+kept, "HOLDFAST_SIM_ENGINE="+engine, "HOLDFAST_SIM_HOURS="+endless,
		"HOLDFAST_SEED="+strconv.FormatUint(c.seed, 10))
	cmd.WaitDelay = 10 * time.Second
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		return result{}, err
	}
	began := time.Now()
	lines := make(chan string)
	go read(out, lines)
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		_ = in.Close() // never fails
		ended <- err
	}()
	r := watch(cmd.Process.Pid, began, most, lines)
	interrupted := ctx.Err() != nil
	stop()
	for range lines { // it may be about to print
	}
	err := <-ended
	r.used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if r.sign == "" && !r.enough && !interrupted {
		return r, fmt.Errorf("the simulation ended without a finding: %w\n%s", err, r.tail)
	}
	return r, nil
}

// read passes lines on until the output ends.
func read(out io.Reader, lines chan<- string) {
	defer close(lines)
	for buffer := bufio.NewReader(out); ; {
		line, err := buffer.ReadString('\n')
		if line != "" {
			lines <- strings.TrimRight(line, "\n")
		}
		if err != nil {
			return
		}
	}
}

// watch follows a simulation until something is found, it has ended, or has used its time.
func watch(pid int, began time.Time, most time.Duration, lines <-chan string) (r result) {
	var tail bytes.Buffer
	defer func() { r.tail = tail.String() }()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	looked, silence := time.Now(), time.Duration(0)
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return r
			}
			silence = 0
			if tail.Len() > mostTail {
				tail.Reset()
			}
			tail.WriteString(line + "\n")
			if r.sign = sign(line); r.sign != "" {
				return r
			}
		case <-look.C:
			// If the whole machine stood still, so did the simulation.
			silence += min(time.Since(looked), 10*lookEvery)
			looked = time.Now()
			if silence > longestSilence {
				r.sign = "no run ends any more"
				return r
			}
			if r.enough = usedBy(pid, began) >= most; r.enough {
				return r
			}
		}
	}
}

// usedBy is how long processors have run a process, or how long it has run, where that cannot be known.
func usedBy(pid int, began time.Time) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return time.Since(began)
	}
	// The second field is the name of the program, in parentheses, with whatever it consists of.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var used time.Duration
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return time.Since(began)
		}
		used += time.Duration(n) * tick
	}
	return used
}

// signs are what a simulation that fails prints, in the order in which they say most.
var signs = []*regexp.Regexp{
	regexp.MustCompile(`\d+ findings, first: (.*)`), // see verdict.err
	regexp.MustCompile(`^\s*(?:VIOLATION|PROBLEM) +(.*)`),
	regexp.MustCompile(`^(?:panic|fatal error): (.*)`),
	regexp.MustCompile(`_test\.go:\d+: (?:\w+, )?seed \d+: (.*)`), // a run that came to no verdict
	regexp.MustCompile(`^\s*--- (FAIL): `),
}

// ruleName matches the rule in the text of a violation.
var ruleName = regexp.MustCompile(`^([a-z]+): `)

// sign returns what a line says of a failure, "" if it says nothing: the name of a rule that was broken, or the beginning of
// another text.
func sign(line string) string {
	for _, form := range signs {
		found := form.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		text := found[1]
		if rule := ruleName.FindStringSubmatch(text); rule != nil && form != signs[2] {
			return rule[1]
		}
		if short := 80; len(text) > short {
			text = text[:short] + "..."
		}
		return text
	}
	return ""
}
