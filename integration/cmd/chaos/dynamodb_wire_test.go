package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// pickThat finds a Pick with a property.
func pickThat(t *testing.T, has func(pick) bool) uint32 {
	t.Helper()
	for n := range uint32(10000) {
		if has(pickOf(n)) {
			return n
		}
	}
	t.Fatal("no such pick")
	return 0
}

// TestStrike checks that each fault does what its name says to its slot, leaves the other slot alone, and has no effect
// after its end.
func TestStrike(t *testing.T) {
	t.Parallel()
	s := newDynamoStage(t)
	reset := pickThat(t, func(p pick) bool {
		return p.purpose == "" && p.count == 1 && p.seen.name == "reset" && p.notice && p.every
	})
	eof := pickThat(t, func(p pick) bool { return p.purpose == "" && p.count == 1 && p.seen.name == "EOF" })
	quiet := pickThat(t, func(p pick) bool {
		return p.purpose == "" && p.count == 1 && p.seen.name == "silence" && !p.notice && !p.gently
	})
	throttled := pickThat(t, func(p pick) bool { return p.every && p.which == 0 })
	limited := pickThat(t, func(p pick) bool { return p.every && p.which == 1 })
	gently := pickThat(t, func(p pick) bool { return p.gently })
	const (
		never = iota
		atOnce
		atTheEnd
	)
	for i, c := range []struct {
		kind    nemesis.Kind
		pick    uint32
		want    error  // of the probe
		code    string // of the same
		arrives int
		once    bool
	}{
		{kind: nemesis.LostReply, pick: reset, want: syscall.ECONNRESET, arrives: atOnce, once: true},
		{kind: nemesis.LostReply, pick: eof, want: io.ErrUnexpectedEOF, arrives: atOnce, once: true},
		{kind: nemesis.LostReply, pick: quiet, want: silence, arrives: atOnce, once: true},
		{kind: nemesis.LostRequest, pick: reset, want: syscall.ECONNRESET, once: true},
		{kind: nemesis.LateRequest, pick: reset, want: syscall.ECONNRESET, arrives: atTheEnd, once: true},
		{kind: nemesis.LateRequest, pick: quiet, want: silence, arrives: atTheEnd, once: true},
		{kind: nemesis.Cut, pick: reset, want: syscall.ECONNREFUSED},
		{kind: nemesis.Cut, pick: quiet, want: syscall.ECONNREFUSED},
		{kind: nemesis.BlackHole, pick: quiet, want: silence},
		{kind: nemesis.OneWayIn, want: silence, arrives: atOnce},
		{kind: nemesis.OneWayOut, pick: quiet, want: silence},
		{kind: nemesis.HalfOpen, want: silence},
		{kind: nemesis.Stall, pick: quiet, want: silence, arrives: atTheEnd},
		{kind: nemesis.Stall, pick: gently, arrives: atOnce},
		{kind: nemesis.Throttled, pick: throttled, code: "ProvisionedThroughputExceededException"},
		{kind: nemesis.Throttled, pick: limited, code: "ThrottlingException"},
		{kind: nemesis.Broken, pick: throttled, code: "InternalServerError"},
	} {
		if !slices.Contains(s.deck(), c.kind) {
			t.Errorf("%s is not in the deck", c.kind)
		}
		id := strconv.Itoa(i)
		target, end, err := s.strike(t.Context(), nemesis.Fault{Kind: c.kind, Client: 1, Pick: c.pick})
		if err != nil {
			t.Fatalf("%s: %v", c.kind, err)
		}
		if !strings.HasPrefix(target, "client 1") {
			t.Errorf("%s hits %q, want client 1", c.kind, target)
		}
		if err := s.probe(t.Context(), 0, id+" of the other"); err != nil {
			t.Errorf("%s: the other slot: %v", c.kind, err)
		}
		if c.want == silence {
			err = s.silentProbe(t, 1, id)
		} else {
			err = s.probe(t.Context(), 1, id)
		}
		var api smithy.APIError
		switch {
		case c.code != "" && (!errors.As(err, &api) || api.ErrorCode() != c.code):
			t.Errorf("%s: %v, want %s", c.kind, err, c.code)
		case c.code == "" && !errors.Is(err, c.want):
			t.Errorf("%s: %v, want %v", c.kind, err, c.want)
		}
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
		for range 2 {
			if err := end(t.Context()); err != nil {
				t.Errorf("%s: end: %v", c.kind, err)
			}
		}
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
	strike := func(f nemesis.Fault) func(context.Context) error {
		t.Helper()
		_, end, err := s.strike(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		return end
	}
	ends := func(end func(context.Context) error) {
		t.Helper()
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	loud := pickThat(t, func(p pick) bool { return p.notice })
	first, second := strike(nemesis.Fault{Kind: nemesis.Cut, Pick: loud}), strike(nemesis.Fault{Kind: nemesis.Cut, Pick: loud})
	broken := strike(nemesis.Fault{Kind: nemesis.Broken, Pick: pickThat(t, func(p pick) bool { return p.every })})
	ends(first)
	if err := s.probe(t.Context(), 0, "a"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after the end of one of two cuts: %v, want connection refused", err)
	}
	ends(second)
	var api smithy.APIError
	if err := s.probe(t.Context(), 0, "b"); !errors.As(err, &api) {
		t.Errorf("after the end of both: %v, want the answer of a broken service", err)
	}
	ends(broken)
	if err := s.probe(t.Context(), 0, "c"); err != nil {
		t.Errorf("after the end of all: %v", err)
	}

	strike(nemesis.Fault{Kind: nemesis.BlackHole})
	strike(nemesis.Fault{Kind: nemesis.Cut, Pick: loud})
	end := strike(nemesis.Fault{Kind: nemesis.Stall, Client: 1})
	if err := s.heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	for slot := range 2 {
		if err := s.probe(t.Context(), slot, "d"); err != nil {
			t.Errorf("slot %d after heal: %v", slot, err)
		}
	}
	ends(end)
}

// TestStrikeRefusesWhatIsNotItsOwn guards that a plan for another engine fails instead of doing nothing.
func TestStrikeRefusesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	for _, kind := range []nemesis.Kind{nemesis.LeaderKilled, nemesis.ClientPaused} {
		if _, _, err := troubleOf(nemesis.Fault{Kind: kind}); !errors.Is(err, errNotHere) {
			t.Errorf("%s: %v, want errNotHere", kind, err)
		}
	}
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
	if err := s.silentProbe(t, 0, "b"); !errors.Is(err, silence) {
		t.Errorf("later: %v, want silence", err)
	}
	if s.arrived(t, "b") {
		t.Error("the second request has arrived")
	}
	for _, kind := range []nemesis.Kind{nemesis.BlackHole, nemesis.OneWayOut} {
		gently := pickThat(t, func(p pick) bool { return p.gently })
		_, end, err := s.strike(t.Context(), nemesis.Fault{Kind: kind, Pick: gently})
		if err != nil {
			t.Fatal(err)
		}
		for began := time.Now(); time.Since(began) < fade; {
			time.Sleep(time.Millisecond)
		}
		if err := s.silentProbe(t, 0, string(kind)); !errors.Is(err, silence) {
			t.Errorf("%s in the end: %v, want silence", kind, err)
		}
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
