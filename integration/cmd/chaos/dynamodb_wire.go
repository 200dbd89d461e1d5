package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

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
	rule faulthttp.Rule // what happens to requests
	cut  bool           // new connections are refused
	drop bool           // live connections are reset when it begins
	late chan struct{}  // closed when it ends, for requests that are then delivered
}

func newWire(name, upstream string) (*wire, error) {
	proxy, err := faulthttp.Listen(upstream)
	if err != nil {
		return nil, err
	}
	return &wire{name: name, proxy: proxy}, nil
}

// strike puts a fault in force, and says what it hits.
func (w *wire) strike(kind nemesis.Kind, p pick) (target string, end func(context.Context) error, err error) {
	t, err := troubleOf(kind, p)
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
	return fmt.Sprintf("%s: %v", w.name, p), func(context.Context) error { return w.end(t) }, nil
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
	troubles := slices.Clone(w.troubles)
	w.mu.Unlock()
	var errs []error
	for _, t := range troubles {
		errs = append(errs, w.end(t))
	}
	return errors.Join(errs...)
}

// applyLocked sets the proxy to the combination of all troubles.
func (w *wire) applyLocked() error {
	var rules []faulthttp.Rule
	cut := false
	for _, t := range w.troubles {
		rules = append(rules, t.rule)
		cut = cut || t.cut
	}
	w.proxy.Transport.SetRule(faulthttp.First(rules...))
	if cut {
		w.proxy.Refuse()
		return nil
	}
	return w.proxy.Accept()
}

// troubleOf returns the trouble that a fault makes on a wire.
func troubleOf(kind nemesis.Kind, p pick) (*trouble, error) {
	t := &trouble{late: make(chan struct{})}
	switch kind {
	case nemesis.LostReply:
		t.rule = p.some(faulthttp.LoseReply(p.seen))
	case nemesis.LostRequest:
		t.rule = p.some(faulthttp.LoseRequest(p.seen))
	case nemesis.LateRequest:
		t.rule = p.some(faulthttp.LateUntil(t.late, p.seen))
	case nemesis.Cut:
		t.rule, t.cut, t.drop = faulthttp.All("", faulthttp.LoseRequest(faulthttp.Silence)), true, p.notice
	case nemesis.BlackHole, nemesis.OneWayOut:
		t.rule = faulthttp.All("", faulthttp.LoseRequest(faulthttp.Silence))
	case nemesis.OneWayIn:
		t.rule = faulthttp.All("", faulthttp.LoseReply(faulthttp.Silence))
	case nemesis.HalfOpen:
		t.rule, t.drop = faulthttp.All("", faulthttp.LoseRequest(faulthttp.Silence)), true
	case nemesis.Stall:
		t.rule = faulthttp.All("", faulthttp.StallUntil(t.late))
	case nemesis.Throttled:
		t.rule = faulthttp.All("", []faulthttp.Fault{faulthttp.Throttled(), faulthttp.RateLimited()}[p.which])
	case nemesis.Broken:
		t.rule = faulthttp.All("", faulthttp.ServerError())
	default:
		return nil, fmt.Errorf("%s: not known here", kind)
	}
	return t, nil
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

// purposeOf is the purpose of a lease client's request: one of the constants above, or the name of its operation.
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
