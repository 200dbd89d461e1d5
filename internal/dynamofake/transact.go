package dynamofake

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

const maxActions = 100

// transactionChange returns the change that one element of a transaction asks
// for.
func transactionChange(w types.TransactWriteItem) (*change, error) {
	switch check, p := w.ConditionCheck, w.Put; {
	case w.Update != nil || w.Delete != nil:
		return nil, unsupported("an update or a deletion in a transaction")
	case (check == nil) == (p == nil):
		return nil, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
	case p != nil:
		c := &change{kind: put, key: p.Item}
		return c, firstOf(only(p, "TableName", "Item"), c.prepare(p.TableName))
	default:
		c := &change{kind: checked, key: check.Key, oldOnFailure: check.ReturnValuesOnConditionCheckFailure, expressions: expressions{
			names: check.ExpressionAttributeNames, values: check.ExpressionAttributeValues, condition: check.ConditionExpression,
		}}
		if c.condition == nil {
			return nil, invalid("The expression can not be empty;")
		}
		return c, c.prepare(check.TableName)
	}
}

func (db *DB) transactWriteItems(in *dynamodb.TransactWriteItemsInput, used *usage) (*dynamodb.TransactWriteItemsOutput, error) {
	if err := only(in, "TransactItems"); err != nil {
		return nil, err
	}
	if n := len(in.TransactItems); n == 0 || n > maxActions {
		return nil, invalid("Value at 'transactItems' failed to satisfy constraint: Member must have length from 1 to %d: %d", maxActions, n)
	}
	changes := make([]*change, 0, len(in.TransactItems))
	for _, w := range in.TransactItems {
		c, err := transactionChange(w)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	return new(dynamodb.TransactWriteItemsOutput), db.runAll(changes, used)
}

// runAll does all changes or none.
func (db *DB) runAll(changes []*change, used *usage) error {
	tables := make([]*table, len(changes))
	seen := make(map[string]bool)
	reasons := make([]types.CancellationReason, len(changes))
	for i, c := range changes {
		t, err := db.table(c.tableName)
		if err != nil {
			return err
		}
		tables[i] = t
		if reasons[i] = reason(c.bind(t)); *reasons[i].Code != "None" {
			continue
		}
		id := c.tableName + "/" + t.encode(c.key)
		if seen[id] {
			return invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[id] = true
		if db.isBusy(c.tableName, t.encode(c.key)) {
			reasons[i] = reason(TransactionConflict())
		}
	}
	after := make([]item, len(changes))
	for i, c := range changes {
		if *reasons[i].Code != "None" {
			continue
		}
		before := tables[i].current(tables[i].encode(c.key))
		var err error
		after[i], err = c.run(before)
		reasons[i] = reason(err)
		// A transaction does everything twice.
		used.write += 2 * writeUnits(before, after[i])
	}
	if err := cancellation(reasons); err != nil {
		return err
	}
	if db.TransactTime > 0 {
		for id := range seen {
			db.busy[id] = time.Now().Add(db.TransactTime)
		}
	}
	for i, c := range changes {
		if key := tables[i].encode(c.key); c.kind != checked && (after[i] != nil || tables[i].current(key) != nil) {
			tables[i].set(key, after[i], db.Lag)
		}
	}
	return nil
}

// isBusy reports whether a transaction is just writing an item.
func (db *DB) isBusy(table, key string) bool {
	return time.Now().Before(db.busy[table+"/"+key])
}

// reason turns the failure of one change into its part of the answer.
func reason(err error) types.CancellationReason {
	var failed *types.ConditionalCheckFailedException
	var conflict *types.TransactionConflictException
	var api smithy.APIError
	switch {
	case err == nil:
		return types.CancellationReason{Code: aws.String("None")}
	case errors.As(err, &conflict):
		return types.CancellationReason{Code: aws.String("TransactionConflict"), Message: conflict.Message}
	case errors.As(err, &failed):
		return types.CancellationReason{Code: aws.String("ConditionalCheckFailed"), Message: failed.Message, Item: failed.Item}
	case errors.As(err, &api):
		return types.CancellationReason{Code: aws.String("ValidationError"), Message: aws.String(api.ErrorMessage())}
	}
	panic(fmt.Sprintf("dynamofake: %v is no error of the API", err))
}

func cancellation(reasons []types.CancellationReason) error {
	var codes []string
	failed := false
	for _, r := range reasons {
		codes = append(codes, *r.Code)
		failed = failed || *r.Code != "None"
	}
	if !failed {
		return nil
	}
	return &types.TransactionCanceledException{
		Message: aws.String(fmt.Sprintf("Transaction cancelled, please refer cancellation reasons for specific reasons [%s]",
			strings.Join(codes, ", "))),
		CancellationReasons: reasons,
	}
}
