package integration_test

import (
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/zklock"
)

// engines are the engines that run the whole contract. Opening one returns the name of
// its server.
var engines = map[string]func(*testing.T) (locktest.Engine, string){
	"memory":                    memoryEngine,
	"zookeeper/curator":         zookeeperEngine(zklock.CuratorNames),
	"zookeeper/kazoo":           zookeeperEngine(zklock.KazooNames),
	"dynamodb":                  dynamodbEngine(dynamolock.FailOpen),
	"dynamodb/FailClosed":       dynamodbEngine(dynamolock.FailClosed),
	"dynamodb/FailClosedFenced": dynamodbEngine(dynamolock.FailClosedFenced),
}

// conformanceLanes is how many cases of each engine run at a time.
const conformanceLanes = 8

// TestConformance runs the same cases on every engine, on real servers and in real time.
// It prints the result of each engine at once.
//
// The engines run at the same time, and no other test of this package runs with them: the
// cases mostly wait for leases to expire.
func TestConformance(t *testing.T) {
	tests := make(map[string]func(*testing.T))
	for name, open := range engines {
		tests[name] = func(t *testing.T) {
			engine, source := open(t)
			conforms(t, name, source, engine)
		}
	}
	together(t, tests)
}

// conforms runs the suite, and prints its result.
func conforms(t *testing.T, name, source string, engine locktest.Engine) {
	t.Helper()
	r := &result{engine: name, source: source, began: time.Now()}
	start := engine.Start
	engine.Start = func(t testing.TB) locktest.Harness {
		r.count(t)
		return start(t)
	}
	locktest.Run(t, engine)
	out := io.Writer(os.Stdout)
	if name := os.Getenv(resultsVariable); name != "" {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		out = io.MultiWriter(out, file)
	}
	r.print(out)
}

// resultsVariable names a file to which the results are also written: with several
// packages, "go test" hides the output of those that pass.
const resultsVariable = "HOLDFAST_RESULTS"

// A result counts an engine's cases.
type result struct {
	engine, source string
	began          time.Time

	mu                      sync.Mutex
	passed, failed, skipped int
}

// count counts a case when it ends. Call it before the case registers any other cleanup,
// so that it sees their failures.
func (r *result) count(t testing.TB) {
	t.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		switch {
		case t.Failed():
			r.failed++
		case t.Skipped():
			r.skipped++
		default:
			r.passed++
		}
	})
}

func (r *result) print(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	verdict := "ok  "
	if r.failed > 0 {
		verdict = "FAIL"
	}
	fmt.Fprintf(w, "%s conformance  %-25s %3d cases  %3d passed  %3d failed  %3d skipped  %6.1fs  %s\n", verdict, r.engine,
		r.passed+r.failed+r.skipped, r.passed, r.failed, r.skipped, time.Since(r.began).Seconds(), r.source)
}
