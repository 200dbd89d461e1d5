package integration_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// fleetReport is one line that a process of a fleet prints. Times are nanoseconds of a clock that all processes share.
type fleetReport struct {
	What  string `json:"what"`  // one of the constants below
	At    int64  `json:"at"`    // when it was so
	Key   string `json:"key"`   // of all but ready
	Token uint64 `json:"token"` // the same
	Sent  int64  `json:"sent"`  // of acquired and renewed, by Node only: before the write was sent
	Note  string `json:"note"`
}

const (
	fleetReady    = "ready"
	fleetWaiting  = "waiting"
	fleetAcquired = "acquired"
	fleetHolding  = "holding" // it checked, and had the lock
	fleetRenewed  = "renewed" // a heartbeat was acknowledged
	fleetReleased = "released"
	fleetLost     = "lost"
)

// A fleetLanguage is the language of a process's lock client.
type fleetLanguage string

const (
	fleetGo   fleetLanguage = "Go"
	readGo    fleetLanguage = "Go's readers"
	fleetNode fleetLanguage = "Node"
)

// A fleetHold is the time for which a process provably believed that it held a key: from its first stamp to its last.
type fleetHold struct {
	process  string
	language fleetLanguage
	key      string
	token    uint64
	from, to int64
	until    int64  // its excuse begins here
	end      string // fleetReleased, fleetLost, fleetKilled; "" for a current hold
}

const fleetKilled = "killed"

// excused reports whether the holder may have believed too long. The npm client has no deadline: a holder continues although its heartbeats
// do not arrive.
func (h *fleetHold) excused() bool { return h.until < h.to }

// good is the end of the time in which no other process may hold the key.
func (h *fleetHold) good() int64 { return min(h.to, h.until) }

func (h *fleetHold) String() string {
	return fmt.Sprintf("%s %s of %s, token %d, from %v to %v", h.language, h.process, h.key, h.token,
		time.Duration(h.from), time.Duration(h.good()))
}

// A witness collects the reports of a fleet's processes about their holds.
type witness struct {
	lease time.Duration // of Node's items; 0: they never expire, so there is no excuse

	mu    sync.Mutex
	holds []*fleetHold
	open  map[string]*fleetHold // current holds, by process and key
	waits map[string]fleetWait  // by the same
}

type fleetWait struct {
	process  string
	language fleetLanguage
	key      string
}

func newWitness(lease time.Duration) *witness {
	return &witness{lease: lease, open: make(map[string]*fleetHold), waits: make(map[string]fleetWait)}
}

// see records a report.
func (w *witness) see(process string, language fleetLanguage, r fleetReport) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := process + " " + r.Key
	h := w.open[id]
	if r.What == fleetWaiting {
		w.waits[id] = fleetWait{process, language, r.Key}
		return
	}
	if r.What == fleetAcquired {
		delete(w.waits, id)
		h = &fleetHold{
			process: process, language: language, key: r.Key, token: r.Token,
			from: r.At, to: r.At, until: math.MaxInt64,
		}
		if w.excuses(language) {
			h.until = r.Sent + int64(w.lease)
		}
		w.holds = append(w.holds, h)
		w.open[id] = h
		return
	}
	if h == nil || h.token != r.Token {
		return
	}
	switch r.What {
	case fleetHolding:
		h.to = max(h.to, r.At)
	case fleetRenewed:
		if w.excuses(language) {
			h.until = max(h.until, r.Sent+int64(w.lease))
		}
	case fleetReleased, fleetLost:
		h.end = r.What
		delete(w.open, id)
	}
}

// excuses reports whether a holder may believe in its lock for longer than its lease. One of ours never may.
func (w *witness) excuses(language fleetLanguage) bool {
	return language == fleetNode && w.lease > 0
}

// ended records the end of a process.
func (w *witness) ended(process string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, h := range w.open {
		if h.process == process {
			h.end = fleetKilled
			delete(w.open, id)
		}
	}
	for id, wait := range w.waits {
		if wait.process == process {
			delete(w.waits, id)
		}
	}
}

// contended are the processes, by name, that hold a key for which another language waits.
func (w *witness) contended() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	holders := make(map[string]bool)
	for _, h := range w.open {
		for _, wait := range w.waits {
			if wait.key == h.key && wait.language != h.language {
				holders[h.process] = true
			}
		}
	}
	return holders
}

// byKey returns copies of all holds of each key, in the order in which they began.
func (w *witness) byKey() map[string][]fleetHold {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := make(map[string][]fleetHold)
	for _, h := range w.holds {
		keys[h.key] = append(keys[h.key], *h)
	}
	for _, holds := range keys {
		slices.SortStableFunc(holds, func(a, b fleetHold) int { return cmp.Compare(a.from, b.from) })
	}
	return keys
}

// violations are the violations that the holds show.
func (w *witness) violations(tokens bool) []string {
	var found []string
	for _, holds := range w.byKey() {
		longest, highest := make(map[bool]*fleetHold), make(map[bool]*fleetHold) // true: of the holds that do not share, for holds that do
		for i := range holds {
			h := &holds[i]
			if h.until <= h.from {
				// It learned of its grant after the lock had ended: that is no hold, and its place in the order means nothing.
				continue
			}
			shares := reads(h.language)
			if longest := longest[shares]; longest != nil && h.from < longest.good() {
				found = append(found, fmt.Sprintf("two hold %s: %v; and %v", h.key, longest, h))
			}
			if highest := highest[shares]; tokens && highest != nil && h.token <= highest.token {
				found = append(found, fmt.Sprintf("tokens of %s do not rise: %v; then %v", h.key, highest, h))
			}
			for _, concerned := range []bool{false, true} {
				if shares && concerned {
					continue // readers are nothing to readers
				}
				if longest[concerned] == nil || h.good() > longest[concerned].good() {
					longest[concerned] = h
				}
				if highest[concerned] == nil || h.token > highest[concerned].token {
					highest[concerned] = h
				}
			}
		}
		if tokens {
			found = append(found, repeated(holds)...)
		}
	}
	return found
}

// repeated finds tokens that two holds share, valid or not.
func repeated(holds []fleetHold) []string {
	var found []string
	first := make(map[uint64]*fleetHold)
	for i := range holds {
		h := &holds[i]
		if f := first[h.token]; f != nil {
			found = append(found, fmt.Sprintf("two of %s have token %d: %v; and %v", h.key, h.token, f, h))
			continue
		}
		first[h.token] = h
	}
	return found
}

// heldAbove reports whether a holder of a key with a greater token has checked its lock twice.
func (w *witness) heldAbove(key string, token uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.holds, func(h *fleetHold) bool { return h.key == key && h.token > token && h.to > h.from })
}

// fleetFigures say how much has happened.
type fleetFigures struct {
	holds     map[fleetLanguage]int
	handovers map[[2]fleetLanguage]int // from one kind to another
	takeovers int                      // handovers whose previous holder was killed
	lost      int
	excused   map[fleetLanguage]int
}

func (w *witness) figures() fleetFigures {
	f := fleetFigures{holds: make(map[fleetLanguage]int), handovers: make(map[[2]fleetLanguage]int), excused: make(map[fleetLanguage]int)}
	for _, holds := range w.byKey() {
		for i, h := range holds {
			f.holds[h.language]++
			if h.excused() {
				f.excused[h.language]++
			}
			if h.end == fleetLost {
				f.lost++
			}
			if i > 0 && holds[i-1].language != h.language {
				f.handovers[[2]fleetLanguage{holds[i-1].language, h.language}]++
				if holds[i-1].end == fleetKilled {
					f.takeovers++
				}
			}
		}
	}
	return f
}
