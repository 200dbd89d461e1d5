package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// TestDynamoDifferential runs the same random operations on the unit tests' fake and on a
// server: those that dynamolock sends, and those that later locks may need. The replies
// and the items afterwards must agree, except for the text of messages. This covers
// conditions, the item returned when one fails, updates, pages, transactions and invalid
// requests.
//
// HOLDFAST_SEED repeats a run; HOLDFAST_OPERATIONS makes it longer.
func TestDynamoDifferential(t *testing.T) {
	start(t)
	d := newDifferential(t)
	least := setting(t, "HOLDFAST_OPERATIONS", 800, strconv.Atoi)
	// Some outcomes are so rare that there are seeds with none in as many operations.
	for i := 0; i < least || i < 20*least && len(d.unseen()) > 0; i++ {
		d.step(t, d.operation())
	}
	for _, table := range d.tables { // all that is left
		d.step(t, operation{input: &dynamodb.ScanInput{TableName: &table.name, ConsistentRead: aws.Bool(true)}})
	}
	t.Logf("outcomes: %v", d.seen)
	if unseen := d.unseen(); len(unseen) > 0 {
		t.Errorf("never seen: %q", unseen) // the generator is at fault
	}
}

// unseen returns the outcomes that a run has to have, and has not had so far.
func (d *differential) unseen() []string {
	want := []string{
		"UpdateItem ", "UpdateItem ConditionalCheckFailedException", "DeleteItem ", "DeleteItem ConditionalCheckFailedException",
		"GetItem ",
	}
	if d.strict {
		want = append(want, "Query ", "UpdateItem ValidationException", "Query ValidationException")
	}
	if d.transactions {
		want = append(want, "TransactWriteItems ", "TransactWriteItems TransactionCanceledException", "TransactWriteItems ValidationException")
	}
	return slices.DeleteFunc(want, func(outcome string) bool { return d.seen[outcome] > 0 })
}

// dynamoAPI is what the fake and the client of a server have in common.
type dynamoAPI interface {
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

var (
	_ dynamoAPI = (*dynamodb.Client)(nil)
	_ dynamoAPI = (*dynamofake.Client)(nil)
)

// An attributeMap is an item, or a part of one.
type attributeMap = map[string]types.AttributeValue

// A differential is one run of the comparison.
type differential struct {
	*generator
	target *dynamoserver.Target
	server dynamoAPI
	fake   dynamoAPI
	seen   map[string]int // outcomes, by operation and error code
	lost   int            // replies of the server that broke off
}

func newDifferential(t *testing.T) *differential {
	t.Helper()
	seed := seeded(t)
	target := dynamoserver.Find(t)
	db := dynamofake.New()
	d := &differential{
		generator: &generator{
			Rand: rand.New(rand.NewPCG(seed, 1)), db: db,
			allOld: target.AllOld(), transactions: target.Transactions(), strict: target.Source() != dynamoserver.Moto,
		},
		target: target,
		server: target.Client(func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }),
		fake:   db.Client(),
		seen:   make(map[string]int),
	}
	for feature, has := range map[string]bool{"ALL_OLD": d.allOld, "TransactWriteItems": d.transactions, "UpdateTimeToLive": target.TimeToLive()} {
		if !has {
			t.Logf("the server has no %s: not compared", feature)
		}
	}
	for _, keys := range [][]dynamoserver.Key{
		{{Name: "id"}},
		{{Name: "id"}, {Name: "sort"}},
		{{Name: "id", Type: types.ScalarAttributeTypeB}, {Name: "sort", Type: types.ScalarAttributeTypeN}},
		{{Name: "id", Type: types.ScalarAttributeTypeN}, {Name: "sort", Type: types.ScalarAttributeTypeB}},
	} {
		d.tables = append(d.tables, d.mirror(t, target.Table(t, keys...), keys))
	}
	return d
}

