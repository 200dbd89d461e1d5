package dynamolock

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// ConditionCheck returns a check for a transaction (TransactWriteItems) of one's
// own that makes it succeed only while the engine has the lock for its holder:
// not if it was released, taken over, reclaimed or broken. A fencing token, for
// writes within DynamoDB.
//
//	check, err := client.ConditionCheck(lock)
//	_, err = ddb.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
//		TransactItems: []types.TransactWriteItem{{ConditionCheck: check}, {Put: ...}},
//	})
//
// A check that fails shows in the TransactionCanceledException as the reason
// ConditionalCheckFailed. The reason TransactionConflict is none of the lock's end:
// heartbeats write the same item, so try the transaction again. The check stays
// good for as long as the lock is held.
//
// ConditionCheck itself sends nothing. It fails with what lock.Err returns
// if the lock has ended, and with [holdfast.ErrInvalid] if it is not a lock of
// this client.
func (c *Client) ConditionCheck(lock *holdfast.Lock) (*types.ConditionCheck, error) {
	if lock == nil {
		return nil, fmt.Errorf("dynamolock: condition check: %w", driver.Invalid("lock", "it is nil"))
	}
	if err := lock.Err(); err != nil {
		return nil, fmt.Errorf("dynamolock: condition check %q: %w", lock.Key(), err)
	}
	b := c.engine
	h, ok := holdfast.HoldOf(b.host, lock).(*hold)
	if !ok {
		return nil, fmt.Errorf("dynamolock: condition check %q: %w",
			lock.Key(), driver.Invalid("lock", "it is not a lock of this client"))
	}
	e := &expression{}
	e.cond = h.unchanged(e)
	if b.opts.Mode != FailClosed {
		e.cond = all(e.live(), e.cond)
	}
	return &types.ConditionCheck{
		TableName:                           &b.opts.Table,
		Key:                                 h.key,
		ConditionExpression:                 &e.cond,
		ExpressionAttributeNames:            e.names,
		ExpressionAttributeValues:           e.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}, nil
}
