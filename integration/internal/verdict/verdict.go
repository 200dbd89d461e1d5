package verdict

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Tries is how often a test runs that is inconclusive each time.
const Tries = 3

// Excuse is how long the machine has to stand still for a lost lock or a wait in vain to prove nothing.
const Excuse = 250 * time.Millisecond

var state struct {
	sync.Mutex
	witness      *witness
	inMain       bool
	try          int
	began        map[string]time.Time // by the names of tests
	virtual      map[string]bool      // by the names of tests
	inconclusive map[string]string    // reasons, by the names of tests
}

func init() {
	state.witness = newWitness()
	state.began = make(map[string]time.Time)
	state.virtual = make(map[string]bool)
	state.inconclusive = make(map[string]string)
}

// Begin notes that a test begins. When it ends, the verdict and how long the machine stood still are reported. Without Begin
// a test is judged by the stalls since its binary started.
func Begin(t testing.TB) {
	t.Helper()
	began := time.Now()
	state.Lock()
	state.began[t.Name()] = began
	state.Unlock()
	t.Cleanup(func() {
		worst := state.witness.worst(began)
		if worst >= notable {
			t.Logf("the machine stood still for up to %v during this test", worst.Round(time.Millisecond))
		}
		report(t.Name(), outcome(t), time.Since(began), worst)
	})
}

// BeginVirtual is [Begin] for a test in virtual time, which nothing that the machine does excuses.
func BeginVirtual(t testing.TB) {
	t.Helper()
	state.Lock()
	state.virtual[t.Name()] = true
	state.Unlock()
	Begin(t)
}

// IsVirtual reports whether a test has begun by [BeginVirtual].
func IsVirtual(t testing.TB) bool {
	state.Lock()
	defer state.Unlock()
	return state.virtual[t.Name()]
}

func outcome(t testing.TB) string {
	state.Lock()
	defer state.Unlock()
	switch _, inconclusive := state.inconclusive[t.Name()]; {
	case t.Failed():
		return "FAIL"
	case inconclusive:
		return "inconclusive"
	case t.Skipped():
		return "skip"
	}
	return "pass"
}

// Stalled returns for how long the machine stood still at the longest since a test, or the test that it is a part of, began.
func Stalled(t testing.TB) time.Duration {
	if IsVirtual(t) {
		return 0
	}
	state.Lock()
	var began time.Time
	for name := t.Name(); name != ""; name = parent(name) {
		if at, ok := state.began[name]; ok {
			began = at
			break
		}
	}
	state.Unlock()
	return state.witness.worst(began)
}

func parent(name string) string {
	return name[:max(strings.LastIndexByte(name, '/'), 0)]
}

// Fatalf ends a test that waited in vain or lost a lock that it meant to keep. It is inconclusive if the machine has stood still
// for [Excuse], and has failed if not. Like t.Fatalf, it must be called from the goroutine that runs the test.
func Fatalf(t testing.TB, format string, args ...any) {
	t.Helper()
	if worst := Stalled(t); worst >= Excuse {
		Inconclusive(t, "%s, when the machine stood still for %v", fmt.Sprintf(format, args...), worst.Round(time.Millisecond))
	}
	t.Fatalf(format, args...)
}

// Must ends a test on an error. A lost lock, a connection that is gone and a time-out are what a machine that stands still
// causes: they count as [Fatalf] says. That somebody broke the lock is no such thing.
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
	if t.Failed() {
		t.Fatal(reason)
	}
	state.Lock()
	again := state.inMain && state.try < Tries
	try := state.try
	if again {
		state.inconclusive[t.Name()] = reason
	}
	state.Unlock()
	if !again {
		t.Fatalf("inconclusive at try %d, which is the last: %s", try, reason)
	}
	t.Skipf("inconclusive at try %d of %d: %s", try, Tries, reason)
}

// reportsVariable names a file to which each test adds a line with its verdict.
const reportsVariable = "HOLDFAST_VERDICTS"

// report adds a line of six columns: verdict, try, seconds, seconds of the longest stall, name of the test, reason.
func report(test, outcome string, took, worst time.Duration) {
	path := os.Getenv(reportsVariable)
	if path == "" {
		return
	}
	state.Lock()
	defer state.Unlock()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return // the tests themselves say what they found
	}
	defer f.Close()
	reason := strings.NewReplacer("\n", " ", "\t", " ").Replace(state.inconclusive[test])
	fmt.Fprintf(f, "%s\t%d\t%.1f\t%.1f\t%s\t%s\n", outcome, max(state.try, 1), took.Seconds(), worst.Seconds(), test, reason)
}
