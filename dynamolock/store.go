package dynamolock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/task"
	"github.com/holdfast-go/holdfast/internal/dynamostore"
	"github.com/holdfast-go/holdfast/internal/recordlock"
)

// store implements [recordlock.Store] on a table, with one item per key.
type store struct {
	host  driver.Host
	api   API
	opts  Options
	tasks *task.Group
	ttl   timeToLive
	reach reach
}

func init() { dynamostore.Of = func(client any) recordlock.Store { return client.(*Client).store } }

// CheckKey implements recordlock.Store.
func (s *store) CheckKey(key string) error {
	_, err := s.opts.Keys.encode(key)
	return err
}

// Read implements recordlock.Store. A read that is not fresh is eventually consistent, and costs half as much.
func (s *store) Read(ctx context.Context, key string, fresh bool) (recordlock.Record, error) {
	k, err := s.opts.Keys.encode(key)
	if err != nil {
		return recordlock.Record{}, err
	}
	s.lookAtTTL()
	in := &dynamodb.GetItemInput{TableName: &s.opts.Table, Key: k, ConsistentRead: &fresh}
	out, err := call(ctx, s, "GetItem", in, s.api.GetItem)
	if err != nil {
		return recordlock.Record{}, err
	}
	return s.record(out.Item)
}

// Take implements recordlock.Store.
func (s *store) Take(ctx context.Context, key string, h recordlock.Holder, m driver.Mode) (now recordlock.Record, done bool, err error) {
	s.lookAtTTL()
	return s.write(ctx, key, s.taking(&h, m))
}

// Swap implements recordlock.Store. With [FailClosed] a vacant key has no item, as with the npm client.
func (s *store) Swap(ctx context.Context, key string, old, next recordlock.Record) (now recordlock.Record, done bool, err error) {
	v, ok := old.Version.(version)
	switch {
	case !ok:
		return now, false, fmt.Errorf("dynamolock: %v is not a version of this store", old.Version)
	case v.tokenless && len(next.Holders) == 0:
		x := &expression{}
		x.cond = x.unchanged(v)
		return s.write(ctx, key, x)
	case v.tokenless && s.opts.Mode != FailClosed && old.Holder(next.Holders[0].Grant) == nil:
		return now, false, &ItemError{Table: s.opts.Table, Attribute: attrToken, Reason: "is missing: the key is used with FailClosed"}
	case next.Token > maxWhole:
		return now, false, &ItemError{Table: s.opts.Table, Attribute: attrToken, Reason: "is the greatest"}
	}
	return s.write(ctx, key, s.replacing(v, &old, &next))
}

// Renew implements recordlock.Store.
func (s *store) Renew(ctx context.Context, key string, h recordlock.Holder, m driver.Mode) (now recordlock.Record, done bool, err error) {
	s.lookAtTTL()
	return s.write(ctx, key, s.renewing(&h, m))
}

// List implements recordlock.Store. It queries the table if the prefix contains a whole partition key and the separator, and scans it
// otherwise. It leaves out items of other programs, and of keys that no key string names. Corrupt items of locks become the error at
// the end.
func (s *store) List(ctx context.Context, prefix string) iter.Seq2[recordlock.Keyed, error] {
	return func(yield func(recordlock.Keyed, error) bool) {
		next, err := s.pages(prefix)
		var bad []error
		for more := err == nil; more && err == nil; {
			var items []attributes
			items, more, err = next(ctx)
			for _, attrs := range items {
				key, ok := s.opts.Keys.decode(attrs)
				if !ok || !strings.HasPrefix(key, prefix) || hasNoToken(attrs) && !isTokenless(attrs) {
					continue
				}
				rec, err := s.record(attrs)
				switch {
				case err != nil:
					bad = append(bad, fmt.Errorf("%q: %w", key, err))
				case !yield(recordlock.Keyed{Key: key, Record: rec}, nil):
					return
				}
			}
		}
		if err = errors.Join(append(bad, err)...); err != nil {
			yield(recordlock.Keyed{}, err)
		}
	}
}

// write sends one UpdateItem, or DeleteItem if there is nothing to update. If its condition fails, it returns the record in the way.
func (s *store) write(ctx context.Context, key string, x *expression) (now recordlock.Record, done bool, err error) {
	k, err := s.opts.Keys.encode(key)
	if err != nil {
		return now, false, err
	}
	var after attributes
	if update := x.update(); update != nil {
		var out *dynamodb.UpdateItemOutput
		out, err = call(ctx, s, "UpdateItem", &dynamodb.UpdateItemInput{
			TableName: &s.opts.Table, Key: k, ConditionExpression: &x.cond, UpdateExpression: update,
			ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
			ReturnValues:                        types.ReturnValueAllNew, // at no cost
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}, s.api.UpdateItem)
		if err == nil {
			after = out.Attributes
		}
	} else {
		_, err = call(ctx, s, "DeleteItem", &dynamodb.DeleteItemInput{
			TableName: &s.opts.Table, Key: k, ConditionExpression: &x.cond,
			ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}, s.api.DeleteItem)
	}
	if err != nil {
		now, err = s.inTheWay(ctx, key, err)
		return now, false, err
	}
	if now, err = s.record(after); err != nil { // it was carried out, and the answer makes no sense
		return now, false, &recordlock.Error{Class: recordlock.Unknown, Err: fmt.Errorf("the answer to UpdateItem: %w", err)}
	}
	return now, true, nil
}

// inTheWay returns the record that made a condition fail. Not every server sends it along, and none does if there was no item. If the
// read that follows fails, the write is not known to be refused: a wrapper of the SDK may have sent it twice.
func (s *store) inTheWay(ctx context.Context, key string, err error) (recordlock.Record, error) {
	var failed *types.ConditionalCheckFailedException
	switch {
	case !errors.As(err, &failed):
		return recordlock.Record{}, err
	case len(failed.Item) > 0:
		return s.record(failed.Item)
	}
	rec, err := s.Read(ctx, key, true)
	if e := (*recordlock.Error)(nil); errors.As(err, &e) {
		err = &recordlock.Error{Class: recordlock.Unknown, Err: e.Err}
	}
	return rec, err
}
