package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// A fleet lets real programs with different locks contend for the same keys, kills holders of each kind, and stops them for longer than
// their leases. They exclude one another, tokens rise, and each kind takes over after the crash of another. A holder of ours always knows
// in time; others may be excused.
type fleet struct {
	*testing.T
	kinds   []fleetLanguage
	paths   []string // the keys
	start   func(kind fleetLanguage, name string, heard func(fleetReport)) *peer
	blows   []fleetBlow
	rests   map[fleetLanguage]int // ms between two turns at most, on average half of it
	long    int                   // ms that one hold in ten takes, if it is set
	forever bool                  // locks never expire, and have no tokens
	witness *witness

	mu      sync.Mutex
	random  *rand.Rand
	end     time.Time    // of the run, unless something is missing
	stopped atomic.Int32 // how many pauses go on
	struck  map[fleetLanguage]map[fleetBlow]int
	dead    map[string]bool // the killed
	lacks   string          // missing, which has not happened in time
}

// A fleetBlow is a fault injected into a holder.
type fleetBlow string

const (
	fleetKill  fleetBlow = "kill"
	fleetPause fleetBlow = "pause" // until another process has the lock
)

func newFleet(t *testing.T, random *rand.Rand, witness *witness, kinds ...fleetLanguage) *fleet {
	f := &fleet{
		T: t, kinds: kinds, random: random, witness: witness, blows: []fleetBlow{fleetKill, fleetPause},
		struck: make(map[fleetLanguage]map[fleetBlow]int), dead: make(map[string]bool),
	}
	for _, kind := range kinds {
		f.struck[kind] = make(map[fleetBlow]int)
	}
	return f
}

// run lets the fleet contend for a time, or longer if too little has happened by then.
func (f *fleet) run(duration time.Duration) {
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	f.end = time.Now().Add(duration)
	var members sync.WaitGroup
	for i, path := range f.paths {
		for _, kind := range f.kinds {
			n := 1
			if ours(kind) {
				n = 2
			}
			for j := range n {
				members.Go(func() { f.contend(ctx, path, kind, i*n+j+1) })
			}
		}
	}
	for ; ; time.Sleep(10 * time.Millisecond) {
		missing := f.missing()
		if time.Now().After(f.end) && missing == "" || f.Failed() {
			break
		}
		if time.Since(f.end) > 2*time.Minute {
			f.lacks = missing
			break
		}
	}
	cancel()
	members.Wait()
}

// contend acquires a lock again and again, with one process after the other.
func (f *fleet) contend(ctx context.Context, path string, kind fleetLanguage, number int) {
	for generation := 1; ctx.Err() == nil && !f.Failed(); generation++ {
		name := fmt.Sprintf("%s-%d.%d", strings.ReplaceAll(string(kind), " ", "-"), number, generation)
		p := f.start(kind, name, func(r fleetReport) {
			if r.What != fleetReady {
				r.Key = path
				f.witness.see(name, kind, r)
			}
		})
		for p.turn(ctx, f, path) {
		}
		f.witness.ended(name)
		if !p.expected.Load() { // it was not killed
			p.finish(f.T)
		}
	}
}

// turn holds the lock once; false: its process has ended, or should have.
func (p *peer) turn(ctx context.Context, f *fleet, path string) bool {
	// Mostly at once and sometimes late; otherwise all would follow each other in the same order for ever.
	sleepFor(ctx, f.within(0, 60))
	if f.within(0, 2) == 0 {
		sleepFor(ctx, f.within(0, 500))
	}
	sleepFor(ctx, f.within(0, f.rests[p.language]))
	if ctx.Err() != nil {
		return false
	}
	select {
	case <-p.lost: // an earlier one
	default:
	}
	f.witness.see(p.name, p.language, fleetReport{What: fleetWaiting, Key: path})
	p.do("acquire", words(path, peerKinds[p.language].recipe)...)
	r, ok := p.answer(ctx)
	if !ok {
		return false
	}
	if r.What != fleetAcquired { // a failure is no violation
		return true
	}
	sleepFor(ctx, f.within(20, 120))
	if f.long > 0 && f.within(0, 9) == 0 {
		sleepFor(ctx, f.within(f.long/2, f.long))
	}
	switch f.blow(p) {
	case fleetKill:
		p.kill()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.dead[p.name] = true
		return false
	case fleetPause:
		p.pause(f, path, r.Token)
	}
	p.do("release")
	if r, ok = p.answer(context.Background()); !ok {
		return false
	}
	select {
	case <-p.lost: // so there was nothing to release
	default:
		if f.forever && r.Note != "" {
			f.Errorf("%s: release of a lock that never expires: %s", p.name, r.Note)
		}
	}
	return true
}

