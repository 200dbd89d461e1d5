package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// wire is the network between one slot and DynamoDB: a proxy, and the troubles in force on it.
type wire struct {
	troubles[wireTrouble]
	name  string
	proxy *faulthttp.Proxy
}

// wireTrouble is what one fault does to a wire.
type wireTrouble struct {
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
	w := &wire{name: name, proxy: proxy}
	w.apply, w.ended = w.set, func(t *wireTrouble) { close(t.late) }
	return w, nil
}

// strike puts a fault in force, and returns its target.
func (w *wire) strike(f nemesis.Fault) (target string, end func(context.Context) error, err error) {
	t, err := troubleOf(f.Kind, f.Pick)
	if err != nil {
		return "", nil, err
	}
	end, err = w.begin(t)
	return w.name, end, err
}

func (w *wire) set(all []*wireTrouble, begun *wireTrouble) error {
	if begun != nil && begun.drop {
		defer w.proxy.Drop()
	}
	var rules []faulthttp.Rule
	cut := false
	for _, t := range all {
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
func troubleOf(kind nemesis.Kind, pick uint32) (*wireTrouble, error) {
	seen := []error{faulthttp.Reset, faulthttp.EOF, faulthttp.Silence}[pick/3%3]
	t := &wireTrouble{late: make(chan struct{})}
	switch kind {
	case nemesis.LostReply:
		t.rule = next(pick, faulthttp.LoseReply(seen))
	case nemesis.LostRequest:
		t.rule = next(pick, faulthttp.LoseRequest(seen))
	case nemesis.LateRequest:
		t.rule = next(pick, faulthttp.LateUntil(t.late, seen))
	case nemesis.Cut:
		t.rule, t.cut, t.drop = faulthttp.All("", faulthttp.LoseRequest(faulthttp.Silence)), true, pick%2 == 0
	case nemesis.BlackHole, nemesis.OneWayOut:
		t.rule = faulthttp.All("", faulthttp.LoseRequest(faulthttp.Silence))
	case nemesis.OneWayIn:
		t.rule = faulthttp.All("", faulthttp.LoseReply(faulthttp.Silence))
	case nemesis.HalfOpen:
		t.rule, t.drop = faulthttp.All("", faulthttp.LoseRequest(faulthttp.Silence)), true
	case nemesis.Stall:
		t.rule = faulthttp.All("", faulthttp.StallUntil(t.late))
	case nemesis.Throttled:
		t.rule = faulthttp.All("", []faulthttp.Fault{faulthttp.Throttled(), faulthttp.RateLimited()}[pick%2])
	case nemesis.Broken:
		t.rule = faulthttp.All("", faulthttp.ServerError())
	default:
		return nil, fmt.Errorf("%s: not known here", kind)
	}
	return t, nil
}

// next makes a rule that hits one to three of the next writes.
func next(pick uint32, f faulthttp.Fault) faulthttp.Rule {
	var writes atomic.Uint32
	return func(r faulthttp.Request) faulthttp.Fault {
		if r.Op != "UpdateItem" || writes.Add(1) > 1+pick%3 {
			return faulthttp.Pass
		}
		return f
	}
}
