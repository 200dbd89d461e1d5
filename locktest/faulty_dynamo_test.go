package locktest

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// A faultyTable is the DynamoDB engine with one deliberate fault that is easy to make
// there. Each client has its own.
type faultyTable struct {
	name   string
	breaks string // the guarantee that the suite must name
	update func(updater) updater
	get    func(getter) getter
	change func(*dynamolock.Options)
	set    func(*Engine) // changes what the engine promises
}

type (
	updater func(context.Context, *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error)
	getter  func(context.Context, *dynamodb.GetItemInput) (*dynamodb.GetItemOutput, error)
)

// TestFaultyTables checks that the suite catches each fault, and names the guarantee that
// it breaks.
func TestFaultyTables(t *testing.T) {
	for _, l := range faultyTables {
		t.Run(l.breaks+"_"+strings.ReplaceAll(l.name, " ", "_"), func(t *testing.T) {
			caught := false
			for _, c := range cases {
				if !strings.HasPrefix(c.name, l.breaks+"_") {
					continue
				}
				for _, reported := range record(t, newDynamoEngine(l), c) {
					t.Logf("%s: %s", c.name, reported)
					caught = caught || strings.HasPrefix(reported, l.breaks+" broken: ")
				}
			}
			if !caught {
				t.Errorf("the suite does not catch this fault (%s): %s passes", l.name, l.breaks)
			}
		})
	}
}

// The wrapper itself must not be the reason why faults fail.
func TestHonestDynamoEngine(t *testing.T) {
	correct := faultyTable{
		update: func(next updater) updater {
			return func(ctx context.Context, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
				return next(ctx, prune(in))
			}
		},
		get: func(next getter) getter { return next },
	}
	for _, c := range cases {
		if reported := record(t, newDynamoEngine(correct), c); len(reported) > 0 {
			t.Errorf("%s: %s", c.name, strings.Join(reported, "\n"))
		}
	}
}

// newDynamoEngine returns a correct engine, except for what the fault changes.
func newDynamoEngine(l faultyTable) Engine {
	e := Engine{
		Start:      func(t testing.TB) Harness { return newDynamoHarness(t, l) },
		Lease:      dynamolock.DefaultLease,
		Soon:       2*dynamolock.DefaultPoll + time.Second,
		Late:       2*dynamolock.DefaultPoll + time.Second,
		Notice:     dynamolock.DefaultLease/4 + time.Second,
		Heartbeats: PerLock,
		AnyKey:     true,
	}
	if l.set != nil {
		l.set(&e)
	}
	return e
}

type dynamoHarness struct {
	db    *dynamofake.DB
	fault faultyTable
}

const dynamoTable = "locks"

func newDynamoHarness(t testing.TB, l faultyTable) *dynamoHarness {
	h := &dynamoHarness{db: dynamofake.New(), fault: l}
	h.db.Latency = 4 * time.Millisecond
	h.db.Lag = 100 * time.Millisecond
	if err := dynamolock.CreateTable(t.Context(), h.db.Client(), &dynamolock.Options{Table: dynamoTable}); err != nil {
		t.Fatalf("dynamolock.CreateTable: %v", err)
	}
	return h
}

func (h *dynamoHarness) NewClient(t testing.TB, o ClientOptions) *Client {
	conn, fake := h.db.Client(), &clock.Fake{}
	options := &dynamolock.Options{Table: dynamoTable, Owner: o.Owner, Hooks: o.Hooks}
	if h.fault.change != nil {
		h.fault.change(options)
	}
	c, err := dynamolock.New(clock.With(t.Context(), fake), newTampered(conn, h.fault), options)
	if err != nil {
		t.Fatalf("dynamolock.New: %v", err)
	}
	return &Client{
		API:    c.Client,
		Cut:    conn.Cut,
		Heal:   conn.Heal,
		Pause:  func() { fake.Pause(); conn.Cut() },
		Resume: func() { conn.Heal(); fake.Resume() },
		Jump:   fake.Jump,
	}
}

func (h *dynamoHarness) Residue(_ testing.TB, key string) []string {
	i := h.db.Item(dynamoTable, map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: key}})
	if i == nil || numberOf(i["leaseDurationMs"]) == "1" {
		return nil
	}
	var touched time.Duration
	if d, err := time.ParseDuration(numberOf(i["lockAcquiredTimeUnixMs"]) + "ms"); err == nil {
		touched = d
	}
	if time.Since(time.UnixMilli(touched.Milliseconds())) > dynamolock.DefaultLease {
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

func newTampered(api dynamolock.API, l faultyTable) *tampered {
	c := &tampered{
		API: api,
		update: func(ctx context.Context, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
			return api.UpdateItem(ctx, in)
		},
		get: func(ctx context.Context, in *dynamodb.GetItemInput) (*dynamodb.GetItemOutput, error) {
			return api.GetItem(ctx, in)
		},
	}
	if l.update != nil {
		c.update = l.update(c.update)
	}
	if l.get != nil {
		c.get = l.get(c.get)
	}
	return c
}

func (c *tampered) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return c.update(ctx, in)
}

func (c *tampered) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return c.get(ctx, in)
}

// A write is the purpose of a request, as its update shows it.
type write int

const (
	otherWrite write = iota
	taking
	beating
	releasing
)