// mirror copies the server's tables to the fake.
func (d *differential) mirror(t *testing.T, name string, keys []dynamoserver.Key) dynamoTable {
	t.Helper()
	table := dynamoTable{name: name}
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest}
	for i, k := range keys {
		if k.Type == "" {
			k.Type = types.ScalarAttributeTypeS
		}
		role := []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &k.Name, AttributeType: k.Type})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &k.Name, KeyType: role})
		table.keys = append(table.keys, k)
	}
	must(t, errOf(d.fake.CreateTable(limited(t), in)))
	return table
}

// An operation is one request. touched are the items that it may change.
type operation struct {
	input   any
	touched []itemRef
}

type itemRef struct {
	table string
	key   attributeMap
}

// step does one operation on both sides.
func (d *differential) step(t *testing.T, op operation) {
	t.Helper()
	name, fromServer := d.run(t, d.server, op.input)
	if fromServer.Code == brokenOff {
		if d.lost++; d.lost > 3 {
			t.Fatalf("%d answers have broken off: %s", d.lost, fromServer.message)
		}
		t.Log(fromServer.message)
		d.follow(t, op)
		return
	}
	_, fromFake := d.run(t, d.fake, op.input)
	d.compare(t, op, "the answer", fromServer, fromFake)
	d.seen[name+" "+fromServer.Code]++
	for _, ref := range op.touched {
		get := &dynamodb.GetItemInput{TableName: &ref.table, Key: ref.key, ConsistentRead: aws.Bool(true)}
		_, fromServer := d.run(t, d.server, get)
		for range 3 {
			if fromServer.Code == brokenOff {
				_, fromServer = d.run(t, d.server, get)
			}
		}
		_, fromFake := d.run(t, d.fake, get)
		d.compare(t, op, "the item afterwards", fromServer, fromFake)
	}
}

// brokenOff is the code of a reply that was cut short with its connection: the outcome of
// the operation is unknown.
const brokenOff = "broken off"

// follow copies the server's items to the fake.
func (d *differential) follow(t *testing.T, op operation) {
	t.Helper()
	for _, ref := range op.touched {
		out, err := d.server.GetItem(limited(t), &dynamodb.GetItemInput{TableName: &ref.table, Key: ref.key, ConsistentRead: aws.Bool(true)})
		switch {
		case err != nil:
			t.Fatal(err)
		case out.Item == nil:
			d.db.RemoveItem(ref.table, ref.key)
		default:
			d.db.SetItem(ref.table, out.Item)
		}
	}
}

// compare fails the test unless the replies agree. The fake may report an operation as
// unsupported where the server finds an error.
func (d *differential) compare(t *testing.T, op operation, what string, server, fake dynamoOutcome) {
	t.Helper()
	if fake.Code == unsupported && server.Code == "ValidationException" {
		return
	}
	s, f := toJSON(t, server), toJSON(t, fake)
	if s != f {
		t.Fatalf("%s differs\n%T %s\nserver: %s\n  %s\nfake:   %s\n  %s",
			what, op.input, toJSON(t, wire(op.input)), s, server.message, f, fake.message)
	}
}

// A dynamoOutcome is the comparable part of a reply.
type dynamoOutcome struct {
	Code           string // of the error, empty without one
	Item           any
	Items          any
	Last           any
	Count, Scanned int32
	Units          float64
	Reasons        []any
	message        string
}

