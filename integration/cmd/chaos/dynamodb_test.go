package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/faulthttp"
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
func (s *dynamoStage) silentProbe(ctx context.Context, slot int, id string) error {
	ctx, cancel := context.WithTimeout(ctx, testPatience)
	defer cancel()
	wire := s.wires[slot].proxy.Transport
	sent := wire.Count("UpdateItem")
	done := make(chan error, 1)
	go func() { done <- s.probe(ctx, slot, id) }()
	for wire.Count("UpdateItem") == sent && ctx.Err() == nil {
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
