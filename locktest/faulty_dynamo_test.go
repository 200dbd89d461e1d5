package locktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// An updater sends writes to DynamoDB.
type updater func(context.Context, *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error)

// A getter reads an item.
type getter func(context.Context, *dynamodb.GetItemInput) (*dynamodb.GetItemOutput, error)

// newDynamoEngine returns a correct engine, except for what the fault changes.
func newDynamoEngine(l fault) Engine {
	e := Engine{
		Start:      func(t testing.TB) Harness { return newDynamoHarness(t, l) },
		Lease:      dynamolock.DefaultLease,
		Soon:       2*dynamolock.DefaultPoll + time.Second,
		Late:       2*dynamolock.DefaultPoll + time.Second,
		Notice:     dynamolock.DefaultLease/4 + time.Second,
		Heartbeats: PerLock,
		AnyKey:     true,
		Shares:     true,
		Unknown:    []string{"QueuedAt"},
	}
	if l.set != nil {
		l.set(&e)
	}
	return e
}

type dynamoHarness struct {
	db    *dynamofake.DB
	fault fault
}

const dynamoTable = "locks"

func newDynamoHarness(t testing.TB, l fault) *dynamoHarness {
	h := &dynamoHarness{db: dynamofake.New(), fault: l}
	h.db.Latency = 4 * time.Millisecond
	h.db.Lag = 100 * time.Millisecond
	if err := dynamolock.CreateTable(t.Context(), h.db.Client(), &dynamolock.Options{Table: dynamoTable}); err != nil {
		t.Fatalf("dynamolock.CreateTable: %v", err)
	}
	return h
}

func (h *dynamoHarness) NewClient(t testing.TB, o ClientOptions) *Client {
	conn, fake := h.db.Client(), &drivertest.Clock{}
	options := &dynamolock.Options{Table: dynamoTable, Owner: o.Owner, OnEvent: o.OnEvent, Margin: 100 * time.Millisecond}
	if h.fault.table != nil {
		h.fault.table(options)
	}
	var api dynamolock.API = conn
	if h.fault.update != nil || h.fault.get != nil {
		faulty := &tampered{
			conn,
			func(ctx context.Context, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
				return conn.UpdateItem(ctx, in)
			},
			func(ctx context.Context, in *dynamodb.GetItemInput) (*dynamodb.GetItemOutput, error) {
				return conn.GetItem(ctx, in)
			},
		}
		if h.fault.update != nil {
			faulty.update = h.fault.update(faulty.update)
		}
		if h.fault.get != nil {
			faulty.get = h.fault.get(faulty.get)
		}
		api = faulty
	}
	c, err := dynamolock.New(clock.With(t.Context(), fake), api, options)
	if err != nil {
		t.Fatalf("dynamolock.New: %v", err)
	}
	client := &Client{
		API:    c.Client,
		Cut:    conn.Cut,
		Heal:   func() { conn.SetFault(nil); conn.Heal() },
		Pause:  func() { fake.Pause(); conn.Cut() },
		Resume: func() { conn.Heal(); fake.Resume() },
		Jump:   fake.Jump,
		Stall:  conn.Stall,
		Lose:   func(next func() Fate) { conn.SetFault(fates(next)) },
	}
	if h.fault.client != nil {
		h.fault.client(client)
	}
	return client
}

// fates are the faults of requests.
func fates(next func() Fate) func(dynamofake.Op) dynamofake.Fault {
	if next == nil {
		return nil
	}
	var mu sync.Mutex
	return func(dynamofake.Op) dynamofake.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch next() {
		case LostRequest:
			return dynamofake.Drop()
		case LostReply:
			return dynamofake.LoseReply(nil)
		case LateRequest:
			return dynamofake.DeliverLate(dynamolock.DefaultLease/2, io.ErrUnexpectedEOF)
		case LateReply:
			return dynamofake.DelayReply(dynamolock.DefaultLease / 100) // heartbeats wait for a little longer
		}
		return dynamofake.Fault{}
	}
}

func (h *dynamoHarness) Residue(_ testing.TB, key string) []string {
	i := h.db.Item(dynamoTable, map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: key}})
	if i == nil || numberOf(i["leaseDurationMs"]) == "1" {
		return nil
	}
	touched, _ := strconv.ParseInt(numberOf(i["lockAcquiredTimeUnixMs"]), 10, 64)
	if time.Since(time.UnixMilli(touched)) > dynamolock.DefaultLease {
		return nil
	}
	return []string{"an item that is held"}
}

func numberOf(v types.AttributeValue) string {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}

// tampered is a connection that replaces some of its requests.
type tampered struct {
	dynamolock.API
	update updater
	get    getter
}

func (c *tampered) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return c.get(ctx, in)
}

func (c *tampered) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return c.update(ctx, in)
}

// A write is the purpose of a request, as its update shows it.
type write int

const (
	otherWrite write = iota
	taking
	beating
	releasing
	wishing
)

func writeOf(in *dynamodb.UpdateItemInput) write {
	switch {
	case assigns(in, "holdfastAskedToken"):
		return wishing
	case !assigns(in, "lockAcquiredTimeUnixMs"):
		return otherWrite
	case assigns(in, "fencingToken"):
		return taking
	case assigns(in, "guid"):
		return beating
	}
	return releasing
}

