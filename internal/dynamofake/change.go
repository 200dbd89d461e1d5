package dynamofake

import (
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A usage is what one call consumed.
type usage struct{ read, write float64 }

// A change is a write of one item, alone or in a transaction, that was checked as
// far as it can be without its table.
type change struct {
	tableName string
	kind      changeKind
	key       item // of a put, the whole item
	expressions
	oldOnFailure types.ReturnValuesOnConditionCheckFailure
}

type changeKind int

const (
	update changeKind = iota
	remove
	put     // of a transaction
	checked // the condition only, of a transaction
)

// prepare checks what needs no table.
func (c *change) prepare(tableName *string) error {
	if err := firstOf(checkTableName(tableName), checkOldOnFailure(c.oldOnFailure)); err != nil {
		return err
	}
	c.tableName = *tableName
	key, err := canonicalItem(c.key)
	if err != nil {
		return err
	}
	c.key = key
	return c.parse()
}

// bind checks what needs the table, but not the item.
func (c *change) bind(t *table) error {
	if c.kind == put {
		return t.checkItem(c.key)
	}
	if err := t.checkKey(c.key); err != nil {
		return err
	}
	for _, a := range c.parsedUpdate {
		if t.has(a.name.name) {
			return invalid("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", a.name)
		}
	}
	return nil
}

// run returns what becomes of an item; nil is no item.
func (c *change) run(before item) (item, error) {
	if !holds(c.parsedCondition, before) {
		failed := &types.ConditionalCheckFailedException{Message: aws.String("The conditional request failed")}
		if c.oldOnFailure == types.ReturnValuesOnConditionCheckFailureAllOld {
			failed.Item = clone(before)
		}
		return nil, failed
	}
	switch c.kind {
	case checked:
		return before, nil
	case remove:
		return nil, nil
	}
	after := c.key
	if c.kind == update {
		if before == nil && c.onlyRemoves() {
			return nil, nil
		}
		base := before
		if base == nil {
			base = maps.Clone(c.key)
		}
		var err error
		if after, err = apply(c.parsedUpdate, base); err != nil {
			return nil, err
		}
	}
	if sizeOf(after) > maxItemSize {
		return nil, invalid("Item size has exceeded the maximum allowed size")
	}
	return after, nil
}

// onlyRemoves reports whether an update has no action that writes: it does not
// create an item.
func (c *change) onlyRemoves() bool {
	for _, a := range c.parsedUpdate {
		if a.clause != "REMOVE" {
			return false
		}
	}
	return true
}

// write runs one change.
func (db *DB) write(c *change, used *usage) (before, after item, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	t, err := db.table(c.tableName)
	if err != nil {
		return nil, nil, err
	}
	if err := c.bind(t); err != nil {
		return nil, nil, err
	}
	key := t.encode(c.key)
	if db.isBusy(c.tableName, key) {
		return nil, nil, TransactionConflict()
	}
	before = t.current(key)
	after, err = c.run(before)
	used.write = writeUnits(before, after)
	if err == nil && (before != nil || after != nil) {
		t.set(key, after, db.Lag)
	}
	return before, after, err
}

func (db *DB) updateItem(in *dynamodb.UpdateItemInput, used *usage) (*dynamodb.UpdateItemOutput, error) {
	c := &change{kind: update, key: in.Key, oldOnFailure: in.ReturnValuesOnConditionCheckFailure, expressions: expressions{
		names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
		condition: in.ConditionExpression, update: in.UpdateExpression,
	}}
	if in.UpdateExpression == nil {
		return nil, unsupported("UpdateItem without an UpdateExpression")
	}
	if err := firstOf(
		only(in, append(conditional, "UpdateExpression", "ReturnValues", "ReturnConsumedCapacity")...),
		oneOf(in.ReturnValues, types.ReturnValueNone, types.ReturnValueAllNew, types.ReturnValueUpdatedNew),
		checkLevel(in.ReturnConsumedCapacity),
		c.prepare(in.TableName),
	); err != nil {
		return nil, err
	}
	_, after, err := db.write(c, used)
	if err != nil {
		return nil, err
	}
	out := &dynamodb.UpdateItemOutput{ConsumedCapacity: consumed(in.ReturnConsumedCapacity, c.tableName, used.write)}
	switch in.ReturnValues {
	case types.ReturnValueAllNew:
		out.Attributes = after
	case types.ReturnValueUpdatedNew:
		out.Attributes = make(item)
		for _, a := range c.parsedUpdate {
			a.name.copy(out.Attributes, after)
		}
	}
	return out, nil
}

func (db *DB) deleteItem(in *dynamodb.DeleteItemInput, used *usage) (*dynamodb.DeleteItemOutput, error) {
	c := &change{kind: remove, key: in.Key, oldOnFailure: in.ReturnValuesOnConditionCheckFailure, expressions: expressions{
		names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues, condition: in.ConditionExpression,
	}}
	if err := firstOf(
		only(in, append(conditional, "ReturnValues", "ReturnConsumedCapacity")...),
		oneOf(in.ReturnValues, types.ReturnValueNone, types.ReturnValueAllOld),
		checkLevel(in.ReturnConsumedCapacity),
		c.prepare(in.TableName),
	); err != nil {
		return nil, err
	}
	before, _, err := db.write(c, used)
	if err != nil {
		return nil, err
	}
	out := &dynamodb.DeleteItemOutput{ConsumedCapacity: consumed(in.ReturnConsumedCapacity, c.tableName, used.write)}
	if in.ReturnValues == types.ReturnValueAllOld {
		out.Attributes = clone(before)
	}
	return out, nil
}
