package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// wire is the network between one slot and DynamoDB: a proxy, and the troubles in force on it.
type wire struct {
	name  string
	proxy *faulthttp.Proxy

	mu       sync.Mutex
	troubles []*trouble // the newest first
}

// trouble is what one fault does to a wire.
type trouble struct {
	rule   faulthttp.Rule // what happens to requests; nil: nothing
	cut    bool           // nothing gets through
	refuse bool           // new connections are refused
	drop   bool           // live ones are reset when it begins
	late   chan struct{}  // closed when it ends, for requests that are then delivered
}

func newWire(name, upstream string) (*wire, error) {
	proxy, err := faulthttp.Listen(upstream)
	if err != nil {
		return nil, err
	}
	return &wire{name: name, proxy: proxy}, nil
}

func (w *wire) close() { w.proxy.Close() }

// strike puts a fault in force, and says what it hits.
func (w *wire) strike(kind nemesis.Kind, p pick) (target string, end func(context.Context) error, err error) {
	t, detail, err := troubleOf(kind, p)
	if err != nil {
		return "", nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.troubles = slices.Insert(w.troubles, 0, t)
	if err := w.applyLocked(); err != nil {
		return "", nil, err
	}
	if t.drop {
		w.proxy.Drop()
	}
	if detail != "" {
		detail = ": " + detail
	}
	return w.name + detail, func(context.Context) error { return w.end(t) }, nil
}

// end ends one trouble, at most once.
func (w *wire) end(t *trouble) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.Index(w.troubles, t)
	if at < 0 {
		return nil
	}
	w.troubles = slices.Delete(w.troubles, at, at+1)
	close(t.late)
	return w.applyLocked()
}

// heal ends all troubles.
func (w *wire) heal() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.troubles {
		close(t.late)
	}
	w.troubles = nil
	return w.applyLocked()
}

// applyLocked sets the proxy to the combination of all troubles.
func (w *wire) applyLocked() error {
	var rules []faulthttp.Rule
	cut, refuse := false, false
	for _, t := range w.troubles {
		if t.rule != nil {
			rules = append(rules, t.rule)
		}
		cut, refuse = cut || t.cut, refuse || t.refuse
	}
	w.proxy.Transport.SetRule(faulthttp.First(rules...))
	if cut {
		w.proxy.Transport.Cut()
	} else {
		w.proxy.Transport.Heal()
	}
	if refuse {
		w.proxy.Refuse()
		return nil
	}
	return w.proxy.Accept()
}

// slow is a delay that clients tolerate but must account for: it exceeds the margin of a lease.
const slow = dynamoLease / 8

// fade is the time of a heartbeat or two.
const fade = dynamoLease / 3

// fading is a rule for a network that first delays replies, and then does worse. A holder must not count its lease from the
// reply to its renewal.
func fading(first time.Duration, worse faulthttp.Fault) faulthttp.Rule {
	began := time.Now()
	return func(faulthttp.Request) faulthttp.Fault {
		if time.Since(began) < first {
			return faulthttp.DelayReply(slow)
		}
		return worse
	}
}

// troubleOf returns the trouble that a fault makes on a wire, and its choices in words.
func troubleOf(kind nemesis.Kind, p pick) (t *trouble, detail string, err error) {
	t = &trouble{late: make(chan struct{})}
	switch kind {
	case nemesis.LostReply:
		t.rule = p.some(faulthttp.LoseReply(p.seen))
		return t, p.String(), nil
	case nemesis.LostRequest:
		t.rule = p.some(faulthttp.LoseRequest(p.seen))
		return t, p.String(), nil
	case nemesis.LateRequest:
		t.rule = p.some(faulthttp.LateUntil(t.late, p.seen))
		return t, p.String(), nil
	case nemesis.Cut:
		t.refuse, t.drop, t.cut = true, p.notice, !p.notice
		return t, map[bool]string{true: "reset", false: "silent"}[p.notice], nil
	case nemesis.BlackHole:
		if p.gently {
			t.rule = fading(fade, faulthttp.LoseRequest(faulthttp.Silence))
			return t, "fading", nil
		}
		t.cut = true
	case nemesis.OneWayIn:
		t.rule = faulthttp.All("", faulthttp.LoseReply(faulthttp.Silence))
	case nemesis.OneWayOut:
		if p.gently {
			t.rule = fading(fade, faulthttp.LoseRequest(faulthttp.Silence))
			return t, "fading", nil
		}
		t.rule = faulthttp.All("", faulthttp.LoseRequest(faulthttp.Silence))
	case nemesis.HalfOpen:
		t.rule, t.drop = faulthttp.All("", faulthttp.LoseRequest(faulthttp.Silence)), true
	case nemesis.Stall:
		if p.gently {
			t.rule = faulthttp.All("", faulthttp.DelayRequest(slow))
			return t, "slow", nil
		}
		t.rule = faulthttp.All("", faulthttp.StallUntil(t.late))
	case nemesis.Throttled:
		t.rule = p.most([]faulthttp.Fault{faulthttp.Throttled(), faulthttp.RateLimited()}[p.which])
	case nemesis.Broken:
		t.rule = p.most(faulthttp.ServerError())
	default:
		return nil, "", fmt.Errorf("%s: not known here", kind)
	}
	return t, "", nil
}

// pick is the choices within a fault.
type pick struct {
	purpose string // of the requests that are hit; "" is any
	count   int    // how many of them
	seen    error  // what the client sees of it
	notice  bool   // whether connected clients are reset
	which   int    // of two answers
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
const picks = 4 * 3 * 3 * 2 * 2 * 2 * 2

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
		which:   draw(2),
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

// some makes a rule that hits the next few requests.
func (p pick) some(f faulthttp.Fault) faulthttp.Rule {
	hits := p.hits()
	return func(r faulthttp.Request) faulthttp.Fault {
		if !hits(purposeOf(r)) {
			return faulthttp.Pass
		}
		return f
	}
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

// most makes a rule that hits every request, or all but one in four.
func (p pick) most(f faulthttp.Fault) faulthttp.Rule {
	return func(r faulthttp.Request) faulthttp.Fault {
		if !p.every && r.N%4 == 0 {
			return faulthttp.Pass
		}
		return f
	}
}

// purposeOf is the purpose of a lease client's request: one of those above, or the name of its operation.
func purposeOf(r faulthttp.Request) string {
	if r.Op != "UpdateItem" {
		return r.Op
	}
	var in struct{ UpdateExpression string }
	_ = json.Unmarshal(r.Body, &in) // an unreadable request has none of these purposes
	switch expression := in.UpdateExpression; {
	case strings.Contains(expression, "#fencingToken = "):
		return aGrant
	case strings.Contains(expression, "#holdfastHolders = "): // without a new token: a holder leaves a shared key
		return aRelease
	case strings.Contains(expression, "#guid = "):
		return aBeat
	}
	return aRelease
}
