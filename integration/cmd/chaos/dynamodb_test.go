package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
	"github.com/holdfast-go/holdfast/integration/internal/nemesis"
)

// testPatience bounds each wait of the tests.
const testPatience = time.Minute

// newDynamoStage makes a stage with its own server and two slots.
func newDynamoStage(t *testing.T) *dynamoStage {
	t.Helper()
	s, err := startDynamo(t.Context(), casting{Slots: 2, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s.(*dynamoStage)
}

// probe writes an item over a slot's wire, once, and reports the result.
func (s *dynamoStage) probe(ctx context.Context, slot int, id string) error {
	c := dynamoserver.At(s.login(slot).Endpoint).Client(func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	_, err := c.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: &s.table, Key: itemKey(id)})
	return err
}

// silence is the result of a probe without an answer.
var silence = context.Canceled

// silentProbe is a probe that gives up some time after its request was sent.
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

// arrived reports whether a probe's item exists.
func (s *dynamoStage) arrived(t *testing.T, id string) bool {
	t.Helper()
	got, err := s.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &s.table, Key: itemKey(id), ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return len(got.Item) > 0
}

// awaits waits until a probe's item exists.
func (s *dynamoStage) awaits(t *testing.T, id string) {
	t.Helper()
	for deadline := time.Now().Add(testPatience); !s.arrived(t, id); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s has not arrived", id)
		}
	}
}

// TestStrikeServer guards that a pause of the server affects all clients, and that heal ends it.
func TestStrikeServer(t *testing.T) {
	t.Parallel()
	s := newDynamoStage(t)
	if !slices.Contains(s.deck(), nemesis.ServerPaused) {
		t.Logf("the server cannot be paused: %s", s.target.Source())
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

// longLease outlasts a machine that stalls for seconds.
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

// TestPurposes makes a real client send the requests that faults aim at. If the wire misread a purpose, its faults would
// always miss, unnoticed.
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
		for got == last { // a request may be sent again
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

// TestHolderIsCutOff guards that faults reach real clients: a holder that is cut off loses its lock, and another acquires it.
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

// TestResidue creates what a run must not leave behind.
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
	lines, _, err := s.residue(ctx, []string{"free", "held", "missing"})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	want := []string{"held: held by client 0 with token", "missing: no item", "stranger: an item whose key"}
	if !slices.EqualFunc(lines, want, strings.HasPrefix) {
		t.Errorf("residue = %q, want lines that begin with %q", lines, want)
	}
}
