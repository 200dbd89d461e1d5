package dynamofake_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
	for what, test := range map[string]struct {
		table string
		key   item
		want  string
	}{
		"good":          {sortedTable, item{"id": s("x"), "seq": n("1")}, ""},
		"missing table": {"no.such.table", item{"id": s("x")}, notFound},
		"bad table":     {"no such table", item{"id": s("x")}, validation},
		"no sort key":   {sortedTable, item{"id": s("x")}, validation},
		"too much":      {plainTable, item{"id": s("x"), "seq": n("1")}, validation},
		"other name":    {plainTable, item{"ID": s("x")}, validation},
		"wrong type":    {plainTable, item{"id": n("1")}, validation},
		"bad number":    {sortedTable, item{"id": s("x"), "seq": n("one")}, validation},
		"empty":         {plainTable, item{"id": s("")}, validation},
		"long":          {plainTable, item{"id": s(strings.Repeat("x", 2048))}, ""},
		"too long":      {plainTable, item{"id": s(strings.Repeat("x", 2049))}, validation},
		"no value":      {plainTable, item{"id": nil}, validation},
	} {
		_, err := get(t.Context(), c, test.table, test.key, true)
		sameCode(t, what+", get", err, test.want)
		_, err = c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: &test.table, Key: test.key, UpdateExpression: aws.String("REMOVE #a"), ExpressionAttributeNames: names("#a"),
		})
		sameCode(t, what+", update", err, test.want)
		_, err = c.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &test.table, Key: test.key})
		sameCode(t, what+", delete", err, test.want)
	}
	_, err := c.GetItem(t.Context(), nil)
	if params := (smithy.InvalidParamsError{}); !errors.As(err, &params) || params.Len() != 2 {
		t.Errorf("without parameters: %v", err)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	db, c := newDB(t)
	there := item{"id": s("x"), "a": n("1")}
	in := &dynamodb.DeleteItemInput{
		TableName: aws.String(plainTable), Key: item{"id": s("x")}, ConditionExpression: aws.String("attribute_not_exists(#a)"),
		ExpressionAttributeNames: names("#a"),
	}
	db.SetItem(plainTable, there)
	_, err := c.DeleteItem(t.Context(), in)
	var unmet *types.ConditionalCheckFailedException
	if !errors.As(err, &unmet) || unmet.Item != nil {
		t.Errorf("%v, with item %v", err, unmet)
	}
	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	if _, err = c.DeleteItem(t.Context(), in); !errors.As(err, &unmet) {
		t.Fatal(err)
	}
	sameItem(t, "what the condition failed on", unmet.Item, there)
	in.ConditionExpression = aws.String("attribute_exists(#a)")
	in.ReturnValues = types.ReturnValueAllOld
	for _, want := range []string{"", failed} {
		out, err := c.DeleteItem(t.Context(), in)
		sameCode(t, "delete", err, want)
		if err == nil {
			sameItem(t, "what was deleted", out.Attributes, there)
		}
	}
	if it := db.Item(plainTable, item{"id": s("x")}); it != nil {
		t.Errorf("after the deletion: %v", it)
	}
}

func TestItemSize(t *testing.T) {
	t.Parallel()
	db, c := newDB(t)
	set := func(v types.AttributeValue) error {
		_, err := change(t.Context(), c, "x", "SET #a = :v", item{":v": v})
		return err
	}
	largest := strings.Repeat("x", 400<<10-len("id")-len("x")-len("a"))
	sameCode(t, "400 KB", set(s(largest)), "")
	sameCode(t, "more", set(s(largest+"x")), validation)
	deep := s("bottom")
	for range 33 {
		deep = l(deep)
	}
	sameCode(t, "deep", set(deep), validation)
	sameItem(t, "afterwards", db.Item(plainTable, item{"id": s("x")}), item{"id": s("x"), "a": s(largest)})
}

