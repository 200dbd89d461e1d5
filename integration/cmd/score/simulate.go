package main

import (
	"bufio"
	"bytes"
	"cmp"
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
	// A test that prints nothing for so long is in a deadlock, or busy without virtual time going on. The simulation reports
	// about once a minute, the suite after each case.
	longestRun, longestCase = 100 * time.Second, 30 * time.Second
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

// A testRun is a test to repeat until it fails.
type testRun struct {
	kind, folder, test, engine string
	silence                    time.Duration // the longest that is normal
}

// runOf returns the simulation of an engine, or the conformance suite in its package.
func runOf(suite bool, engine string) testRun {
	switch {
	case !suite:
		return testRun{"simulation", "integration/cmd/chaos", "TestSimulation", engine, longestRun}
	case engine == zooKeeper:
		return testRun{"suite", "zklock", "TestConformance", "", longestCase}
	default: // in all modes
		return testRun{"suite", "internal/recordlock", "TestConformance", "", longestCase}
	}
}

func (r testRun) name() string { return cmp.Or(r.engine, r.folder) }

// until compiles a test and repeats it until it fails, or has used that much CPU time.
func (c *copied) until(ctx context.Context, run testRun, most time.Duration) (result, error) {
	if err := c.build(ctx, run.folder); err != nil {
		return result{}, err
	}
	kept := filepath.Join(c.scratch, "kept")
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return result{}, err
	}
	defer os.RemoveAll(kept)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cmd := exec.CommandContext(ctx, c.binary(), "-test.run", "^"+run.test+"$", "-test.v=test2json", "-test.timeout", "0",
		"-test.count", "1000000") // test2json prints the result of each case at once, with a marker
	cmd.Dir = filepath.Join(c.dir, filepath.FromSlash(run.folder))
	cmd.Env = append(os.Environ(), "TMPDIR="+kept, "HOLDFAST_SIM_ENGINE="+run.engine, "HOLDFAST_SIM_HOURS="+endless,
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
	r := watch(cmd.Process.Pid, began, most, run.silence, lines)
	interrupted := ctx.Err() != nil
	stop()
	for range lines { // it may be about to print
	}
	err := <-ended
	r.used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if r.sign == "" && !r.enough && !interrupted {
		return r, fmt.Errorf("the "+run.kind+" ended without a finding: %w\n%s", err, r.tail)
	}
	return r, nil
}

// read passes lines on until the output ends.
func read(out io.Reader, lines chan<- string) {
	defer close(lines)
	for buffer := bufio.NewReader(out); ; {
		line, err := buffer.ReadString('\n')
		if line != "" {
			lines <- strings.Trim(line, "\x16\n")
		}
		if err != nil {
			return
		}
	}
}

// watch follows a test until something is found, it has ended, has used its time, or is silent for too long.
func watch(pid int, began time.Time, most, longest time.Duration, lines <-chan string) (r result) {
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
			if silence > longest {
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
	regexp.MustCompile(`^\s*--- FAIL: TestConformance/(\S+)`),
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
