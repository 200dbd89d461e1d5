package integration_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// interopFleets are the groups of peers that can share a lock: each respects each other
// one, as TestInterop shows.
var interopFleets = map[string][]fleetLanguage{
	"CuratorNames, Curator, go-zookeeper":                {peerZklock, peerCurator, peerGo},
	"CuratorNames, kazoo with patterns, go-zookeeper":    {peerZklock, peerKazooExtra, peerGo},
	"CuratorNames, Curator, kazoo renamed, go-zookeeper": {peerZklock, peerCurator, peerRenamed, peerGo},
	"KazooNames, kazoo":                                  {peerZklockKazoo, peerKazoo},
	"both names, go-zookeeper":                           {peerZklock, peerZklockKazoo, peerGo},
}

// interopSession is the session timeout of the peers: short, because each crash and each
// pause costs one.
const interopSession = 2 * time.Second

// TestInteropFleet lets real programs with different locks contend for one znode, kills a
// holder of each kind, and stops one for longer than its session. They exclude one
// another, tokens rise from one to the next, each takes over after the crash of another,
// and nothing stays behind. A peer that wakes up after its session still believes in its
// lock, and is excused; a holder of ours never is.
//
// HOLDFAST_INTEROP says for how long at least; HOLDFAST_SEED repeats the random
// times.
func TestInteropFleet(t *testing.T) {
	start(t)
	duration := 5 * time.Second
	if s := os.Getenv("HOLDFAST_INTEROP"); s != "" {
		var err error
		if duration, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("HOLDFAST_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("HOLDFAST_SEED=%d", seed)
	addr := server(t).Addr()
	tests := make(map[string]func(*testing.T))
	for i, name := range slices.Sorted(maps.Keys(interopFleets)) {
		tests[name] = func(t *testing.T) {
			f := newInteropFleet(t, addr, interopFleets[name], rand.New(rand.NewPCG(seed, uint64(i))))
			f.run(duration)
			f.judge()
		}
	}
	together(t, tests)
}

// interopFleet is the state of one fleet.
type interopFleet struct {
	*testing.T
	addr    string
	conn    *zk.Conn
	path    string
	kinds   []fleetLanguage
	witness *witness

	mu      sync.Mutex
	random  *rand.Rand
	end     time.Time // of what is more than the least
	stopped int       // how many pauses go on
	struck  map[fleetLanguage]map[interopBlow]int
	notes   map[string]int
}

// An interopBlow is a fault injected into a holder.
type interopBlow string

const (
	interopKill  interopBlow = "kill"
	interopPause interopBlow = "pause" // until somebody else has the lock
)

func newInteropFleet(t *testing.T, addr string, kinds []fleetLanguage, random *rand.Rand) *interopFleet {
	conn := plain(t, addr)
	f := &interopFleet{
		T: t, addr: addr, conn: conn, path: persistent(t, conn), kinds: kinds, random: random,
		witness: newWitness(0), // the observer knows the excuses
		struck:  make(map[fleetLanguage]map[interopBlow]int),
		notes:   make(map[string]int),
	}
	for _, kind := range kinds {
		f.struck[kind] = make(map[interopBlow]int)
	}
	return f
}

// run lets the fleet contend for a time, or longer if too little has happened by then.
func (f *interopFleet) run(duration time.Duration) {
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	f.end = time.Now().Add(duration)
	observing, rest := context.WithCancel(context.Background())
	defer rest()
	o, observed := observe(observing, f.T, f.addr, f.conn, f.path)
	var members sync.WaitGroup
	for _, kind := range f.kinds {
		n := 1
		if ours(kind) {
			n = 2
		}
		for i := range n {
			members.Go(func() { f.contend(ctx, kind, i+1) })
		}
	}
	for ; ; time.Sleep(10 * time.Millisecond) {
		missing := f.missing()
		if time.Now().After(f.end) && missing == "" || f.Failed() {
			break
		}
		if time.Since(f.end) > 2*time.Minute {
			f.Errorf("after all this time there is %s", missing)
			break
		}
	}
	cancel()
	members.Wait()
	rest()
	<-observed
	noResidue(f, f.conn, f.path)
	noWatches(f, f.addr, f.path)
	for _, robbed := range o.judge(f.witness) {
		f.Error(robbed)
	}
}

// contend acquires the lock again and again, with one process after the other.
func (f *interopFleet) contend(ctx context.Context, kind fleetLanguage, number int) {
	for generation := 1; ctx.Err() == nil && !f.Failed(); generation++ {
		name := fmt.Sprintf("%s-%d.%d", strings.ReplaceAll(string(kind), " ", "-"), number, generation)
		p := startPeer(f.T, f.addr, kind, name, interopSession, func(r fleetReport) {
			if r.What != fleetReady {
				r.Key = f.path
				f.witness.see(name, kind, r)
			}
		})
		for p.turn(ctx, f) {
		}
		f.witness.ended(name)
		if !p.expected.Load() { // it was not killed
			p.finish(f.T)
		}
	}
}

// turn holds the lock once; false: its process has ended, or should have.
func (p *peer) turn(ctx context.Context, f *interopFleet) bool {
	// Mostly at once and sometimes late; otherwise all would follow each other in the same
	// order for ever.
	sleepFor(ctx, f.within(0, 60))
	if f.within(0, 2) == 0 {
		sleepFor(ctx, f.within(0, 500))
	}
	if ctx.Err() != nil {
		return false
	}
	select {
	case <-p.lost: // an earlier one
	default:
	}
	f.witness.see(p.name, p.language, fleetReport{What: fleetWaiting, Key: f.path})
	p.do("acquire", f.path)
	r, ok := p.answer(ctx)
	if !ok {
		return false
	}
	if r.What != fleetAcquired {
		f.note(p, "acquire: "+r.Note)
		return true
	}
	sleepFor(ctx, f.within(20, 120))
	switch f.blow(p) {
	case interopKill:
		p.kill()
		return false
	case interopPause:
		p.pause(f, r.Token)
	}
	p.do("release")
	if r, ok = p.answer(context.Background()); !ok {
		return false
	}
	select {
	case <-p.lost: // so there was nothing to release
	default:
		f.note(p, "release: "+r.Note)
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
func (p *peer) pause(f *interopFleet, token uint64) {
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.stopped--
	}()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		f.Error(err)
		return
	}
	if !becomes(func() bool { return f.witness.heldAbove(token) }) {
		f.Errorf("nobody gets the lock of %s, which is stopped; waiting are %q", p.name, list(f, f.conn, f.path))
	}
	if err := p.Signal(syscall.SIGCONT); err != nil {
		f.Error(err)
	}
	time.Sleep(4 * fleetStamp) // so that it reports what it believes
}

// heldAbove reports whether a holder with a greater token has checked its lock twice.
func (w *witness) heldAbove(token uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.holds, func(h *fleetHold) bool { return h.token > token && h.to > h.from })
}

// blow returns the fault for a holder, "" in most cases: a peer with another lock must be
// waiting.
func (f *interopFleet) blow(p *peer) interopBlow {
	if !f.witness.contended()[p.name] {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	blow := []interopBlow{interopKill, interopPause}[f.random.IntN(2)]
	struck := f.struck[p.language]
	if struck[blow] > 0 && (f.random.IntN(4) > 0 || time.Now().After(f.end)) {
		return ""
	}
	struck[blow]++
	if blow == interopPause {
		f.stopped++
	}
	return blow
}

// within returns a random time within bounds in milliseconds.
func (f *interopFleet) within(least, most int) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Duration(least+f.random.IntN(most-least+1)) * time.Millisecond
}

// note counts failures that are no violations.
func (f *interopFleet) note(p *peer, what string) {
	if strings.HasSuffix(what, ": ") {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes[string(p.language)+": "+what]++
}