// run does one operation on one side.
func (d *differential) run(t *testing.T, api dynamoAPI, input any) (name string, o dynamoOutcome) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	name = strings.TrimSuffix(reflect.TypeOf(input).Elem().Name(), "Input")
	var err error
	switch in := input.(type) {
	case *dynamodb.UpdateItemInput:
		var out *dynamodb.UpdateItemOutput
		if out, err = api.UpdateItem(ctx, in); err == nil {
			o = dynamoOutcome{Item: wire(out.Attributes), Units: capacity(out.ConsumedCapacity)}
		}
	case *dynamodb.DeleteItemInput:
		var out *dynamodb.DeleteItemOutput
		if out, err = api.DeleteItem(ctx, in); err == nil {
			o = dynamoOutcome{Item: wire(out.Attributes), Units: capacity(out.ConsumedCapacity)}
		}
	case *dynamodb.GetItemInput:
		var out *dynamodb.GetItemOutput
		if out, err = api.GetItem(ctx, in); err == nil {
			o = dynamoOutcome{Item: wire(out.Item), Units: capacity(out.ConsumedCapacity)}
		}
	case *dynamodb.QueryInput:
		var out *dynamodb.QueryOutput
		if out, err = api.Query(ctx, in); err == nil {
			o = dynamoOutcome{Items: wire(out.Items), Last: wire(out.LastEvaluatedKey), Count: out.Count, Scanned: out.ScannedCount}
		}
	case *dynamodb.ScanInput:
		err = d.scanAll(ctx, api, in, &o)
	case *dynamodb.TransactWriteItemsInput:
		fresh := *in // the SDK writes a token into it
		_, err = api.TransactWriteItems(ctx, &fresh)
	case *dynamodb.CreateTableInput:
		var out *dynamodb.CreateTableOutput
		if out, err = api.CreateTable(ctx, in); err == nil {
			o.Item = described(out.TableDescription)
		}
	case *dynamodb.DescribeTableInput:
		var out *dynamodb.DescribeTableOutput
		if out, err = api.DescribeTable(ctx, in); err == nil {
			o.Item = described(out.Table)
		}
	case *dynamodb.UpdateTimeToLiveInput:
		_, err = api.UpdateTimeToLive(ctx, in)
	case *dynamodb.DescribeTimeToLiveInput:
		var out *dynamodb.DescribeTimeToLiveOutput
		if out, err = api.DescribeTimeToLive(ctx, in); err == nil {
			// A server may stay in ENABLING for as long as it likes.
			o.Item = wire(out.TimeToLiveDescription.AttributeName)
		}
	default:
		t.Fatalf("unknown operation %T", input)
	}
	if err != nil {
		o = failure(t, err)
	}
	if !d.strict {
		o.Units = 0
	}
	return name, o
}

// scanAll reads all pages: their order is the server's own.
func (d *differential) scanAll(ctx context.Context, api dynamoAPI, in *dynamodb.ScanInput, o *dynamoOutcome) error {
	page := *in
	var items []attributeMap
	for {
		out, err := api.Scan(ctx, &page)
		if err != nil {
			return err
		}
		if in.Limit != nil && out.ScannedCount > *in.Limit {
			return fmt.Errorf("a page of %d items, limit %d", out.ScannedCount, *in.Limit)
		}
		items = append(items, out.Items...)
		o.Count += out.Count
		o.Scanned += out.ScannedCount
		if page.ExclusiveStartKey = out.LastEvaluatedKey; len(page.ExclusiveStartKey) == 0 {
			o.Items = sorted(wire(items))
			return nil
		}
	}
}

// unsupported is the code of an operation that the fake does not support.
const unsupported = "unsupported"

// failure is the outcome of an error. An error that the API does not have is a fault of
// the test or of the fake.
func failure(t *testing.T, err error) dynamoOutcome {
	t.Helper()
	var api smithy.APIError
	var params smithy.InvalidParamsError
	switch {
	case errors.As(err, &api):
	case strings.Contains(err.Error(), net.ErrClosed.Error()):
		return dynamoOutcome{Code: brokenOff, message: err.Error()}
	case errors.Is(err, dynamofake.ErrUnsupported):
		return dynamoOutcome{Code: unsupported, message: err.Error()}
	case errors.As(err, &params):
		return dynamoOutcome{Code: "InvalidParamsError", message: err.Error()}
	default:
		t.Fatal(err)
	}
	o := dynamoOutcome{Code: api.ErrorCode(), message: err.Error()}
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		o.Item = wire(failed.Item)
	}
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) {
		for _, r := range cancelled.CancellationReasons {
			o.Reasons = append(o.Reasons, aws.ToString(r.Code), wire(r.Item))
		}
	}
	return o
}

func capacity(c *types.ConsumedCapacity) float64 {
	if c == nil {
		return -1
	}
	return aws.ToFloat64(c.CapacityUnits)
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	must(t, err)
	return string(out)
}
