package integration_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
)

// The size of a fleet.
const (
	fleetProcesses = 3 // of each language
	fleetKeys      = 4
)

// TestMixedFleet lets Node processes with the npm client and Go processes with ours
// contend for the same keys, and kills or stops them. They exclude one another, tokens
// rise from one to the next, and each takes over after the crash of another.
//
// HOLDFAST_MIXED_FLEET says how long that goes on for; HOLDFAST_SEED repeats the
// order of the crashes.
//
// No test mixes clients that trust the clock with others: the npm client's own holders
// exclude one another only if all have the same setting. A client that does not trust the
// clock writes no time, so one that does has nothing to wait for.
func TestMixedFleet(t *testing.T) {
	start(t)
	duration := 15 * time.Second
	if s := os.Getenv("HOLDFAST_MIXED_FLEET"); s != "" {
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
	target := dynamoserver.Find(t)
	tests := make(map[string]func(*testing.T))
	for i, form := range []struct {
		name  string
		mode  dynamolock.Mode
		trust bool
	}{
		{"FailOpen", dynamolock.FailOpen, false},
		{"FailOpenTrustingClocks", dynamolock.FailOpen, true},
		{"FailClosed", dynamolock.FailClosed, false},
	} {
		tests[form.name] = func(t *testing.T) {
			f := newFleet(t, target, form.mode, rand.New(rand.NewPCG(seed, uint64(i))))
			f.config.Trust = form.trust
			f.run(duration)
			f.judge()
		}
	}
	together(t, tests)
}

// fleet is the state of one form of the test.
type fleet struct {
	*testing.T
	target  *dynamoserver.Target
	config  fleetConfig
	witness *witness
	random  *rand.Rand
	slots   []*fleetProcess
	names   []int // how many processes each slot has had
	helpers sync.WaitGroup

	mu     sync.Mutex
	ready  int
	notes  map[string]int
	killed map[string]bool // dead owners of locks
	kills  map[fleetLanguage]int
	pauses map[fleetLanguage]int
	broken int
}

func newFleet(t *testing.T, target *dynamoserver.Target, mode dynamolock.Mode, random *rand.Rand) *fleet {
	f := &fleet{
		T:       t,
		target:  target,
		config:  newFleetConfig(t, target, mode),
		witness: newWitness(fleetLease),
		random:  random,
		slots:   make([]*fleetProcess, 2*fleetProcesses),
		names:   make([]int, 2*fleetProcesses),
		notes:   make(map[string]int),
		killed:  make(map[string]bool),
		kills:   make(map[fleetLanguage]int),
		pauses:  make(map[fleetLanguage]int),
	}
	if mode != dynamolock.FailOpen {
		f.witness.lease = 0
	}
	for i := range fleetKeys {
		f.config.Keys = append(f.config.Keys, fmt.Sprintf("key-%d", i))
	}
	f.config.Hold, f.config.Long, f.config.LongShare = [2]int{50, 600}, [2]int{2000, 3500}, 0.1
	return f
}

// run lets the fleet contend and crash for a time, or longer if too little has happened
// by then.
func (f *fleet) run(duration time.Duration) {
	for slot := range f.slots {
		f.launch(slot)
	}
	eventually(f, "all processes are ready", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.ready == len(f.slots)
	})
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	if f.witness.lease == 0 {
		client := f.config.dial(f, f.target, "operator")
		f.helpers.Go(func() { f.operate(ctx, client) })
	}
	begun := time.Now()
	next := begun.Add(f.untilNext() / 2)
	long := duration >= 30*time.Second
	blows := f.round(long)
	for {
		missing := f.missing()
		if time.Since(begun) >= duration && missing == "" || f.Failed() {
			break
		}
		if time.Since(begun) > duration+3*time.Minute {
			f.Errorf("after %v there is %s", time.Since(begun), missing)
			break
		}
		if time.Now().After(next) && f.strike(ctx, blows[0]) {
			next = time.Now().Add(f.untilNext())
			if blows = blows[1:]; len(blows) == 0 {
				blows = f.round(long)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	f.helpers.Wait()
	var all sync.WaitGroup
	for _, p := range f.slots {
		all.Go(func() {
			p.finish(f.T)
			f.witness.ended(p.name)
		})
	}
	all.Wait()
}

// untilNext is short, but leaves time for the leases of the last blow to expire.
func (f *fleet) untilNext() time.Duration {
	return 2500*time.Millisecond + time.Duration(f.random.IntN(2000))*time.Millisecond
}

// A fleetBlow is a fault injected into a process of one language.
type fleetBlow struct {
	language fleetLanguage
	pause    bool // a stop for longer than its lease, or else a crash
}

// round returns some blows, in random order. Clients that trust the clock must not be
// stopped, and locks that never expire do not notice a stop. A short run has no time for
// stops.
func (f *fleet) round(long bool) []fleetBlow {
	blows := []fleetBlow{{fleetGo, false}, {fleetNode, false}}
	f.random.Shuffle(len(blows), func(i, j int) { blows[i], blows[j] = blows[j], blows[i] })
	if long && f.witness.lease > 0 && !f.config.Trust {
		blows = append(blows, fleetBlow{fleetGo, true}, fleetBlow{fleetNode, true})
	}
	return blows
}

// launch fills a slot with a new process.
func (f *fleet) launch(slot int) {
	c := f.config
	c.Seed = uint64(f.random.Uint32())
	f.names[slot]++
	// Go gets a key as soon as it is free. Node polls a held key only once a lease, and
	// would hardly ever get one if Go did not pause.
	language, program := fleetGo, fleetChild
	c.Pause = [2]int{1500, 5000}
	if slot >= fleetProcesses {
		language, program = fleetNode, "contender.js"
		c.Pause = [2]int{0, 500}
	}
	c.Name = fmt.Sprintf("%s-%d.%d", language, slot%fleetProcesses+1, f.names[slot])
	f.slots[slot] = startFleet(f.T, f.target, language, program, c, func(r fleetReport) {
		f.witness.see(c.Name, language, r)
		f.mu.Lock()
		defer f.mu.Unlock()
		switch r.What {
		case fleetReady:
			f.ready++
		case fleetMissed:
			if f.witness.lease == 0 {
				f.Errorf("a lock that never expires was gone at its release by %s: %s", c.Name, r.Note)
			}
		case fleetNote:
			f.notes[fmt.Sprintf("%s: %s", language, r.Note)]++
		}
	})
}

// strike kills or stops a process that holds a key the other language waits for, and
// replaces it if it killed it. It reports whether there was one.
func (f *fleet) strike(ctx context.Context, blow fleetBlow) bool {
	holders := f.witness.contended()
	var slots []int
	for slot, p := range f.slots {
		if p.language == blow.language && holders[p.name] {
			slots = append(slots, slot)
		}
	}
	if len(slots) == 0 {
		return false
	}
	slot := slots[f.random.IntN(len(slots))]
	p := f.slots[slot]
	if blow.pause {
		f.pause(ctx, p, fleetLease+time.Duration(f.random.IntN(2000))*time.Millisecond)
		return true
	}
	p.kill()
	f.witness.ended(p.name)
	f.mu.Lock()
	f.kills[blow.language]++
	f.killed[p.name] = true
	f.mu.Unlock()
	f.launch(slot)
	return true
}

// pause stops a process for a while.
func (f *fleet) pause(ctx context.Context, p *fleetProcess, d time.Duration) {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		f.Error(err)
		return
	}
	f.pauses[p.language]++
	f.helpers.Go(func() {
		sleepFor(ctx, d)
		_ = p.Signal(syscall.SIGCONT) // an error says that it has crashed meanwhile
	})
}

// missing names what must still happen for the test to mean anything; "" if nothing.
func (f *fleet) missing() string {
	figures := f.witness.figures()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, language := range []fleetLanguage{fleetGo, fleetNode} {
		switch {
		case figures.holds[language] < 5:
			return fmt.Sprintf("no fifth hold by %s", language)
		case figures.handovers[language] < 2:
			return fmt.Sprintf("no second handover to %s", language)
		case f.kills[language] == 0:
			return fmt.Sprintf("no crash of %s", language)
		}
	}
	if figures.takeovers[fleetGo]+figures.takeovers[fleetNode] == 0 {
		return "no takeover from a crashed process of the other language"
	}
	return ""
}

// judge reports what happened, and fails the test for violations.
func (f *fleet) judge() {
	tokens := f.witness.lease > 0
	for _, violation := range f.witness.violations(tokens) {
		f.Error(violation)
	}
	figures := f.witness.figures()
	if n := figures.lost[fleetGo] + figures.lost[fleetNode]; !tokens && n > 0 {
		f.Errorf("%d locks that never expire were lost", n)
	}
	f.Logf("%s: kills: %d Go, %d Node; pauses: %d Go, %d Node; %v", f.Name(),
		f.kills[fleetGo], f.kills[fleetNode], f.pauses[fleetGo], f.pauses[fleetNode], figures)
	if !tokens {
		f.Logf("items of the killed that the operator removed: %d", f.broken)
	}
	for _, note := range slices.Sorted(maps.Keys(f.notes)) {
		f.Logf("%d x %s", f.notes[note], note)
	}
}

// operate is the operator who breaks the locks of dead processes where locks never
// expire. A request may still have been on its way when its process died, so one look is
// not enough.
func (f *fleet) operate(ctx context.Context, operator *dynamolock.Client) {
	for ctx.Err() == nil {
		for _, key := range f.config.Keys {
			info, err := operator.Inspect(ctx, key)
			f.mu.Lock()
			dead := f.killed[info.Owner]
			f.mu.Unlock()
			if err == nil && info.Held && dead {
				if err = operator.Break(ctx, info); err == nil {
					f.mu.Lock()
					f.broken++
					f.mu.Unlock()
				}
			}
			if err != nil && ctx.Err() == nil && !errors.Is(err, holdfast.ErrDisconnected) {
				f.Errorf("operator: %v", err)
			}
		}
		sleepFor(ctx, 250*time.Millisecond)
	}
}
