package dynamolock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// Inspect implements driver.Driver.
func (b *engine) Inspect(ctx context.Context, key string) (driver.Info, error) {
	attrs, err := b.opts.Keys.encode(key)
	if err != nil {
		return driver.Info{}, err
	}
	var info driver.Info
	err = b.persist(ctx, func() error {
		i, err := b.get(ctx, attrs, true)
		if err != nil {
			return err
		}
		info = i.info(key)
		return nil
	})
	return info, err
}

// List implements driver.Driver. Keys that begin with a whole partition key
// and the separator are queried; for all else the table is scanned. Items of
// other programs, and of keys that cannot be named here, are left out; one that
// is a lock's but cannot be understood becomes the error at the end.
func (b *engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Info, error] {
	return func(yield func(driver.Info, error) bool) {
		next, err := b.pages(prefix)
		var bad error
		for more := err == nil; more; {
			if b.tasks.closing() {
				err = holdfast.ErrClosed
				break
			}
			var items []attributes
			err = b.persist(ctx, func() (err error) {
				items, more, err = next(ctx)
				return err
			})
			if err != nil {
				break
			}
			for _, attrs := range items {
				key, ok := b.opts.Keys.decode(attrs)
				if !ok || !strings.HasPrefix(key, prefix) {
					continue
				}
				i, err := decode(b.opts.Table, attrs)
				switch {
				case err != nil:
					bad = errors.Join(bad, fmt.Errorf("%q: %w", key, err))
				case i.held() && !yield(i.info(key), nil):
					return
				}
			}
		}
		if err = errors.Join(bad, err); err != nil {
			yield(driver.Info{}, err)
		}
	}
}

// pages returns a function that reads the items of a List page by page, and
// reports whether there are more.
func (b *engine) pages(prefix string) (func(context.Context) ([]attributes, bool, error), error) {
	keys := b.opts.Keys
	partition, sort, split := strings.Cut(prefix, keys.Separator)
	if keys.Sort.Name != "" && split && partition != "" {
		return b.queryPages(partition, sort)
	}
	e := &expression{}
	filter := "attribute_exists(" + e.name(attrGUID) + ")"
	if prefix != "" {
		if keys.Partition.Type == types.ScalarAttributeTypeN {
			return nil, driver.Invalid("prefix", "keys of type N have no beginnings; only \"\" can be listed")
		}
		if partition = keys.beforeSeparator(prefix); partition != "" {
			begin, err := keys.Partition.encode("prefix", partition, maxPartition)
			if err != nil {
				return nil, err
			}
			filter = all(filter, "begins_with("+e.alias(aliasKey, keys.Partition.Name)+", "+e.value(begin)+")")
		}
	}
	in := &dynamodb.ScanInput{
		TableName:                 &b.opts.Table,
		ConsistentRead:            aws.Bool(true),
		FilterExpression:          &filter,
		ExpressionAttributeNames:  e.names,
		ExpressionAttributeValues: e.values,
	}
	return func(ctx context.Context) ([]attributes, bool, error) {
		out, err := call(ctx, b, "Scan", nil, in, b.api.Scan)
		if err != nil {
			return nil, true, err
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
		return out.Items, len(out.LastEvaluatedKey) > 0, nil
	}, nil
}

func (b *engine) queryPages(partition, sort string) (func(context.Context) ([]attributes, bool, error), error) {
	keys := b.opts.Keys
	e := &expression{}
	p, err := keys.Partition.encode("prefix", partition, maxPartition)
	if err != nil {
		return nil, err
	}
	cond := e.alias(aliasKey, keys.Partition.Name) + " = " + e.value(p)
	if sort != "" {
		if keys.Sort.Type == types.ScalarAttributeTypeN {
			return nil, driver.Invalid("prefix", "keys of type N have no beginnings; only %q can be listed", partition+keys.Separator)
		}
		s, err := keys.Sort.encode("prefix", sort, maxSort)
		if err != nil {
			return nil, err
		}
		cond = all(cond, "begins_with("+e.alias("#sort", keys.Sort.Name)+", "+e.value(s)+")")
	}
	in := &dynamodb.QueryInput{
		TableName:                 &b.opts.Table,
		ConsistentRead:            aws.Bool(true),
		KeyConditionExpression:    &cond,
		FilterExpression:          aws.String("attribute_exists(" + e.name(attrGUID) + ")"),
		ExpressionAttributeNames:  e.names,
		ExpressionAttributeValues: e.values,
	}
	return func(ctx context.Context) ([]attributes, bool, error) {
		out, err := call(ctx, b, "Query", nil, in, b.api.Query)
		if err != nil {
			return nil, true, err
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
		return out.Items, len(out.LastEvaluatedKey) > 0, nil
	}, nil
}
