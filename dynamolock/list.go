package dynamolock

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
)

// pages returns a function that reads the items of a List page by page, and
// reports whether there are more.
func (s *store) pages(prefix string) (func(context.Context) ([]attributes, bool, error), error) {
	keys := s.opts.Keys
	partition, sort, split := strings.Cut(prefix, keys.Separator)
	if keys.Sort.Name != "" && split && partition != "" {
		return s.queryPages(partition, sort)
	}
	x := &expression{}
	filter := x.expr("attribute_exists(#guid)")
	if prefix != "" {
		if keys.Partition.Type == types.ScalarAttributeTypeN {
			return nil, driver.Invalid("prefix", "keys of type N have no beginnings; only \"\" can be listed")
		}
		if partition = keys.beforeSeparator(prefix); partition != "" {
			begin, err := keys.Partition.encode("prefix", partition, maxPartition)
			if err != nil {
				return nil, err
			}
			filter += x.expr(" AND begins_with("+x.alias(aliasKey, keys.Partition.Name)+", ?)", begin)
		}
	}
	in := &dynamodb.ScanInput{
		TableName: &s.opts.Table, ConsistentRead: aws.Bool(true), FilterExpression: &filter,
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	}
	return func(ctx context.Context) ([]attributes, bool, error) {
		out, err := call(ctx, s, "Scan", in, s.api.Scan)
		if err != nil {
			return nil, true, err
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
		return out.Items, len(out.LastEvaluatedKey) > 0, nil
	}, nil
}

func (s *store) queryPages(partition, sort string) (func(context.Context) ([]attributes, bool, error), error) {
	keys := s.opts.Keys
	x := &expression{}
	p, err := keys.Partition.encode("prefix", partition, maxPartition)
	if err != nil {
		return nil, err
	}
	cond := x.expr(x.alias(aliasKey, keys.Partition.Name)+" = ?", p)
	if sort != "" {
		if keys.Sort.Type == types.ScalarAttributeTypeN {
			return nil, driver.Invalid("prefix", "keys of type N have no beginnings; only %q can be listed", partition+keys.Separator)
		}
		begin, err := keys.Sort.encode("prefix", sort, maxSort)
		if err != nil {
			return nil, err
		}
		cond += x.expr(" AND begins_with("+x.alias(aliasSort, keys.Sort.Name)+", ?)", begin)
	}
	in := &dynamodb.QueryInput{
		TableName: &s.opts.Table, ConsistentRead: aws.Bool(true), KeyConditionExpression: &cond,
		FilterExpression:         aws.String(x.expr("attribute_exists(#guid)")),
		ExpressionAttributeNames: x.names, ExpressionAttributeValues: x.values,
	}
	return func(ctx context.Context) ([]attributes, bool, error) {
		out, err := call(ctx, s, "Query", in, s.api.Query)
		if err != nil {
			return nil, true, err
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
		return out.Items, len(out.LastEvaluatedKey) > 0, nil
	}, nil
}
