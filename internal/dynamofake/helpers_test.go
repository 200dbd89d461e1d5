package dynamofake_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

type item = map[string]types.AttributeValue

// Short forms of values.
func s(v string) types.AttributeValue     { return &types.AttributeValueMemberS{Value: v} }
func n(v string) types.AttributeValue     { return &types.AttributeValueMemberN{Value: v} }
func b(v string) types.AttributeValue     { return &types.AttributeValueMemberB{Value: []byte(v)} }
func boolean(v bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: v} }
func null() types.AttributeValue          { return &types.AttributeValueMemberNULL{Value: true} }
func ss(v ...string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: v} }
func ns(v ...string) types.AttributeValue { return &types.AttributeValueMemberNS{Value: v} }
func bs(v ...string) types.AttributeValue {
	set := new(types.AttributeValueMemberBS)
	for _, member := range v {
		set.Value = append(set.Value, []byte(member))
	}
	return set
}

func l(v ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: v}
}
func m(v item) types.AttributeValue { return &types.AttributeValueMemberM{Value: v} }

const (
	plainTable  = "plain"  // partition key id, S
	sortedTable = "sorted" // and sort key seq, N
)

// newDB returns a service with both tables, and a client.
func newDB(t *testing.T) (*dynamofake.DB, *dynamofake.Client) {
	t.Helper()
	db := dynamofake.New()
	c := db.Client()
	createTable(t, c, plainTable, "id", "S")
	createTable(t, c, sortedTable, "id", "S", "seq", "N")
	return db, c
}

// createTable creates a table; keys are pairs of name and type.
func createTable(t *testing.T, c *dynamofake.Client, name string, keys ...string) {
	t.Helper()
	if _, err := c.CreateTable(t.Context(), tableInput(name, keys...)); err != nil {
		t.Fatal(err)
	}
}

func tableInput(name string, keys ...string) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest}
	for i := 0; i < len(keys); i += 2 {
		role := types.KeyTypeHash
		if i > 0 {
			role = types.KeyTypeRange
		}
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &keys[i], KeyType: role})
		in.AttributeDefinitions = append(in.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: &keys[i], AttributeType: types.ScalarAttributeType(keys[i+1])})
	}
	return in
}

// text returns a readable form of items and values.
func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// sameItem compares items; the sets of both are to be sorted. No item and an
// empty one are the same.
func sameItem(t *testing.T, what string, got, want item) {
	t.Helper()
	if (len(got) > 0 || len(want) > 0) && !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %s, want %s", what, text(t, got), text(t, want))
	}
}

// code returns the API's code of an error, "" for none, and the error itself for
// one that the API does not have.
func code(err error) string {
	var api smithy.APIError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &api):
		return api.ErrorCode()
	case errors.Is(err, dynamofake.ErrUnsupported):
		return unsupported
	}
	return err.Error()
}

func sameCode(t *testing.T, what string, err error, want string) {
	t.Helper()
	if got := code(err); got != want {
		t.Errorf("%s: %q (%v), want %q", what, got, err, want)
	}
}

const (
	unsupported = "unsupported" // by the fake
	validation  = "ValidationException"
	failed      = "ConditionalCheckFailedException"
	notFound    = "ResourceNotFoundException"
	inUse       = "ResourceInUseException"
)

func get(ctx context.Context, c *dynamofake.Client, table string, key item, consistent bool) (item, error) {
	out, err := c.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: &consistent})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// change updates an item of the plain table, and returns what it becomes.
func change(ctx context.Context, c *dynamofake.Client, id, update string, values item) (item, error) {
	out, err := c.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(plainTable), Key: item{"id": s(id)}, UpdateExpression: &update, ReturnValues: types.ReturnValueAllNew,
		ExpressionAttributeNames: names(update), ExpressionAttributeValues: usedIn(update, values),
	})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// increment adds 1 to the attribute n of an item.
func increment(ctx context.Context, c *dynamofake.Client, id string) (item, error) {
	return change(ctx, c, id, "ADD #n :one", item{":one": n("1")})
}

// fill writes items 0 to count-1 of one partition.
func fill(db *dynamofake.DB, count int, more func(i int) item) {
	for i := range count {
		it := more(i)
		it["id"], it["seq"] = s("x"), n(strconv.Itoa(i))
		db.SetItem(sortedTable, it)
	}
}

var placeholder = regexp.MustCompile(`[:#]\w+`)

// names are the placeholders of an expression, each for the name that it is
// made of.
func names(expression string) map[string]string {
	used := make(map[string]string)
	for _, p := range placeholder.FindAllString(expression, -1) {
		if p[0] == '#' {
			used[p] = p[1:]
		}
	}
	if len(used) == 0 {
		return nil
	}
	return used
}

// usedIn picks the values that an expression refers to.
func usedIn(expression string, from ...item) item {
	used := make(item)
	for _, p := range placeholder.FindAllString(expression, -1) {
		for _, values := range from {
			if v, ok := values[p]; ok {
				used[p] = v
			}
		}
	}
	if len(used) == 0 {
		return nil
	}
	return used
}