// assigned is the alias of the value that an update assigns to an attribute.
func assigned(in *dynamodb.UpdateItemInput, attr string) string {
	for alias, name := range in.ExpressionAttributeNames {
		if name != attr {
			continue
		}
		if m := regexp.MustCompile(alias + ` = (\S+?)(,|\s|$)`).FindStringSubmatch(*in.UpdateExpression); m != nil {
			return m[1]
		}
	}
	return ""
}

func assigns(in *dynamodb.UpdateItemInput, attr string) bool { return assigned(in, attr) != "" }

// unconditional makes a faulty engine that sends one kind of request with a condition that is always true, and has
// the same names and values: DynamoDB refuses those that are not used.
func unconditional(kind write) func(updater) updater {
	return changed(kind, func(in *dynamodb.UpdateItemInput) {
		in.ConditionExpression = aws.String(fmt.Sprintf("(%[1]s) OR NOT (%[1]s)", *in.ConditionExpression))
	})
}

// changed makes a faulty engine that changes one kind of request. Its values are a copy.
func changed(kind write, change func(*dynamodb.UpdateItemInput)) func(updater) updater {
	return func(next updater) updater {
		return func(ctx context.Context, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
			if writeOf(in) == kind {
				clone := *in
				clone.ExpressionAttributeValues = maps.Clone(in.ExpressionAttributeValues)
				in = &clone
				change(in)
			}
			return next(ctx, in)
		}
	}
}

// newToken makes a grant derive its token from the given value, whatever the item has.
func newToken(in *dynamodb.UpdateItemInput, from string) {
	first := regexp.MustCompile(`if_not_exists\(\S+, (\S+)\)`)
	start := first.FindStringSubmatch(*in.UpdateExpression)[1]
	in.UpdateExpression = aws.String(first.ReplaceAllString(*in.UpdateExpression, "$1"))
	in.ExpressionAttributeValues[start] = &types.AttributeValueMemberN{Value: from}
}

// faultyTables are faults that are easy to make on DynamoDB.
var faultyTables = []fault{
	{name: "a key is taken whoever has it", breaks: "G1", update: unconditional(taking)},
	{name: "a heartbeat does not show", breaks: "G1", update: changed(beating, func(in *dynamodb.UpdateItemInput) {
		alias := assigned(in, "guid")
		guid := in.ExpressionAttributeValues[alias].(*types.AttributeValueMemberB).Value
		grant := string(guid[:len(guid)/2])
		in.ExpressionAttributeValues[alias] = &types.AttributeValueMemberB{Value: []byte(grant + strings.Repeat("A", len(guid)-len(grant)))}
	})},

	{name: "a heartbeat goes on over a break", breaks: "G2", update: unconditional(beating)},
	{name: "a lease is judged by clocks that do not agree", breaks: "G2", table: func(o *dynamolock.Options) { o.TrustLocalTime = true }},
	{name: "heartbeats end with the first that fails", breaks: "G2", update: func(next updater) updater {
		var failed atomic.Bool
		return func(ctx context.Context, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
			if writeOf(in) != beating {
				return next(ctx, in)
			}
			if failed.Load() {
				return nil, context.DeadlineExceeded
			}
			out, err := next(ctx, in)
			failed.Store(err != nil)
			return out, err
		}
	}},
	{name: "a heartbeat is never sent", breaks: "G2", update: func(next updater) updater {
		return func(ctx context.Context, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
			if writeOf(in) == beating {
				return &dynamodb.UpdateItemOutput{}, nil
			}
			return next(ctx, in)
		}
	}},

	{name: "heartbeats seem to be to come", breaks: "G2", update: func(next updater) updater {
		const future = "99999999999999" // ms
		ahead := func(in *dynamodb.UpdateItemInput) {
			in.ExpressionAttributeValues[assigned(in, "lockAcquiredTimeUnixMs")] = &types.AttributeValueMemberN{Value: future}
		}
		return changed(taking, ahead)(changed(beating, ahead)(next))
	}},

	{
		name: "an item of a lock that never expires shows a lease", breaks: "G2",
		table: func(o *dynamolock.Options) { o.Mode = dynamolock.FailClosedFenced },
		set:   func(e *Engine) { e.NeverExpires, e.Heartbeats = true, NoHeartbeats },
		update: changed(taking, func(in *dynamodb.UpdateItemInput) {
			in.ExpressionAttributeValues[assigned(in, "leaseDurationMs")] = &types.AttributeValueMemberN{Value: "20000"}
		}),
	},

	{name: "tokens begin anew", breaks: "G3", update: changed(taking, func(in *dynamodb.UpdateItemInput) { newToken(in, "0") })},
	{name: "tokens are what the clock says", breaks: "G3", update: changed(taking, func(in *dynamodb.UpdateItemInput) {
		newToken(in, numberOf(in.ExpressionAttributeValues[assigned(in, "lockAcquiredTimeUnixMs")])[:10])
	})},

	{name: "a release frees whoever has the key", breaks: "G10", update: unconditional(releasing)},
	{name: "a release that got no answer was one", breaks: "G10", update: func(next updater) updater {
		return func(ctx context.Context, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
			out, err := next(ctx, in)
			var failed *types.ConditionalCheckFailedException
			if writeOf(in) == releasing && err != nil && !errors.As(err, &failed) {
				return &dynamodb.UpdateItemOutput{}, nil
			}
			return out, err
		}
	}},
}
