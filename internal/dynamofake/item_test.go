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
		_, err = c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &test.table, Key: test.key})
		sameCode(t, what+", update", err, test.want)
		_, err = c.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &test.table, Key: test.key})
		sameCode(t, what+", delete", err, test.want)
		if what != "too much" && what != "other name" { // which an item may have
			_, err = c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &test.table, Item: test.key})
			sameCode(t, what+", put", err, test.want)
		}
	}
	_, err := c.GetItem(t.Context(), nil)
	if params := (smithy.InvalidParamsError{}); !errors.As(err, &params) || params.Len() != 2 {
		t.Errorf("without parameters: %v", err)
	}
}

func TestPutGetDelete(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
	key := item{"id": s("x")}
	first := item{"id": s("x"), "a": n("1.50"), "secret": s("s")}
	put(t, c, plainTable, first)
	first["a"] = n("1.5")

	second := item{"id": s("x"), "b": s("B")}
	in := &dynamodb.PutItemInput{TableName: aws.String(plainTable), Item: second, ReturnValues: types.ReturnValueAllOld}
	out, err := c.PutItem(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	sameItem(t, "the old item", out.Attributes, first)
	in.ReturnValues = types.ReturnValueAllNew
	_, err = c.PutItem(t.Context(), in)
	sameCode(t, "ALL_NEW of a put", err, validation)

	in.ReturnValues, in.ConditionExpression = "", aws.String("attribute_not_exists(id)")
	_, err = c.PutItem(t.Context(), in)
	var unmet *types.ConditionalCheckFailedException
	if !errors.As(err, &unmet) || unmet.Item != nil {
		t.Errorf("%v, with item %v", err, unmet)
	}
	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	if _, err = c.PutItem(t.Context(), in); !errors.As(err, &unmet) {
		t.Fatal(err)
	}
	sameItem(t, "what the condition failed on", unmet.Item, second)

	got, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(plainTable), Key: key, ProjectionExpression: aws.String("#b, ghost"),
		ExpressionAttributeNames: map[string]string{"#b": "b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	sameItem(t, "a projection", got.Item, item{"b": s("B")})
	for _, projection := range []string{"", "b, b", "b,", "name", "b = b", ":b"} {
		_, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(plainTable), Key: key, ProjectionExpression: &projection})
		sameCode(t, "projection "+projection, err, validation)
	}

	remove := &dynamodb.DeleteItemInput{TableName: aws.String(plainTable), Key: key, ReturnValues: types.ReturnValueAllOld}
	for _, want := range []item{second, nil} {
		out, err := c.DeleteItem(t.Context(), remove)
		if err != nil {
			t.Fatal(err)
		}
		sameItem(t, "deleted", out.Attributes, want)
	}
	if it, err := get(t.Context(), c, plainTable, key, true); it != nil || err != nil {
		t.Errorf("after the deletion: %v, %v", it, err)
	}
}

func TestItemSize(t *testing.T) {
	t.Parallel()
	db, c := newDB(t)
	largest := item{"id": s("x"), "a": s(strings.Repeat("x", 400<<10-len("id")-len("x")-len("a")))}
	put(t, c, plainTable, largest)
	tooLarge := item{"id": s("x"), "a": s(largest["a"].(*types.AttributeValueMemberS).Value + "x")}
	_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(plainTable), Item: tooLarge})
	sameCode(t, "put", err, validation)
	_, err = c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(plainTable), Key: item{"id": s("x")}, UpdateExpression: aws.String("SET b = :v"),
		ExpressionAttributeValues: item{":v": null()},
	})
	sameCode(t, "update", err, validation)
	sameItem(t, "afterwards", db.Item(plainTable, item{"id": s("x")}), largest)

	deep := s("bottom")
	for range 33 {
		deep = l(deep)
	}
	_, err = c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(plainTable), Item: item{"id": s("x"), "a": deep}})
	sameCode(t, "deep", err, validation)
}

func TestConsumedCapacity(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
	c.ResetCounts()
	write := func(size int, condition *string) float64 {
		t.Helper()
		out, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: aws.String(plainTable), Item: item{"id": s("x"), "a": s(strings.Repeat("x", size))},
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal, ConditionExpression: condition,
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
			ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
		})
		if err != nil {
			t.Fatal(err)
		}
		return *out.ConsumedCapacity.Table.CapacityUnits
	}
	for what, units := range map[string][2]float64{
		"read nothing":            {read(false), 0.5},
		"small":                   {write(10, nil), 1},
		"larger":                  {write(5000, nil), 5},
		"smaller than before":     {write(10, nil), 5},
		"larger again":            {write(5000, nil), 5},
		"read":                    {read(true), 2},
		"read, in the end":        {read(false), 1},
		"condition that is unmet": {write(1, aws.String("attribute_not_exists(id)")), 0},
	} {
		if units[0] != units[1] {
			t.Errorf("%s: %v units, want %v", what, units[0], units[1])
		}
	}
	if r, w := c.Consumed(); r != 3.5 || w != 1+5+5+5+5 {
		t.Errorf("consumed in all: %v to read, %v to write", r, w)
	}
	if calls := c.Calls(); calls["PutItem"] != 5 || calls["GetItem"] != 3 || len(calls) != 2 {
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
	want := item{"id": s("x"), "b": b("abc"), "m": m(item{"l": l(b("abc"))}), "bs": bs("abc")}
	spoil := func(it item) {
		for _, v := range []types.AttributeValue{it["b"], it["m"].(*types.AttributeValueMemberM).Value["l"].(*types.AttributeValueMemberL).Value[0]} {
			v.(*types.AttributeValueMemberB).Value[0] = 'X'
		}
		it["bs"].(*types.AttributeValueMemberBS).Value[0][0] = 'X'
		it["m"].(*types.AttributeValueMemberM).Value["more"] = null()
		it["id"] = s("y")
	}
	in := item{"id": s("x"), "b": b("abc"), "m": m(item{"l": l(b("abc"))}), "bs": bs("abc")}
	put(t, c, plainTable, in)
	spoil(in)
	for range 2 {
		out, err := get(t.Context(), c, plainTable, item{"id": s("x")}, true)
		if err != nil {
			t.Fatal(err)
		}
		sameItem(t, "read", out, want)
		spoil(out)
		direct := db.Item(plainTable, item{"id": s("x")})
		sameItem(t, "read directly", direct, want)
		spoil(direct)
	}
}

func TestUnsupported(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
	_, err := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(plainTable), Key: item{"id": s("x")}, AttributeUpdates: map[string]types.AttributeValueUpdate{"a": {}},
	})
	sameCode(t, "AttributeUpdates", err, "unsupported")
	_, err = c.Query(t.Context(), &dynamodb.QueryInput{TableName: aws.String(plainTable), IndexName: aws.String("index")})
	sameCode(t, "an index", err, "unsupported")
}