func writeOf(in *dynamodb.UpdateItemInput) write {
	switch {
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

// prune returns a copy of a request without its unused names and values: DynamoDB would
// refuse them.
func prune(in *dynamodb.UpdateItemInput) *dynamodb.UpdateItemInput {
	out := *in
	used := make(map[string]bool)
	for _, text := range []*string{in.UpdateExpression, in.ConditionExpression} {
		if text != nil {
			for _, alias := range regexp.MustCompile(`[#:]\w+`).FindAllString(*text, -1) {
				used[alias] = true
			}
		}
	}
	out.ExpressionAttributeNames = maps.Clone(in.ExpressionAttributeNames)
	maps.DeleteFunc(out.ExpressionAttributeNames, func(alias, _ string) bool { return !used[alias] })
	out.ExpressionAttributeValues = maps.Clone(in.ExpressionAttributeValues)
	maps.DeleteFunc(out.ExpressionAttributeValues, func(alias string, _ types.AttributeValue) bool { return !used[alias] })
	return &out
}

// unconditional makes a faulty engine that sends one kind of request without its
// condition.
func unconditional(kind write) func(updater) updater {
	return changed(kind, func(in *dynamodb.UpdateItemInput) { in.ConditionExpression = nil })
}

// changed makes a faulty engine that changes one kind of request. The maps of the request
// are copies.
func changed(kind write, change func(*dynamodb.UpdateItemInput)) func(updater) updater {
	return func(next updater) updater {
		return func(ctx context.Context, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
			if writeOf(in) == kind {
				in = prune(in)
				change(in)
				in = prune(in)
			}
			return next(ctx, in)
		}
	}
}

// newToken makes a grant derive its token from the given value, whatever the item has.
func newToken(in *dynamodb.UpdateItemInput, from string) {
	update := regexp.MustCompile(`if_not_exists\([^)]*\)`).ReplaceAllString(*in.UpdateExpression, ":from")
	in.UpdateExpression = &update
	in.ExpressionAttributeValues[":from"] = &types.AttributeValueMemberN{Value: from}
}

// firstSeen makes a faulty engine that reads a held item as it first saw it, as a cache
// would, and then changes it.
func firstSeen(change func(map[string]types.AttributeValue)) func(getter) getter {
	return func(next getter) getter {
		var first sync.Map
		return func(ctx context.Context, in *dynamodb.GetItemInput) (*dynamodb.GetItemOutput, error) {
			out, err := next(ctx, in)
			if err != nil || len(out.Item) == 0 || *in.ConsistentRead {
				return out, err
			}
			key := in.Key["id"].(*types.AttributeValueMemberS).Value
			seen, _ := first.LoadOrStore(key, out.Item)
			out.Item = maps.Clone(seen.(map[string]types.AttributeValue))
			if change != nil {
				change(out.Item)
			}
			return out, nil
		}
	}
}

// faultyTables are the faults that the suite must catch.
var faultyTables = []faultyTable{
	{name: "a key is taken whoever has it", breaks: "G1", update: unconditional(taking)},
	{name: "a key is taken for the age of what was seen once", breaks: "G1", get: firstSeen(nil), update: changed(
		taking, func(in *dynamodb.UpdateItemInput) {
			cond := regexp.MustCompile(`#guid = :\w+`).ReplaceAllString(*in.ConditionExpression, "attribute_exists(#guid)")
			in.ConditionExpression = &cond
		},
	)},
	{name: "a heartbeat does not show", breaks: "G1", update: changed(beating, func(in *dynamodb.UpdateItemInput) {
		alias := assigned(in, "guid")
		guid := in.ExpressionAttributeValues[alias].(*types.AttributeValueMemberB).Value
		grant := string(guid[:len(guid)/2])
		in.ExpressionAttributeValues[alias] = &types.AttributeValueMemberB{Value: []byte(grant + strings.Repeat("A", len(guid)-len(grant)))}
	})},

	{name: "a heartbeat goes on over a break", breaks: "G2", update: unconditional(beating)},
	{name: "a lease is judged by clocks that do not agree", breaks: "G2", change: func(o *dynamolock.Options) { o.TrustLocalTime = true }},
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

	{
		name: "an item of a lock that never expires shows a lease", breaks: "G2",
		change: func(o *dynamolock.Options) { o.Mode = dynamolock.FailClosedFenced },
		set:    func(e *Engine) { e.NeverExpires, e.Heartbeats = true, NoHeartbeats },
		update: changed(taking, func(in *dynamodb.UpdateItemInput) {
			in.ExpressionAttributeValues[assigned(in, "leaseDurationMs")] = &types.AttributeValueMemberN{Value: "20000"}
		}),
	},

	{name: "tokens begin anew", breaks: "G3", update: changed(taking, func(in *dynamodb.UpdateItemInput) { newToken(in, "0") })},
	{name: "tokens are what the clock says", breaks: "G3", update: changed(taking, func(in *dynamodb.UpdateItemInput) {
		newToken(in, numberOf(in.ExpressionAttributeValues[assigned(in, "lockAcquiredTimeUnixMs")])[:10])
	})},

	{name: "a waiter sees a holder who is gone", breaks: "G7", get: firstSeen(func(seen map[string]types.AttributeValue) {
		seen["guid"] = &types.AttributeValueMemberB{Value: []byte(rand.Text())}
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
