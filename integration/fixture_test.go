package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/mongoserver"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/internal/signaltest"
)

// patience bounds everything that must happen: only a failure waits that long.
const patience = time.Minute

// tick is the tick of the shared server. Session timeouts are from two ticks to longest.
const (
	tick    = 100 * time.Millisecond
	longest = 60 * time.Second
)

// shared is the server for tests that do it no harm. The first such test starts it.
var shared struct {
	once   sync.Once
	server *zkserver.Server
	err    error
}

// children are the programs that this binary runs as a child process, by the value of childVariable.
var children = map[string]func() int{}

const childVariable = "HOLDFAST_TEST_CHILD"

func TestMain(m *testing.M) {
	if child, ok := children[os.Getenv(childVariable)]; ok {
		os.Exit(child())
	}
	signaltest.Default()
	os.Exit(verdict.Main(func() int {
		code := dynamoserver.Main(m)
		mongoserver.Stop()
		if shared.server != nil {
			shared.server.Close()
		}
		return code
	}))
}

// server returns the shared server.
func server(t *testing.T) *zkserver.Server {
	t.Helper()
	if verdict.IsVirtual(t) {
		t.Fatal("a real server would be waited for in virtual time, which never passes then")
	}
	shared.once.Do(func() {
		shared.server, shared.err = zkserver.Start(context.Background(), zkserver.Config{
			TickTime:               tick,
			MaxSessionTimeout:      longest,
			ContainerCheckInterval: time.Hour, // TestParentsReapedAllTheTime has another server
		})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// start runs a test in parallel with others, and checks at its end that all of its goroutines have ended. Call it first.
func start(t *testing.T) {
	t.Helper()
	t.Parallel()
	verdict.Begin(t)
	labelGoroutines(t)
	t.Cleanup(func() { noGoroutines(t) })
}

// together runs subtests all at once. t.Parallel would run only a few at a time, but
// these only wait: for servers, children or leases.
func together(t *testing.T, tests map[string]func(*testing.T)) {
	t.Helper()
	var all sync.WaitGroup
	for name, test := range tests {
		all.Go(func() { t.Run(name, test) })
	}
	all.Wait()
}

// noGoroutines fails the test if goroutines that it started in the library or in go-zookeeper do not end.
func noGoroutines(t *testing.T) {
	t.Helper()
	var left string
	if !becomes(func() bool { left = goroutines(t.Name()); return left == "" }) {
		t.Errorf("goroutines left behind:\n%s", left)
	}
}

// goroutines returns the goroutines of the library and of go-zookeeper that a test started.
func goroutines(test string) string {
	var found []string
	for _, group := range labelled(test) {
		if strings.Contains(group, "github.com/go-zookeeper/zk.") ||
			strings.Contains(group, "github.com/holdfast-go/holdfast.") ||
			strings.Contains(group, "github.com/holdfast-go/holdfast/dynamolock.") ||
			strings.Contains(group, "github.com/holdfast-go/holdfast/zklock.") {
			found = append(found, group)
		}
	}
	return strings.Join(found, "\n\n")
}

// labelled returns the goroutines of a test from a profile. Goroutines with equal stacks are one group, which begins with their number.
func labelled(test string) []string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return []string{err.Error()}
	}
	_, groups, _ := strings.Cut(profile.String(), "\n") // without the headline
	label := fmt.Sprintf("%q:%q", "test", test)
	var found []string
	for group := range strings.SplitSeq(groups, "\n\n") {
		if strings.Contains(group, label) {
			found = append(found, group)
		}
	}
	return found
}

// setting parses an environment variable that makes a test longer or repeats it; it is usual if the variable is not set.
func setting[T any](t *testing.T, variable string, usual T, parse func(string) (T, error)) T {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	value, err := parse(text)
	must(t, err)
	return value
}

// seeded returns the seed of a test's random choices. HOLDFAST_SEED repeats the choices of another run.
func seeded(t *testing.T) uint64 {
	t.Helper()
	seed := setting(t, "HOLDFAST_SEED", uint64(time.Now().UnixNano()), func(s string) (uint64, error) {
		return strconv.ParseUint(s, 10, 64)
	})
	t.Logf("HOLDFAST_SEED=%d", seed)
	return seed
}

// limited returns a context for calls that should succeed.
func limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// becomes waits until cond holds, and reports whether it ever did.
func becomes(cond func() bool) bool {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if cond() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// eventually fails the test if cond never holds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	if !becomes(cond) {
		verdict.Fatalf(t, "never: %s", what)
	}
}

// receive receives from a channel, and fails the test if nothing comes.
func receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		verdict.Fatalf(t, "never: %s", what)
		panic("unreachable")
	}
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	verdict.Must(t, err)
}

// check reports an error without ending the test. Goroutines of a test use it.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// errOf is the error of a call whose result does not matter.
func errOf[T any](_ T, err error) error { return err }

// async calls f in the background, and returns a channel of its result.
func async[T any](f func() T) <-chan T {
	result := make(chan T, 1)
	go func() { result <- f() }()
	return result
}

// silent fails the test if something comes from a channel within a short time. It can
// miss a fault, but never reports a false one.
func silent[T any](t *testing.T, what string, from <-chan T) {
	t.Helper()
	select {
	case <-from:
		t.Fatalf("too early: %s", what)
	case <-time.After(50 * time.Millisecond):
	}
}
