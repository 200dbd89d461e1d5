package main

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/history"
	"github.com/holdfast-go/holdfast/internal/strict"
)

func init() { strict.On() }

// mostFailures is after how many runs that failed TestSimulation gives up.
const mostFailures = 3

// TestSimulation is TestChaos in virtual time: the same clients, plans and judge, on the fakes of the engines, in one process
// that waits for nothing. So an hour of it takes a minute, and finds what happens once in days of real time, if it is in the
// client: about the servers, only runs on real ones say anything. It consists of many short runs with consecutive seeds.
//
//	make sim ENGINE=dynamodb HOURS=24 SEED=42
//
// HOLDFAST_SIM_ENGINE, HOLDFAST_SIM_HOURS and HOLDFAST_SEED, the first seed, say the same. With 0 hours, there is one run. A
// seed repeats the plan and the choices of each worker, but not each step: the order of goroutines is Go's choice, in virtual
// time too, and engine and clients draw delays of their own. If a seed has failed once, it may take some tries to see it
// again; the history that is kept tells more.
func TestSimulation(t *testing.T) {
	first, hours := newSeed(t), simulatedHours(t)
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // there is little to keep, and much garbage
	for _, engine := range simulatedEngines(t) {
		t.Run(engine, func(t *testing.T) { // not at the same time, so that the use of the processor can be told apart
			total := &totals{next: first, left: time.Duration(hours * float64(time.Hour)), told: time.Now(), faults: map[string]int{}}
			dir := keptDir(t, engine)
			began, used := time.Now(), processorTime()
			t.Run("runs", func(t *testing.T) {
				for lane := range runtime.GOMAXPROCS(0) { // a run keeps little more than one processor busy
					t.Run(strconv.Itoa(lane), func(t *testing.T) {
						t.Parallel()
						total.simulate(t, engine, dir)
					})
				}
			})
			t.Logf("%s, seeds from %d: %v; %.1f s of processor time, %.1f s",
				engine, first, total, (processorTime() - used).Seconds(), time.Since(began).Seconds())
		})
	}
}

// simulatedHours is HOLDFAST_SIM_HOURS.
func simulatedHours(t *testing.T) float64 {
	t.Helper()
	text, ok := os.LookupEnv("HOLDFAST_SIM_HOURS")
	if !ok {
		return simulatedByDefault
	}
	hours, err := strconv.ParseFloat(text, 64)
	if err != nil || hours < 0 {
		t.Fatalf("HOLDFAST_SIM_HOURS=%q: want a number of hours", text)
	}
	return hours
}

// simulatedEngines is HOLDFAST_SIM_ENGINE, or all engines.
func simulatedEngines(t *testing.T) []string {
	t.Helper()
	all := slices.Sorted(maps.Keys(simulations))
	engine := os.Getenv("HOLDFAST_SIM_ENGINE")
	if engine == "" {
		return all
	}
	if !slices.Contains(all, engine) {
		t.Fatalf("HOLDFAST_SIM_ENGINE=%q: want one of %q", engine, all)
	}
	return []string{engine}
}

// keptDir is a directory that is kept if the test fails.
func keptDir(t *testing.T, engine string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdfast-sim-"+engine+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("histories and logs are in %s", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// totals are what several lanes of runs have in common.
type totals struct {
	mu     sync.Mutex
	next   uint64        // seed
	left   time.Duration // of virtual time, before the last run
	failed int
	told   time.Time // of the progress

	runs                                int
	took                                time.Duration // virtual
	grants, terms, losses, kills, pause int
	faults                              map[string]int // by kind
}

// simulate performs one run after the other until the virtual time is used up.
func (o *totals) simulate(t *testing.T, engine, dir string) {
	t.Helper()
	for {
		seed, ok := o.take()
		if !ok {
			return
		}
		v, took, err := simulated(t, episode(engine, seed), dir)
		if err == nil {
			err = v.err()
		}
		if far := o.add(v, took, err != nil); far != "" {
			t.Logf("so far: %s", far)
		}
		if err == nil {
			continue
		}
		t.Errorf("seed %d: %v", seed, err)
		if v != nil {
			var text strings.Builder
			_ = v.write(&text) // to a buffer
			t.Log(text.String())
		}
	}
}

// take returns the next seed, or false if the time is used up.
func (o *totals) take() (seed uint64, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.runs > 0 && o.took >= o.left || o.failed >= mostFailures {
		return 0, false
	}
	seed = o.next
	o.next++
	o.runs++
	return seed, true
}

// add adds the figures of a run. Once a minute it returns the totals so far.
func (o *totals) add(v *verdict, took time.Duration, failed bool) (far string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.took += took
	if failed {
		o.failed++
	}
	if v == nil {
		return ""
	}
	f := v.figures
	o.grants += f.Grants
	o.terms += f.Terms
	o.kills += f.Whats[history.Killed]
	o.pause += f.Whats[history.Stopped]
	for _, n := range f.Losses {
		o.losses += n
	}
	for kind, n := range f.Faults {
		o.faults[kind] += n
	}
	if time.Since(o.told) < time.Minute {
		return ""
	}
	o.told = time.Now()
	return o.String()
}

// String returns the totals in one paragraph.
func (o *totals) String() string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(o.faults)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", o.faults[kind], kind))
	}
	return fmt.Sprintf("%d runs, %.2f virtual hours: %d grants, %d of them terms, %d lost; "+
		"%d processes killed, %d paused; faults: %s",
		o.runs, o.took.Hours(), o.grants, o.terms, o.losses, o.kills, o.pause, strings.Join(kinds, ", "))
}

// processorTime is how long processors have run this process.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
