package dynamofake

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

const (
	maxActions = 100
	// tokenLife is how long a repeated ClientRequestToken does nothing again.
	tokenLife = 10 * time.Minute
)

// finished is a transaction that was done, by its ClientRequestToken.
type finished struct {
	at time.Time
	in *dynamodb.TransactWriteItemsInput
}

// transactionChange returns the change that one element of a transaction asks
// for.
func transactionChange(w types.TransactWriteItem) (*change, error) {
	var found []*change
	var tableName *string
	if u := w.Update; u != nil {
		tableName = u.TableName
		found = append(found, &change{kind: update, key: u.Key, oldOnFailure: u.ReturnValuesOnConditionCheckFailure, expressions: expressions{
			names: u.ExpressionAttributeNames, values: u.ExpressionAttributeValues,
			condition: u.ConditionExpression, update: u.UpdateExpression,
		}})
	}
	if p := w.Put; p != nil {
		tableName = p.TableName
		found = append(found, &change{kind: put, key: p.Item, oldOnFailure: p.ReturnValuesOnConditionCheckFailure, expressions: expressions{
			names: p.ExpressionAttributeNames, values: p.ExpressionAttributeValues, condition: p.ConditionExpression,
		}})
	}
	if d := w.Delete; d != nil {
		tableName = d.TableName
		found = append(found, &change{kind: remove, key: d.Key, oldOnFailure: d.ReturnValuesOnConditionCheckFailure, expressions: expressions{
			names: d.ExpressionAttributeNames, values: d.ExpressionAttributeValues, condition: d.ConditionExpression,
		}})
	}
	if c := w.ConditionCheck; c != nil {
		tableName = c.TableName
		found = append(found, &change{kind: check, key: c.Key, oldOnFailure: c.ReturnValuesOnConditionCheckFailure, expressions: expressions{
			names: c.ExpressionAttributeNames, values: c.ExpressionAttributeValues, condition: c.ConditionExpression,
		}})
	}
	if len(found) != 1 {
		return nil, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
	}
	c := found[0]
	if c.kind == check && c.condition == nil || c.kind == update && c.update == nil {
		return nil, invalid("The expression can not be empty;")
	}
	return c, c.prepare(tableName)
}

func (db *DB) transactWriteItems(in *dynamodb.TransactWriteItemsInput, used *usage) (*dynamodb.TransactWriteItemsOutput, error) {
	if err := firstOf(refuse(in, "ReturnItemCollectionMetrics"), checkLevel(in.ReturnConsumedCapacity)); err != nil {
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
	if done, err := db.repeated(in); done || err != nil {
		return new(dynamodb.TransactWriteItemsOutput), err
	}
	perTable, err := db.runAll(changes, used)
	if err != nil {
		return nil, err
	}
	if in.ClientRequestToken != nil {
		db.tokens[*in.ClientRequestToken] = finished{at: time.Now(), in: in}
	}
	out := new(dynamodb.TransactWriteItemsOutput)
	for table, units := range perTable {
		if c := consumed(in.ReturnConsumedCapacity, table, units); c != nil {
			c.WriteCapacityUnits = &units
			out.ConsumedCapacity = append(out.ConsumedCapacity, *c)
		}
	}
	return out, nil
}

// repeated reports whether a transaction with the same token was done before.
func (db *DB) repeated(in *dynamodb.TransactWriteItemsInput) (bool, error) {
	for token, f := range db.tokens {
		if time.Since(f.at) >= tokenLife {
			delete(db.tokens, token)
		}
	}
	if in.ClientRequestToken == nil {
		return false, nil
	}
	f, ok := db.tokens[*in.ClientRequestToken]
	if ok && !reflect.DeepEqual(f.in.TransactItems, in.TransactItems) {
		return false, &types.IdempotentParameterMismatchException{Message: aws.String("The token was used with other parameters")}
	}
	return ok, nil
}

// runAll does all changes or none. It returns the units by table.
func (db *DB) runAll(changes []*change, used *usage) (map[string]float64, error) {
	tables := make([]*table, len(changes))
	seen := make(map[string]bool)
	reasons := make([]types.CancellationReason, len(changes))
	for i, c := range changes {
		t, err := db.table(c.tableName)
		if err != nil {
			return nil, err
		}
		tables[i] = t
		if reasons[i] = reason(c.bind(t)); *reasons[i].Code != "None" {
			continue
		}
		id := c.tableName + "/" + t.encode(c.key)
		if seen[id] {
			return nil, invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[id] = true
		if db.isBusy(c.tableName, t.encode(c.key)) {
			reasons[i] = reason(TransactionConflict())
		}
	}
	after := make([]item, len(changes))
	units := make(map[string]float64)
	for i, c := range changes {
		if *reasons[i].Code != "None" {
			continue
		}
		before := tables[i].current(tables[i].encode(c.key))
		var err error
		after[i], err = c.run(before)
		reasons[i] = reason(err)
		// A transaction does everything twice.
		cost := 2 * writeUnits(before, after[i])
		units[c.tableName] += cost
		used.write += cost
	}
	if err := cancellation(reasons); err != nil {
		return nil, err
	}
	if db.TransactTime > 0 {
		for id := range seen {
			db.busy[id] = time.Now().Add(db.TransactTime)
		}
	}
	for i, c := range changes {
		if key := tables[i].encode(c.key); c.kind != check && (after[i] != nil || tables[i].current(key) != nil) {
			tables[i].set(key, after[i], db.Lag)
		}
	}
	return units, nil
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
	return types.CancellationReason{Code: aws.String("ValidationError"), Message: aws.String(err.Error())}
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
