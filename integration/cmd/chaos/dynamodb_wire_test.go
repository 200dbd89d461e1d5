package main

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// trouble puts a fault in force on a slot's wire, and returns what ends it.
func (s *dynamoStage) trouble(t *testing.T, slot int, kind nemesis.Kind, p pick) (end func()) {
	t.Helper()
	_, ended, err := s.wires[slot].strike(kind, p)
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	return func() {
		t.Helper()
		if err := ended(t.Context()); err != nil {
			t.Errorf("%s: end: %v", kind, err)
		}
	}
}

// When a request arrives that a fault hits.
const (
	never = iota
	atOnce
	atTheEnd
)

// strikes are the effects of the faults on one request.
var strikes = func() []strike {
	reset, eof, quiet := pick{count: 1, seen: faulthttp.Reset}, pick{count: 1, seen: faulthttp.EOF}, pick{count: 1, seen: faulthttp.Silence}
	return []strike{
		{kind: nemesis.LostReply, pick: reset, want: syscall.ECONNRESET, arrives: atOnce, once: true},
		{kind: nemesis.LostReply, pick: eof, want: io.ErrUnexpectedEOF, arrives: atOnce, once: true},
		{kind: nemesis.LostReply, pick: quiet, want: silence, arrives: atOnce, once: true},
		{kind: nemesis.LostRequest, pick: reset, want: syscall.ECONNRESET, once: true},
		{kind: nemesis.LateRequest, pick: reset, want: syscall.ECONNRESET, arrives: atTheEnd, once: true},
		{kind: nemesis.LateRequest, pick: quiet, want: silence, arrives: atTheEnd, once: true},
		{kind: nemesis.Cut, pick: pick{notice: true}, want: syscall.ECONNREFUSED},
		{kind: nemesis.Cut, pick: quiet, want: syscall.ECONNREFUSED},
		{kind: nemesis.BlackHole, pick: quiet, want: silence},
		{kind: nemesis.OneWayIn, want: silence, arrives: atOnce},
		{kind: nemesis.OneWayOut, pick: quiet, want: silence},
		{kind: nemesis.HalfOpen, want: silence},
		{kind: nemesis.Stall, pick: quiet, want: silence, arrives: atTheEnd},
		{kind: nemesis.Stall, pick: pick{gently: true}, arrives: atOnce},
		{kind: nemesis.Throttled, pick: pick{every: true}, code: "ProvisionedThroughputExceededException"},
		{kind: nemesis.Throttled, pick: pick{every: true, which: 1}, code: "ThrottlingException"},
		{kind: nemesis.Broken, pick: pick{every: true}, code: "InternalServerError"},
	}
}()

type strike struct {
	kind    nemesis.Kind
	pick    pick
	want    error  // of the probe
	code    string // of the same
	arrives int
	once    bool
}

// check says what is wrong with what a client sees of the fault.
func (c *strike) check(t *testing.T, err error) {
	t.Helper()
	var api smithy.APIError
	switch {
	case c.code != "" && (!errors.As(err, &api) || api.ErrorCode() != c.code):
		t.Errorf("%s: %v, want %s", c.kind, err, c.code)
	case c.code == "" && !errors.Is(err, c.want):
		t.Errorf("%s: %v, want %v", c.kind, err, c.want)
	}
}

// TestStrike checks that each fault does what its name says to its slot, leaves the other slot alone, and has no effect
// after its end.
func TestStrike(t *testing.T) {
	t.Parallel()
	s := newDynamoStage(t)
	for i, c := range strikes {
		if !slices.Contains(s.deck(), c.kind) {
			t.Errorf("%s is not in the deck", c.kind)
		}
		id := strconv.Itoa(i)
		end := s.trouble(t, 1, c.kind, c.pick)
		if err := s.probe(t.Context(), 0, id+" of the other"); err != nil {
			t.Errorf("%s: the other slot: %v", c.kind, err)
		}
		probe := s.probe
		if c.want == silence {
			probe = s.silentProbe
		}
		c.check(t, probe(t.Context(), 1, id))
		if c.once {
			if err := s.probe(t.Context(), 1, id+" again"); err != nil {
				t.Errorf("%s hits more than one request: %v", c.kind, err)
			}
		}
		if c.arrives == atOnce {
			s.awaits(t, id)
		} else if s.arrived(t, id) {
			t.Errorf("%s: the request has arrived before the end", c.kind)
		}
		end()
		end()
		if err := s.probe(t.Context(), 1, id+" later"); err != nil {
			t.Errorf("%s: afterwards: %v", c.kind, err)
		}
		if c.arrives == atTheEnd {
			s.awaits(t, id)
		} else if c.arrives == never && s.arrived(t, id) {
			t.Errorf("%s: the request has arrived", c.kind)
		}
	}
}

// TestOverlappingFaults guards that the end of one fault does not end another of the same slot, and that heal ends all.
func TestOverlappingFaults(t *testing.T) {
	t.Parallel()
	s := newDynamoStage(t)
	loud := pick{notice: true}
	first, second := s.trouble(t, 0, nemesis.Cut, loud), s.trouble(t, 0, nemesis.Cut, loud)
	broken := s.trouble(t, 0, nemesis.Broken, pick{every: true})
	first()
	if err := s.probe(t.Context(), 0, "a"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after the end of one of two cuts: %v, want connection refused", err)
	}
	second()
	var api smithy.APIError
	if err := s.probe(t.Context(), 0, "b"); !errors.As(err, &api) {
		t.Errorf("after the end of both: %v, want the answer of a broken service", err)
	}
	broken()
	if err := s.probe(t.Context(), 0, "c"); err != nil {
		t.Errorf("after the end of all: %v", err)
	}

	s.trouble(t, 0, nemesis.BlackHole, pick{})
	s.trouble(t, 0, nemesis.Cut, loud)
	end := s.trouble(t, 1, nemesis.Stall, pick{})
	if err := s.heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	for slot := range 2 {
		if err := s.probe(t.Context(), slot, "d"); err != nil {
			t.Errorf("slot %d after heal: %v", slot, err)
		}
	}
	end()
}

// TestFading guards that a fading fault first delays replies, and then loses requests.
func TestFading(t *testing.T) {
	t.Parallel()
	s := newDynamoStage(t)
	lost := faulthttp.LoseRequest(faulthttp.Silence)
	s.wires[0].proxy.Transport.SetRule(fading(time.Hour, lost))
	began := time.Now()
	if err := s.probe(t.Context(), 0, "a"); err != nil {
		t.Errorf("at first: %v", err)
	}
	if took := time.Since(began); took < slow {
		t.Errorf("a slow reply has taken %v, want at least %v", took, slow)
	}
	s.wires[0].proxy.Transport.SetRule(fading(0, lost))
	if err := s.silentProbe(t.Context(), 0, "b"); !errors.Is(err, silence) {
		t.Errorf("later: %v, want silence", err)
	}
	if s.arrived(t, "b") {
		t.Error("the second request has arrived")
	}
}
