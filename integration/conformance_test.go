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

// engines are what the whole contract is run on. Each is opened along with the
// name of what is behind it.
var engines = []struct {
	name string
	open func(*testing.T) (locktest.Engine, string)
}{
	{"memory", memoryEngine},
	{"zookeeper/curator", zookeeperEngine(zklock.CuratorNames)},
	{"zookeeper/kazoo", zookeeperEngine(zklock.KazooNames)},
	{"dynamodb", dynamodbEngine(dynamolock.FailOpen)},
	{"dynamodb/FailClosed", dynamodbEngine(dynamolock.FailClosed)},
	{"dynamodb/FailClosedFenced", dynamodbEngine(dynamolock.FailClosedFenced)},
}

// conformanceLanes is how many cases of each engine run at a time.
const conformanceLanes = 3

// TestConformance runs the same cases on every engine, on real servers and in
// real time. The results are printed at the end of the binary.
//
// The engines run beside each other, and no other test beside them: it is not
// the processors that this takes, but time for leases to run out.
func TestConformance(t *testing.T) {
	var running sync.WaitGroup
	for _, e := range engines {
		result := results.of(e.name)
		running.Go(func() {
			t.Run(e.name, func(t *testing.T) {
				engine, source := e.open(t)
				result.is(source)
				start := engine.Start
				engine.Start = func(t testing.TB) locktest.Harness {
					result.count(t)
					return start(t)
				}
				locktest.Run(t, engine)
			})
		})
	}
	running.Wait()
}

// results are those of the engines that ran.
var results resultTable

type resultTable struct {
	mu   sync.Mutex
	rows []*result
}

func (r *resultTable) of(engine string) *result {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := &result{engine: engine}
	r.rows = append(r.rows, row)
	return row
}

// resultsVariable names a file that gets the results, too: "go test" keeps to
// itself what the binaries print of several packages that pass.
const resultsVariable = "HOLDFAST_RESULTS"

// tell prints the results.
func (r *resultTable) tell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := io.Writer(os.Stdout)
	if name := os.Getenv(resultsVariable); name != "" {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		defer func() { _ = file.Close() }()
		out = io.MultiWriter(out, file)
	}
	for _, row := range r.rows {
		if !row.began.IsZero() { // -run may choose some
			row.print(out)
		}
	}
}

// A result is what became of an engine's cases.
type result struct {
	engine string

	mu                      sync.Mutex
	source                  string
	passed, failed, skipped int
	began, ended            time.Time
}

func (r *result) is(source string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.source = source
}

// count has a case counted when it has ended. It is to be called before anything
// else of the case asks for a cleanup, so that it sees what those say.
func (r *result) count(t testing.TB) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.began.IsZero() {
		r.began = time.Now()
	}
	t.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = time.Now()
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
		r.passed+r.failed+r.skipped, r.passed, r.failed, r.skipped, r.ended.Sub(r.began).Seconds(), r.source)
}
