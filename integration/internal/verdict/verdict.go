// Package verdict gives a test a third verdict beside pass and fail: inconclusive. A busy machine may let every process stand still
// for seconds. Then a lock ends that a test wanted to keep, or a wait takes too long. That proves nothing about the library, so such
// a test runs again by itself, at most [Tries] times in all. To go test an inconclusive try looks like a skipped test.
//
// Everything else is a failure, however busy the machine was: two holders, a token that falls, an orphan, a goroutine that does not
// end, a data race. Those guarantees are for machines that stand still. Report them with t.Error.
package verdict

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/child"
)

// Tries is how often a test runs that is inconclusive each time.
const Tries = 3

// Excuse is how long the machine has to stand still for a lost lock or a wait in vain to prove nothing.
const Excuse = 250 * time.Millisecond

// tryVariable tells a binary that is started again which try this is.
const tryVariable = "HOLDFAST_VERDICT_TRY"

// state belongs to this process, which is one try. The keys of the maps are names of tests.
var state = struct {
	sync.Mutex
	inMain       bool
	began        map[string]time.Time
	inconclusive map[string]string // reasons
}{began: map[string]time.Time{}, inconclusive: map[string]string{}}

// try is the number of this try, from 1.
func try() int {
	n, _ := strconv.Atoi(os.Getenv(tryVariable))
	return max(n, 1)
}

// Main runs the tests of a binary and, if none has failed, runs the inconclusive ones again. run is m.Run with what belongs around
// it, such as stopping servers: each try is a process of its own. Main returns the exit code. Call it from TestMain.
func Main(run func() int) int {
	state.inMain = true
	code := run()
	if code != 0 || len(state.inconclusive) == 0 {
		return code
	}
	var patterns []string
	for name, reason := range state.inconclusive {
		fmt.Printf("verdict: inconclusive at try %d of %d: %s: %s\n", try(), Tries, name, reason)
		elements := strings.Split(name, "/")
		for i, element := range elements {
			elements[i] = "^" + regexp.QuoteMeta(element) + "$"
		}
		patterns = append(patterns, strings.Join(elements, "/"))
	}
	// The last of two flags counts. go test reads the log of the first process.
	again := exec.Command(os.Args[0], append(slices.Clone(os.Args[1:]), "-test.run="+strings.Join(patterns, "|"), "-test.testlogfile=")...)
	again.Env = append(os.Environ(), fmt.Sprintf("%s=%d", tryVariable, try()+1))
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	again.SysProcAttr = child.Attr()
	runtime.LockOSThread() // the child ends with the thread that started it
	if err := again.Run(); err != nil {
		fmt.Printf("verdict: try %d: %v\n", try()+1, err)
		return 1
	}
	return 0
}

// Begin notes that a test begins: only later stalls excuse it. Without Begin, all stalls of the process do.
func Begin(t testing.TB) { begin(t, time.Now()) }

// BeginVirtual notes that a test is in virtual time. No stall excuses it.
func BeginVirtual(t testing.TB) { begin(t, afterAll) }

// afterAll is later than all stalls.
var afterAll = time.Unix(1<<40, 0)

func begin(t testing.TB, at time.Time) {
	state.Lock()
	defer state.Unlock()
	state.began[t.Name()] = at
}

// IsVirtual reports whether a test has begun by [BeginVirtual].
func IsVirtual(t testing.TB) bool {
	state.Lock()
	defer state.Unlock()
	return state.began[t.Name()].Equal(afterAll)
}

// Stalled returns the longest stall of the machine since a test, or the test that it is a part of, began.
func Stalled(t testing.TB) time.Duration {
	state.Lock()
	defer state.Unlock()
	for name := t.Name(); name != ""; name = name[:max(strings.LastIndexByte(name, '/'), 0)] {
		if at, ok := state.began[name]; ok {
			return machine.worst(at)
		}
	}
	return machine.worst(time.Time{})
}

// Fatalf ends a test that waited in vain or lost a lock that it meant to keep. The test is inconclusive if the machine has stood
// still for [Excuse], and has failed if not. Like t.Fatalf, it must be called from the goroutine that runs the test.
func Fatalf(t testing.TB, format string, args ...any) {
	t.Helper()
	if worst := Stalled(t); worst >= Excuse {
		Inconclusive(t, "%s, when the machine stood still for %v", fmt.Sprintf(format, args...), worst.Round(time.Millisecond))
	}
	t.Fatalf(format, args...)
}

// Must ends a test on an error. A machine that stands still causes lost locks, lost connections and time-outs: these count as
// [Fatalf] says. It does not cause a broken lock.
func Must(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, holdfast.ErrLost) && !errors.Is(err, holdfast.ErrBroken), errors.Is(err, holdfast.ErrDisconnected),
		errors.Is(err, context.DeadlineExceeded):
		Fatalf(t, "%v", err)
	default:
		t.Fatal(err)
	}
}

// Inconclusive ends a test whose experiment did not come about. It fails a test that has failed already, and at the last try.
// Like t.Fatalf, it must be called from the goroutine that runs the test.
func Inconclusive(t testing.TB, format string, args ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, args...)
	if t.Failed() || !state.inMain || try() == Tries {
		t.Fatalf("inconclusive at try %d, which is the last: %s", try(), reason)
	}
	state.Lock()
	state.inconclusive[t.Name()] = reason
	state.Unlock()
	t.Skipf("inconclusive at try %d of %d: %s", try(), Tries, reason)
}
