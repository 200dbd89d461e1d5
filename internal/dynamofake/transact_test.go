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
)

// Elements of a transaction on the plain table.
func transactPut(id string) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{TableName: aws.String(plainTable), Item: item{"id": s(id), "by": s("put")}}}
}

func transactCheck(id, condition string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: aws.String(plainTable), Key: item{"id": s(id)}, ConditionExpression: &condition, ExpressionAttributeNames: names(condition),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

func TestTransaction(t *testing.T) {
	t.Parallel()
	const exists, missing = "attribute_exists(#id)", "attribute_not_exists(#id)"
	many := make([]types.TransactWriteItem, 0, 101)
	for i := range 101 {
		many = append(many, transactPut("m"+strconv.Itoa(i)))
	}
	wrongKey, missingTable, twoInOne, conditional := transactPut("a"), transactPut("a"), transactPut("a"), transactPut("a")
	wrongKey.Put.Item = item{"id": n("1")}
	missingTable.Put.TableName = aws.String("missing")
	twoInOne.ConditionCheck = transactCheck("b", exists).ConditionCheck
	conditional.Put.ConditionExpression = aws.String(missing)
	remove := types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String(plainTable), Key: item{"id": s("a")}}}
	for what, test := range map[string]struct {
		items   []types.TransactWriteItem
		want    string // the code, for a cancellation the reasons
		changed bool
	}{
		"both kinds":        {[]types.TransactWriteItem{transactPut("new"), transactPut("a"), transactCheck("b", exists), transactCheck("c", missing)}, "", true},
		"100":               {many[:100], "", true},
		"101":               {many, validation, false},
		"none":              {[]types.TransactWriteItem{}, validation, false},
		"empty element":     {[]types.TransactWriteItem{{}}, validation, false},
		"two in one":        {[]types.TransactWriteItem{twoInOne}, validation, false},
		"one item twice":    {[]types.TransactWriteItem{transactPut("a"), transactCheck("a", exists)}, validation, false},
		"bad expression":    {[]types.TransactWriteItem{transactPut("new"), transactCheck("a", "#id =")}, validation, false},
		"missing table":     {[]types.TransactWriteItem{transactPut("a"), missingTable}, notFound, false},
		"check":             {[]types.TransactWriteItem{transactCheck("c", exists), transactPut("new")}, "ConditionalCheckFailed None", false},
		"check of an item":  {[]types.TransactWriteItem{transactPut("new"), transactCheck("b", missing)}, "None ConditionalCheckFailed", false},
		"key":               {[]types.TransactWriteItem{wrongKey, transactPut("new")}, "ValidationError None", false},
		"a deletion":        {[]types.TransactWriteItem{remove}, unsupported, false},
		"a conditional put": {[]types.TransactWriteItem{conditional}, unsupported, false},
	} {
		db, c := newDB(t)
		b := item{"id": s("b"), "n": n("1")}
		db.SetItem(plainTable, item{"id": s("a"), "n": n("1")})
		db.SetItem(plainTable, b)
		before := text(t, db.Items(plainTable))
		_, err := c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: test.items})
		var cancelled *types.TransactionCanceledException
		if errors.As(err, &cancelled) {
			var reasons []string
			for _, r := range cancelled.CancellationReasons {
				reasons = append(reasons, *r.Code)
				if what == "check of an item" && *r.Code != "None" {
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
		if _, w := c.Consumed(); what == "both kinds" && w != 8 {
			t.Errorf("%s: %v units; a transaction does everything twice", what, w)
		}
	}
}

// TestTransactionConflict writes an item while a transaction does.
func TestTransactionConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, c := newDB(t)
		db.TransactTime = time.Second
		transaction := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{transactCheck("x", "attribute_not_exists(#n)")}}
		if _, err := c.TransactWriteItems(t.Context(), transaction); err != nil {
			t.Fatal(err)
		}
		_, err := increment(t.Context(), c, "x")
		sameCode(t, "a write", err, "TransactionConflictException")
		_, err = c.TransactWriteItems(t.Context(), transaction)
		sameCode(t, "a transaction", err, "TransactionCanceledException")
		time.Sleep(time.Second)
		_, err = increment(t.Context(), c, "x")
		sameCode(t, "a write afterwards", err, "")
	})
}
