package dynamofake_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// Elements of a transaction on the plain table, each with a condition.
func transactPut(id, condition string) types.TransactWriteItem {
	p := &types.Put{TableName: aws.String(plainTable), Item: item{"id": s(id), "by": s("put")}}
	if condition != "" {
		p.ConditionExpression = &condition
		p.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	}
	return types.TransactWriteItem{Put: p}
}

func transactAdd(id string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: aws.String(plainTable), Key: item{"id": s(id)}, UpdateExpression: aws.String("ADD n :one"),
		ExpressionAttributeValues: item{":one": n("1")},
	}}
}

func transactDelete(id string) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String(plainTable), Key: item{"id": s(id)}}}
}

func transactCheck(id, condition string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: aws.String(plainTable), Key: item{"id": s(id)}, ConditionExpression: &condition,
	}}
}

func TestTransaction(t *testing.T) {
	t.Parallel()
	many := make([]types.TransactWriteItem, 0, 101)
	for i := range 101 {
		many = append(many, transactPut("m"+strconv.Itoa(i), ""))
	}
	wrongKey := transactDelete("a")
	wrongKey.Delete.Key = item{"id": n("1")}
	missingTable := transactDelete("a")
	missingTable.Delete.TableName = aws.String("missing")
	twoInOne := transactDelete("a")
	twoInOne.Put = transactPut("b", "").Put
	for what, test := range map[string]struct {
		items   []types.TransactWriteItem
		want    string // the code, for a cancellation the reasons
		changed bool
	}{
		"all kinds":          {[]types.TransactWriteItem{transactPut("new", ""), transactAdd("a"), transactDelete("b"), transactCheck("c", "attribute_not_exists(id)")}, "", true},
		"100":                {many[:100], "", true},
		"101":                {many, validation, false},
		"none":               {[]types.TransactWriteItem{}, validation, false},
		"empty element":      {[]types.TransactWriteItem{{}}, validation, false},
		"two in one":         {[]types.TransactWriteItem{twoInOne}, validation, false},
		"one item twice":     {[]types.TransactWriteItem{transactAdd("a"), transactCheck("a", "attribute_exists(id)")}, validation, false},
		"bad expression":     {[]types.TransactWriteItem{transactPut("new", ""), transactPut("a", "id =")}, validation, false},
		"missing table":      {[]types.TransactWriteItem{transactAdd("a"), missingTable}, notFound, false},
		"condition":          {[]types.TransactWriteItem{transactAdd("a"), transactPut("b", "attribute_not_exists(id)")}, "None ConditionalCheckFailed", false},
		"check":              {[]types.TransactWriteItem{transactCheck("c", "attribute_exists(id)"), transactPut("new", "")}, "ConditionalCheckFailed None", false},
		"type of an operand": {[]types.TransactWriteItem{transactPut("new", ""), transactAdd("b")}, "None ValidationError", false},
		"key":                {[]types.TransactWriteItem{wrongKey, transactPut("new", "")}, "ValidationError None", false},
	} {
		db, c := newDB(t)
		b := item{"id": s("b"), "n": s("no number")}
		db.SetItem(plainTable, item{"id": s("a"), "n": n("1")})
		db.SetItem(plainTable, b)
		before := text(t, db.Items(plainTable))
		_, err := c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: test.items})
		var cancelled *types.TransactionCanceledException
		if errors.As(err, &cancelled) {
			var reasons []string
			for _, r := range cancelled.CancellationReasons {
				reasons = append(reasons, *r.Code)
				if *r.Code == "ConditionalCheckFailed" && what == "condition" {
					sameItem(t, what, r.Item, b)
				}
			}
			if got := strings.Join(reasons, " "); got != test.want {
				t.Errorf("%s: %s, want %s", what, got, test.want)
			}
		} else {
			sameCode(t, what, err, test.want)
		}
		if after := text(t, db.Items(plainTable)); (after != before) != test.changed {
			t.Errorf("%s: %s became %s", what, before, after)
		}
	}
}

func TestTransactionToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, c := newDB(t)
		in := &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{transactAdd("a")}, ClientRequestToken: aws.String("token"),
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		}
		for what, test := range []struct {
			wait time.Duration
			n    string
		}{{0, "1"}, {time.Minute, "1"}, {10 * time.Minute, "2"}} {
			time.Sleep(test.wait)
			if _, err := c.TransactWriteItems(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			sameItem(t, strconv.Itoa(what), db.Item(plainTable, item{"id": s("a")}), item{"id": s("a"), "n": n(test.n)})
		}
		other := *in
		other.TransactItems = []types.TransactWriteItem{transactAdd("b")}
		_, err := c.TransactWriteItems(t.Context(), &other)
		sameCode(t, "another transaction", err, "IdempotentParameterMismatchException")
		if _, w := c.Consumed(); w != 4 {
			t.Errorf("%v units", w)
		}
	})
}

func TestDirectAccessPanics(t *testing.T) {
	t.Parallel()
	db, _ := newDB(t)
	for what, f := range map[string]func(*dynamofake.DB){
		"missing table": func(db *dynamofake.DB) { db.Item("missing", item{"id": s("x")}) },
		"items":         func(db *dynamofake.DB) { db.Items("missing") },
		"bad key":       func(db *dynamofake.DB) { db.RemoveItem(plainTable, item{"id": n("1")}) },
		"bad item":      func(db *dynamofake.DB) { db.SetItem(plainTable, item{"id": s("x"), "n": n("one")}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			f(db)
		}()
	}
}
