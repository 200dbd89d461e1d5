package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
	"github.com/holdfast-go/holdfast/internal/recordlock"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
)

// fade is the time of a heartbeat or two.
const fade = dynamoLease / 3

// recordLine is the simulated network between one slot and the store. A wire is the same for DynamoDB.
type recordLine struct {
	troubles[recordTrouble]
	name    string
	conn    *memstore.Conn
	latency time.Duration

	requests meter

	// The mutex guards these, too.
	live  context.Context // ends when all connections are reset
	reset context.CancelFunc
}

// recordTrouble is what one fault does to a line.
type recordTrouble struct {
	rule  func(memstore.Op) (fault memstore.Fault, hit bool) // nil: none
	cut   bool                                               // requests and answers in flight are lost, too
	reset bool                                               // connections are reset when it begins
	// behind is how far reads that are not fresh are behind; nil: as far as always.
	behind func() time.Duration
}

// mostTableRequests is the most requests of a client within a lease.
const mostTableRequests = 1_000

func newRecordLine(name string, store *memstore.Store) *recordLine {
	l := &recordLine{
		name: name, conn: store.Conn(), latency: store.Latency,
		requests: meter{what: "requests", lease: dynamoLease, most: mostTableRequests},
	}
	l.live, l.reset = context.WithCancel(context.Background())
	l.apply = l.set
	l.conn.SetFault(l.fault)
	return l
}

// fault returns the fault of a request. Without trouble, requests take different times and overtake each other.
func (l *recordLine) fault(op memstore.Op) memstore.Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.all {
		if t.rule == nil {
			continue
		}
		if fault, hit := t.rule(op); hit {
			return fault
		}
	}
	delay := rand.N(2 * l.latency)
	if rand.IntN(2) == 0 {
		return memstore.Fault{Late: delay}
	}
	return memstore.Fault{Delay: delay}
}

func (l *recordLine) strike(f nemesis.Fault) (target string, end func(context.Context) error, err error) {
	t, detail, err := recordTroubleOf(f.Kind, pickOf(f.Pick), f.For)
	if err != nil {
		return "", nil, err
	}
	if t.rule != nil && !t.reset && f.Pick/picks%2 == 0 {
		t.confine()
		detail += " one key"
	}
	if detail != "" {
		detail = ": " + detail
	}
	end, err = l.begin(t)
	return l.name + detail, end, err
}

// confine makes a trouble affect only the first key that it meets, as when one partition fails or is throttled.
func (t *recordTrouble) confine() {
	rule, key := t.rule, ""
	t.rule = func(op memstore.Op) (memstore.Fault, bool) {
		if key == "" {
			key = op.Key
		}
		if op.Key == "" || op.Key != key {
			return memstore.Fault{}, false
		}
		return rule(op)
	}
}

// set cuts the line if any trouble does.
func (l *recordLine) set(all []*recordTrouble, begun *recordTrouble) error {
	if begun != nil && begun.reset {
		l.reset()
		l.live, l.reset = context.WithCancel(context.Background())
	}
	if slices.ContainsFunc(all, func(t *recordTrouble) bool { return t.cut }) {
		l.conn.Cut()
	} else {
		l.conn.Heal()
	}
	l.conn.SetBehind(nil)
	if i := slices.IndexFunc(all, func(t *recordTrouble) bool { return t.behind != nil }); i >= 0 {
		l.conn.SetBehind(all[i].behind)
	}
	return nil
}

// connection returns a context that ends when the present connections are reset.
func (l *recordLine) connection() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live
}

// always is a rule for all requests.
func always(fault memstore.Fault) *recordTrouble {
	return &recordTrouble{rule: func(memstore.Op) (memstore.Fault, bool) { return fault, true }}
}

// stalled holds all requests in flight until the trouble has ended, after d.
func stalled(d time.Duration) *recordTrouble {
	until := time.Now().Add(d)
	return &recordTrouble{rule: func(memstore.Op) (memstore.Fault, bool) {
		return memstore.Fault{Late: max(0, time.Until(until))}, true
	}}
}

// fadingLine first delays replies, and then loses requests. A holder must not count its lease from the reply to its renewal.
func fadingLine() *recordTrouble {
	began := time.Now()
	return &recordTrouble{rule: func(memstore.Op) (memstore.Fault, bool) {
		if time.Since(began) < fade {
			return memstore.Fault{Delay: slow}, true
		}
		return memstore.Fault{Lose: true}, true
	}}
}

// refusing refuses all new connections. Unless the connections are reset, up to two requests still use an old connection, and are lost.
func refusing(reset bool) *recordTrouble {
	left := 0
	if !reset {
		left = 2
	}
	refused := &recordlock.Error{Class: recordlock.NotDone, Err: errors.New("connection refused")}
	return &recordTrouble{reset: reset, rule: func(memstore.Op) (memstore.Fault, bool) {
		if left > 0 { // rules run under the line's mutex
			left--
			return memstore.Fault{Lose: true}, true
		}
		return memstore.Fault{Err: refused}, true
	}}
}

