package dynamofake

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A usage is what one call consumed.
type usage struct{ read, write float64 }

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
	if err != nil {
		used.write = writeUnits(before, nil)
		return nil, nil, err
	}
	used.write = writeUnits(before, after)
	if before != nil || after != nil {
		t.set(key, after, db.Lag)
	}
	return before, after, nil
}

func (db *DB) updateItem(in *dynamodb.UpdateItemInput, used *usage) (*dynamodb.UpdateItemOutput, error) {
	c := &change{kind: update, key: in.Key, oldOnFailure: in.ReturnValuesOnConditionCheckFailure, expressions: expressions{
		names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
		condition: in.ConditionExpression, update: in.UpdateExpression,
	}}
	if err := firstOf(
		refuse(in, "AttributeUpdates", "ConditionalOperator", "Expected", "ReturnItemCollectionMetrics"),
		checkLevel(in.ReturnConsumedCapacity),
		oneOf("returnValues", in.ReturnValues, in.ReturnValues.Values()...),
		c.prepare(in.TableName),
	); err != nil {
		return nil, err
	}
	before, after, err := db.write(c, used)
	if err != nil {
		return nil, err
	}
	return &dynamodb.UpdateItemOutput{
		Attributes:       c.returned(in.ReturnValues, before, after),
		ConsumedCapacity: consumed(in.ReturnConsumedCapacity, c.tableName, used.write),
	}, nil
}

// returned picks the attributes that ReturnValues asks for; none is nil.
func (c *change) returned(which types.ReturnValue, before, after item) item {
	paths := make([]attribute, 0, len(c.parsedUpdate))
	for _, a := range c.parsedUpdate {
		paths = append(paths, a.path)
	}
	var out item
	switch which {
	case types.ReturnValueAllOld:
		out = before
	case types.ReturnValueAllNew:
		out = after
	case types.ReturnValueUpdatedOld:
		out = project(before, paths)
	case types.ReturnValueUpdatedNew:
		out = project(after, paths)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (db *DB) putItem(in *dynamodb.PutItemInput, used *usage) (*dynamodb.PutItemOutput, error) {
	c := &change{kind: put, key: in.Item, oldOnFailure: in.ReturnValuesOnConditionCheckFailure, expressions: expressions{
		names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues, condition: in.ConditionExpression,
	}}
	if err := firstOf(
		refuse(in, "ConditionalOperator", "Expected", "ReturnItemCollectionMetrics"),
		checkLevel(in.ReturnConsumedCapacity),
		oneOf("returnValues", in.ReturnValues, types.ReturnValueNone, types.ReturnValueAllOld),
		c.prepare(in.TableName),
	); err != nil {
		return nil, err
	}
	before, after, err := db.write(c, used)
	if err != nil {
		return nil, err
	}
	return &dynamodb.PutItemOutput{
		Attributes:       c.returned(in.ReturnValues, before, after),
		ConsumedCapacity: consumed(in.ReturnConsumedCapacity, c.tableName, used.write),
	}, nil
}

func (db *DB) deleteItem(in *dynamodb.DeleteItemInput, used *usage) (*dynamodb.DeleteItemOutput, error) {
	c := &change{kind: remove, key: in.Key, oldOnFailure: in.ReturnValuesOnConditionCheckFailure, expressions: expressions{
		names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues, condition: in.ConditionExpression,
	}}
	if err := firstOf(
		refuse(in, "ConditionalOperator", "Expected", "ReturnItemCollectionMetrics"),
		checkLevel(in.ReturnConsumedCapacity),
		oneOf("returnValues", in.ReturnValues, types.ReturnValueNone, types.ReturnValueAllOld),
		c.prepare(in.TableName),
	); err != nil {
		return nil, err
	}
	before, after, err := db.write(c, used)
	if err != nil {
		return nil, err
	}
	return &dynamodb.DeleteItemOutput{
		Attributes:       c.returned(in.ReturnValues, before, after),
		ConsumedCapacity: consumed(in.ReturnConsumedCapacity, c.tableName, used.write),
	}, nil
}
