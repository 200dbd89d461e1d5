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

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// testPatience bounds each wait of the tests.
const testPatience = time.Minute

// newDynamoStage is a stage with a server of its own, and with two slots.
func newDynamoStage(t *testing.T) *dynamoStage {
	t.Helper()
	s, err := startDynamo(t.Context(), casting{Slots: 2, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s.(*dynamoStage)
}

// probe writes an item over a slot's wire, once, and reports what came of it.
func (s *dynamoStage) probe(ctx context.Context, slot int, id string) error {
	c := dynamoserver.At(s.login(slot).Endpoint).Client(func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	_, err := c.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: &s.table, Key: itemKey(id)})
	return err
}

// silence is what becomes of a probe that hears nothing.
var silence = context.Canceled

// silentProbe is a probe that gives up when its request has been on the wire for a while.
func (s *dynamoStage) silentProbe(t *testing.T, slot int, id string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	sent := s.wires[slot].proxy.Transport.Count("UpdateItem")
	done := make(chan error, 1)
	go func() { done <- s.probe(ctx, slot, id) }()
	for s.wires[slot].proxy.Transport.Count("UpdateItem") == sent && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	time.AfterFunc(50*time.Millisecond, cancel)
	return <-done
}

func itemKey(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{dynamoserver.DefaultKey: &types.AttributeValueMemberS{Value: id}}
}

// arrived reports whether the item of a probe is there.
func (s *dynamoStage) arrived(t *testing.T, id string) bool {
	t.Helper()
	got, err := s.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &s.table, Key: itemKey(id), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return len(got.Item) > 0
}

// awaits waits until the item of a probe is there.
func (s *dynamoStage) awaits(t *testing.T, id string) {
	t.Helper()
	for deadline := time.Now().Add(testPatience); !s.arrived(t, id); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s has not arrived", id)
		}
	}
}

// pickThat is a Pick with a property.
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

// TestStrike checks that each fault does what it is called to the slot that it names, that it leaves the other alone, and that
// it is over when it has ended.
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
			t.Errorf("%s befalls %q, want client 1", c.kind, target)
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

// TestStrikeServer guards that the pause of the server befalls all clients, and that heal ends it.
func TestStrikeServer(t *testing.T) {
	t.Parallel()
	s := newDynamoStage(t)
	if !slices.Contains(s.deck(), nemesis.ServerPaused) {
		t.Logf("the server is not ours to be paused: %s", s.target.Source())
		return
	}
	if _, _, err := s.strike(t.Context(), nemesis.Fault{Kind: nemesis.ServerPaused}); err != nil {
		t.Fatal(err)
	}
	for slot := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		if err := s.probe(ctx, slot, "a"); !errors.Is(err, context.Canceled) {
			t.Errorf("slot %d of a paused server: %v, want silence", slot, err)
		}
	}
	if err := s.heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.probe(t.Context(), 0, "b"); err != nil {
		t.Error(err)
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

// TestStrikeRefusesWhatIsNotItsOwn guards that a plan made for another engine is no silent calm.
func TestStrikeRefusesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	for _, kind := range []nemesis.Kind{nemesis.LeaderKilled, nemesis.ClientPaused} {
		if _, _, err := troubleOf(nemesis.Fault{Kind: kind}); !errors.Is(err, errNotHere) {
			t.Errorf("%s: %v, want errNotHere", kind, err)
		}
	}
}

// longLease is one that a machine which stalls for seconds does not lose.
const longLease = 20 * time.Second

// open is a real client in a slot.
func (s *dynamoStage) open(t *testing.T, slot int, lease time.Duration) locker {
	t.Helper()
	config := clientConfig{Login: s.login(slot), Owner: "client " + strconv.Itoa(slot)}
	config.Login.Lease = lease
	client, err := openDynamo(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testPatience)
		defer cancel()
		if err := client.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return client
}

// TestPurposes has a real client send what faults are aimed at. Were a purpose misunderstood, they would miss for ever, and nobody
// would notice.
func TestPurposes(t *testing.T) {
	t.Parallel()
	s := newDynamoStage(t)
	client := s.open(t, 0, longLease)
	seen := make(chan string, 1000)
	s.wires[0].proxy.Transport.SetRule(func(r faulthttp.Request) faulthttp.Fault {
		seen <- purposeOf(r)
		return faulthttp.Pass
	})
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	lock, err := client.Acquire(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if got := <-seen; got != aGrant {
		t.Errorf("the first request is of kind %q, want %q", got, aGrant)
	}
	next := func(last string) string {
		got := last
		for got == last { // a request may be repeated
			select {
			case got = <-seen:
			case <-ctx.Done():
				t.Fatalf("after requests of kind %q: %v", last, ctx.Err())
			}
		}
		return got
	}
	if got := next(aGrant); got != aBeat {
		t.Errorf("after the grant comes a request of kind %q, want %q", got, aBeat)
	}
	if err := lock.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if got := next(aBeat); got != aRelease {
		t.Errorf("after heartbeats comes a request of kind %q, want %q", got, aRelease)
	}
}

// TestFading guards that a fault which begins gently delays replies, and only then loses requests.
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

// TestHolderIsCutOff guards that faults reach real clients: a holder that cannot be heard loses its lock, and another gets it.
func TestHolderIsCutOff(t *testing.T) {
	t.Parallel()
	s := newDynamoStage(t)
	holder, other := s.open(t, 0, dynamoLease), s.open(t, 1, longLease)
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	lock, err := holder.Acquire(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	_, end, err := s.strike(ctx, nemesis.Fault{Kind: nemesis.BlackHole})
	if err != nil {
		t.Fatal(err)
	}
	next, err := other.Acquire(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Err(); !errors.Is(err, holdfast.ErrLeaseExpired) {
		t.Errorf("the lock of the holder that is cut off: %v, want ErrLeaseExpired", err)
	}
	if next.Token() <= lock.Token() {
		t.Errorf("token %d after %d", next.Token(), lock.Token())
	}
	if err := end(ctx); err != nil {
		t.Fatal(err)
	}
	if err := next.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Acquire(ctx, "a"); err != nil {
		t.Errorf("when the fault has ended: %v", err)
	}
}

// TestResidue plants what a run must not leave behind.
func TestResidue(t *testing.T) {
	t.Parallel()
	s := newDynamoStage(t)
	client := s.open(t, 0, longLease)
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	for _, key := range []string{"free", "held", "stranger"} {
		lock, err := client.Acquire(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if key == "held" {
			continue // until the client closes
		}
		if err := lock.Release(ctx); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := s.residue(ctx, []string{"free", "held", "missing"})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	want := []string{"held: held by client 0 with token", "missing: no item", "stranger: an item of no key"}
	if !slices.EqualFunc(lines, want, strings.HasPrefix) {
		t.Errorf("residue = %q, want lines that begin with %q", lines, want)
	}
}