func TestConsumedCapacity(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
	write := func(size int, condition *string) float64 {
		t.Helper()
		out, err := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String(plainTable), Key: item{"id": s("x")}, UpdateExpression: aws.String("SET #a = :v"), ConditionExpression: condition,
			ExpressionAttributeNames: names("#a"), ExpressionAttributeValues: item{":v": s(strings.Repeat("x", size))},
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
		if condition != nil {
			sameCode(t, "conditional", err, failed)
			return 0
		}
		if err != nil {
			t.Fatal(err)
		}
		return *out.ConsumedCapacity.CapacityUnits
	}
	read := func(consistent bool) float64 {
		t.Helper()
		out, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{
			TableName: aws.String(plainTable), Key: item{"id": s("x")}, ConsistentRead: &consistent,
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
		if err != nil {
			t.Fatal(err)
		}
		return *out.ConsumedCapacity.CapacityUnits
	}
	c.ResetCounts()
	for what, units := range map[string][2]float64{
		"read nothing":            {read(false), 0.5},
		"small":                   {write(10, nil), 1},
		"larger":                  {write(5000, nil), 5},
		"smaller than before":     {write(10, nil), 5},
		"larger again":            {write(5000, nil), 5},
		"read":                    {read(true), 2},
		"read, in the end":        {read(false), 1},
		"condition that is unmet": {write(1, aws.String("attribute_not_exists(#a)")), 0},
	} {
		if units[0] != units[1] {
			t.Errorf("%s: %v units, want %v", what, units[0], units[1])
		}
	}
	if r, w := c.Consumed(); r != 3.5 || w != 1+5+5+5+5 {
		t.Errorf("consumed in all: %v to read, %v to write", r, w)
	}
	if calls := c.Calls(); calls["UpdateItem"] != 5 || calls["GetItem"] != 3 || len(calls) != 2 {
		t.Errorf("%v", calls)
	}
	c.ResetCounts()
	if r, w := c.Consumed(); r != 0 || w != 0 || len(c.Calls()) != 0 {
		t.Error("not reset")
	}
}

// TestNoAliasing changes what went in and what came out.
func TestNoAliasing(t *testing.T) {
	t.Parallel()
	db, c := newDB(t)
	there := func() item {
		return item{"id": s("x"), "b": b("abc"), "m": m(item{"l": l(b("abc"))}), "bs": bs("abc")}
	}
	spoil := func(it item) {
		for _, v := range []types.AttributeValue{it["b"], it["m"].(*types.AttributeValueMemberM).Value["l"].(*types.AttributeValueMemberL).Value[0]} {
			v.(*types.AttributeValueMemberB).Value[0] = 'X'
		}
		it["bs"].(*types.AttributeValueMemberBS).Value[0][0] = 'X'
		it["m"].(*types.AttributeValueMemberM).Value["more"] = null()
		it["id"] = s("y")
	}
	in := there()
	db.SetItem(plainTable, in)
	spoil(in)
	for range 2 {
		out, err := get(t.Context(), c, plainTable, item{"id": s("x")}, true)
		if err != nil {
			t.Fatal(err)
		}
		sameItem(t, "read", out, there())
		spoil(out)
		direct := db.Item(plainTable, item{"id": s("x")})
		sameItem(t, "read directly", direct, there())
		spoil(direct)
	}
}

// TestUnsupported sets parameters that the fake does not know, one at a time.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
	for what, in := range map[string]dynamodb.UpdateItemInput{
		"attribute updates": {AttributeUpdates: map[string]types.AttributeValueUpdate{"a": {}}},
		"expected":          {Expected: map[string]types.ExpectedAttributeValue{"a": {}}},
		"values":            {ReturnValues: types.ReturnValueAllOld},
		"capacity":          {ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes},
		"values on failure": {ReturnValuesOnConditionCheckFailure: "ALL_NEW"},
	} {
		in.TableName, in.Key, in.UpdateExpression = aws.String(plainTable), item{"id": s("x")}, aws.String("REMOVE #a")
		in.ExpressionAttributeNames = names("#a")
		_, err := c.UpdateItem(t.Context(), &in)
		sameCode(t, what, err, unsupported)
	}
	_, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(plainTable), Key: item{"id": s("x")}, ProjectionExpression: aws.String("#a"), ExpressionAttributeNames: names("#a"),
	})
	sameCode(t, "a projection", err, unsupported)
}
