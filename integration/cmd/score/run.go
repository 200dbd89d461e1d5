package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A test that prints nothing for so long is in a deadlock, or busy without virtual time going on. The simulation reports about once a
// minute, the suite after each case.
const longestRun, longestCase = 100 * time.Second, 30 * time.Second

// result is the result of a mutant.
type result struct {
	used time.Duration // CPU time
	sign string        // the first finding, "" if there is none
}

// A testRun is a test to repeat until it fails.
type testRun struct {
	folder, test, engine string
	silence              time.Duration // the longest that is normal
}

// until compiles a test and repeats it until it fails, or has used that much CPU time.
func (r testRun) until(ctx context.Context, dir string, seed uint64, most time.Duration) (result, error) {
	binary, kept := filepath.Join(dir, "mutant.test"), filepath.Join(dir, "kept")
	defer os.RemoveAll(kept)
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, "./"+r.folder)
	build.Dir, build.Env = dir, append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"))
	if out, err := build.CombinedOutput(); err != nil {
		return result{}, fmt.Errorf("go test -c: %w\n%s", err, out)
	}
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return result{}, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// test2json prints the result of each case at once. The kernel ends the process at the limit of its CPU time.
	cmd := exec.CommandContext(ctx, "sh", "-c", `ulimit -t "$0" && exec "$@"`, strconv.Itoa(int(most.Seconds())),
		binary, "-test.run", "^"+r.test+"$", "-test.v=test2json", "-test.timeout", "0", "-test.count", "1000000")
	cmd.Dir = filepath.Join(dir, filepath.FromSlash(r.folder))
	cmd.Env = append(os.Environ(), "TMPDIR="+kept, "HOLDFAST_SIM_ENGINE="+r.engine, "HOLDFAST_SIM_HOURS=1000000",
		"HOLDFAST_SEED="+strconv.FormatUint(seed, 10))
	cmd.WaitDelay = 10 * time.Second
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		return result{}, err
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		in.CloseWithError(errors.Join(err, io.EOF))
		ended <- err
	}()
	found, tail := "", ""
	silent := time.AfterFunc(r.silence, func() { in.CloseWithError(errSilent) })
	defer silent.Stop()
	lines := bufio.NewScanner(out)
	for found == "" && lines.Scan() {
		silent.Reset(r.silence)
		tail = lines.Text()
		found = sign(strings.Trim(tail, "\x16"))
	}
	if errors.Is(lines.Err(), errSilent) {
		found = "no run ends any more"
	}
	stop()
	_ = out.Close() // the process may be about to print
	err := <-ended
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if found == "" && status.Signal() != syscall.SIGXCPU && status.Signal() != syscall.SIGKILL {
		return result{}, fmt.Errorf("%s ended without a finding: %w\n%s", r.test, err, tail)
	}
	return result{used, found}, nil
}

var errSilent = errors.New("silent")

// signs match the lines of a failure.
var signs = []*regexp.Regexp{
	regexp.MustCompile(`\d+ findings, first: (.*)`), // see the error of a verdict of chaos
	regexp.MustCompile(`^\s*(?:VIOLATION|PROBLEM) +(.*)`),
	regexp.MustCompile(`^(?:panic|fatal error): (.*)`),
	regexp.MustCompile(`_test\.go:\d+: (?:\w+, )?seed \d+: (.*)`), // a run without a verdict
	regexp.MustCompile(`^\s*--- FAIL: TestConformance/(\S+)`),
	regexp.MustCompile(`^\s*--- (FAIL): `),
}

// rule matches the rule in the text of a violation.
var rule = regexp.MustCompile(`^([a-z]+): `)

// sign returns the name of the rule that a line reports as broken, or the beginning of another failure, or "".
func sign(line string) string {
	for _, form := range signs {
		if found := form.FindStringSubmatch(line); found != nil {
			if name := rule.FindStringSubmatch(found[1]); name != nil && form != signs[2] {
				return name[1]
			}
			return found[1][:min(len(found[1]), 80)]
		}
	}
	return ""
}
