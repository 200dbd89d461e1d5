package integration_test

import (
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/zklock"
)

// engines are the engines that run the whole contract on servers. Opening one returns the name of its server. memlock, which has
// none, runs it in its own tests.
func engines(zookeeper func() *zkserver.Target) map[string]func(*testing.T) (locktest.Engine, string) {
	return map[string]func(*testing.T) (locktest.Engine, string){
		"zookeeper/curator":         zookeeperEngine(zookeeper, zklock.CuratorNames),
		"zookeeper/kazoo":           zookeeperEngine(zookeeper, zklock.KazooNames),
		"zookeeper/curator-latch":   zookeeperEngine(zookeeper, zklock.CuratorLatchNames),
		"zookeeper/curator-rw":      zookeeperEngine(zookeeper, zklock.CuratorRWNames),
		"dynamodb":                  dynamodbEngine(dynamolock.FailOpen),
		"dynamodb/FailClosed":       dynamodbEngine(dynamolock.FailClosed),
		"dynamodb/FailClosedFenced": dynamodbEngine(dynamolock.FailClosedFenced),
		"mongodb":                   mongodbEngine,
	}
}

// changeable are the guarantees that a form of an engine can break although the engine's other forms keep them: a form of names
// changes how a node of one's own is found, and how the queue is read; FailClosed differs from FailClosedFenced, which runs all
// cases, in its writes. With HOLDFAST_CONFORMANCE=full every form runs all cases.
var changeable = map[string][]string{
	"zookeeper/kazoo":         {"G1", "G3", "G5", "G6", "G7", "G10", "G13", "G14", "G19", "G20", "G21"},
	"zookeeper/curator-latch": {"G1", "G3", "G5", "G6", "G7", "G10", "G13", "G14"},
	"zookeeper/curator-rw":    {"G1", "G3", "G10", "G14", "G19", "G20", "G21"},
	"dynamodb/FailClosed":     {"G1", "G3", "G6", "G10", "G13", "G16", "G17"},
}

// conformanceLanes is how many cases of an engine run at a time, if it runs all.
const conformanceLanes = 10

// TestConformance runs the same cases on every engine, on real servers and in real time.
// It prints the result of each engine at once.
//
// The engines run at the same time, and no other test of this package runs with them: the cases mostly wait for leases to expire.
func TestConformance(t *testing.T) {
	zookeeper := sync.OnceValue(func() *zkserver.Target {
		return zkserver.Find(t, zkserver.Config{MaxSessionTimeout: 30 * time.Second})
	})
	tests := make(map[string]func(*testing.T))
	for name, open := range engines(zookeeper) {
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
	r := &result{engine: name, source: source, began: time.Now(), started: make(map[string]bool)}
	start := engine.Start
	few, reduced := changeable[name]
	reduced = reduced && os.Getenv("HOLDFAST_CONFORMANCE") != "full"
	if reduced {
		engine.Lanes = (engine.Lanes + 1) / 2 // others take longer
	}
	engine.Start = func(t testing.TB) locktest.Harness {
		r.count(t)
		if rule, _, _ := strings.Cut(path.Base(t.Name()), "_"); reduced && !slices.Contains(few, rule) {
			t.Skip("this form of the engine cannot change it; HOLDFAST_CONFORMANCE=full runs it")
		}
		return start(t)
	}
	locktest.Run(t, engine)
	out := io.Writer(os.Stdout)
	if name := os.Getenv(resultsVariable); name != "" {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		must(t, err)
		defer func() { _ = file.Close() }()
		out = io.MultiWriter(out, file)
	}
	r.print(out)
}

// resultsVariable names a file to which the results are also written: with several packages, "go test" hides the output of packages that
// pass.
const resultsVariable = "HOLDFAST_RESULTS"

// A result counts an engine's cases.
type result struct {
	engine, source string
	began          time.Time

	mu                      sync.Mutex
	started                 map[string]bool
	passed, failed, skipped int
}

// count counts a case when it ends, once, however often it is tried. Call it before the case
// registers any other cleanup, so that it sees their failures.
func (r *result) count(t testing.TB) {
	r.mu.Lock()
	again := r.started[t.Name()]
	r.started[t.Name()] = true
	r.mu.Unlock()
	if again {
		return
	}
	verdict.Begin(t)
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
	outcome := "ok  "
	if r.failed > 0 {
		outcome = "FAIL"
	}
	fmt.Fprintf(w, "%s conformance  %-25s %3d cases  %3d passed  %3d failed  %3d skipped  %6.1fs  %s\n", outcome, r.engine,
		r.passed+r.failed+r.skipped, r.passed, r.failed, r.skipped, time.Since(r.began).Seconds(), r.source)
}