// answer returns the next answer; false if the process or ctx ends first.
func (p *peer) answer(ctx context.Context) (peerReport, bool) {
	select {
	case r, ok := <-p.answers:
		return r, ok
	case <-ctx.Done():
		return peerReport{}, false
	case <-time.After(patience):
		p.t.Errorf("%s does not answer; its log ends:\n%s", p.name, p.logged())
		return peerReport{}, false
	}
}

// pause stops a holder, and resumes it after another peer has held the lock for a moment.
func (p *peer) pause(f *fleet, path string, token uint64) {
	defer f.stopped.Add(-1)
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		f.Error(err)
		return
	}
	if !becomes(func() bool { return f.witness.heldAbove(path, token) }) {
		f.Errorf("nobody gets the lock of %s, which is stopped", p.name)
	}
	if err := p.Signal(syscall.SIGCONT); err != nil {
		f.Error(err)
	}
	time.Sleep(4 * fleetStamp) // so that it reports its belief
}

// blow returns the fault for a holder, "" in most cases: a peer with another lock must be waiting.
func (f *fleet) blow(p *peer) fleetBlow {
	if !f.witness.contended()[p.name] {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	blow := f.blows[f.random.IntN(len(f.blows))]
	struck := f.struck[p.language]
	if struck[blow] > 0 && (f.random.IntN(4) > 0 || time.Now().After(f.end)) {
		return ""
	}
	struck[blow]++
	if blow == fleetPause {
		f.stopped.Add(1)
	}
	return blow
}

// within returns a random time within bounds in milliseconds.
func (f *fleet) within(least, most int) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Duration(least+f.random.IntN(most-least+1)) * time.Millisecond
}

// missing names what must still happen for the test to mean anything; "" if nothing.
func (f *fleet) missing() string {
	figures := f.witness.figures()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped.Load() > 0 {
		return "a holder that is stopped"
	}
	for _, kind := range f.kinds {
		if figures.holds[kind] < 5 {
			return fmt.Sprintf("no fifth hold by %s", kind)
		}
		for _, blow := range f.blows {
			if f.struck[kind][blow] == 0 {
				return fmt.Sprintf("no %s of %s", blow, kind)
			}
		}
		for _, other := range f.kinds {
			// Readers hold the lock together, and need not follow each other.
			if together := reads(kind) && reads(other); other != kind && !together && figures.handovers[[2]fleetLanguage{other, kind}] == 0 {
				return fmt.Sprintf("no handover from %s to %s", other, kind)
			}
		}
	}
	if figures.takeovers == 0 {
		return "no takeover from a crashed process of another kind"
	}
	return ""
}

// judge reports what happened, and fails the test for violations.
func (f *fleet) judge() {
	for _, violation := range f.witness.violations(!f.forever) {
		f.Error(violation)
	}
	figures := f.witness.figures()
	if f.forever && figures.lost > 0 {
		f.Errorf("locks that never expire were lost: %d times", figures.lost)
	}
	f.Logf("%+v; blows: %v", figures, f.struck)
	if f.lacks != "" {
		verdict.Inconclusive(f, "after all this time there is %s", f.lacks)
	}
}

// fleetStamp is the time between two looks at a lock.
const fleetStamp = 25 * time.Millisecond

func sleepFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