var (
	errThrottled = &recordlock.Error{Class: recordlock.NotDone, Err: errors.New("throttled")}
	errServer    = errors.New("internal server error")
	errReset     = errors.New("connection reset")
)

// recordTroubleOf returns the trouble that a fault makes on a line.
func recordTroubleOf(kind nemesis.Kind, p pick, lasts time.Duration) (t *recordTrouble, detail string, err error) {
	until := time.Now().Add(lasts)
	switch kind {
	case nemesis.LostReply:
		return p.someOps(func() memstore.Fault { return memstore.Fault{LoseReply: true, Err: seenBy(p)} }), p.String(), nil
	case nemesis.LostRequest:
		return p.someOps(func() memstore.Fault { return memstore.Fault{Lose: true, Err: seenBy(p)} }), p.String(), nil
	case nemesis.LateRequest:
		return p.someOps(func() memstore.Fault {
			return memstore.Fault{Late: max(0, time.Until(until)), LoseReply: true, Err: seenBy(p)}
		}), p.String(), nil
	case nemesis.Duplicated:
		return p.someOps(func() memstore.Fault { return memstore.Fault{Copy: rand.N(lasts)} }), p.String(), nil
	case nemesis.Cut:
		return refusing(p.notice), map[bool]string{true: "reset", false: "silent"}[p.notice], nil
	case nemesis.BlackHole:
		if p.gently {
			return fadingLine(), "fading", nil
		}
		return &recordTrouble{cut: true}, "", nil
	case nemesis.OneWayIn:
		return always(memstore.Fault{LoseReply: true}), "", nil
	case nemesis.OneWayOut:
		if p.gently {
			return fadingLine(), "fading", nil
		}
		return always(memstore.Fault{Lose: true}), "", nil
	case nemesis.HalfOpen:
		t := always(memstore.Fault{Lose: true})
		t.reset = true
		return t, "", nil
	case nemesis.Stall:
		if p.gently {
			return always(memstore.Fault{Late: slow}), "slow", nil
		}
		return stalled(lasts), "", nil
	case nemesis.Throttled:
		return p.mostOps(errThrottled), "", nil
	case nemesis.Broken:
		return p.mostOps(errServer), "", nil
	}
	return nil, "", fmt.Errorf("%s: not known here", kind)
}

// pick is the choices within a fault.
type pick struct {
	purpose string // of the requests that are hit; "" is any
	count   int    // how many of them
	seen    error  // what the client sees of it
	notice  bool   // whether connected clients are reset
	every   bool   // request, or three of four
	gently  bool   // it delays requests, or does so at first
}

// The purposes of the requests that write.
const (
	aGrant   = "grant"
	aBeat    = "heartbeat"
	aRelease = "release"
)

// picks is how many there are.
const picks = 4 * 3 * 3 * 2 * 2 * 2

func pickOf(n uint32) pick {
	draw := func(of uint32) int {
		i := n % of
		n /= of
		return int(i)
	}
	return pick{
		purpose: []string{"", aGrant, aBeat, aRelease}[draw(4)],
		count:   1 + draw(3),
		seen:    []error{faulthttp.Reset, faulthttp.EOF, faulthttp.Silence}[draw(3)],
		notice:  draw(2) == 0,
		every:   draw(2) == 0,
		gently:  draw(2) == 0,
	}
}

func (p pick) String() string {
	purpose := p.purpose
	if purpose == "" {
		purpose = "request"
	}
	return fmt.Sprintf("next %d of kind %s, %v", p.count, purpose, p.seen)
}

// hits says of one request after the other, by its purpose, whether it is one of the next few.
func (p pick) hits() func(purpose string) bool {
	var mu sync.Mutex
	left := p.count
	return func(purpose string) bool {
		if p.purpose != "" && p.purpose != purpose {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		if left == 0 {
			return false
		}
		left--
		return true
	}
}

// seenBy is the error that a client sees in place of an answer; nil is silence.
func seenBy(p pick) error {
	switch p.seen {
	case faulthttp.Reset:
		return errReset
	case faulthttp.EOF:
		return io.ErrUnexpectedEOF
	}
	return nil
}

// someOps is some, of a line.
func (p pick) someOps(fault func() memstore.Fault) *recordTrouble {
	hits := p.hits()
	return &recordTrouble{rule: func(op memstore.Op) (memstore.Fault, bool) {
		if !hits(purposeOfOp(op)) {
			return memstore.Fault{}, false
		}
		return fault(), true
	}}
}

// mostOps is most, of a line.
func (p pick) mostOps(answer error) *recordTrouble {
	n := 0
	return &recordTrouble{rule: func(memstore.Op) (memstore.Fault, bool) {
		n++
		return memstore.Fault{Err: answer}, p.every || n%4 != 0
	}}
}

func purposeOfOp(op memstore.Op) string {
	switch {
	case op.Name == "Take", op.Name != "Renew" && op.Next.Token != op.Old.Token:
		return aGrant
	case op.Name == "Renew", op.Name == "Put" && len(op.Next.Holders) == len(op.Old.Holders):
		return aBeat
	case op.Name == "Swap", op.Name == "Put":
		return aRelease
	}
	return op.Name
}
