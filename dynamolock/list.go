package dynamolock

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// pages returns a function that reads the items of a List page by page, and reports whether there are more. It queries the partition if
// the prefix names one. Otherwise it scans the table, and the caller compares the keys: a filter would not make a scan cheaper.
func (s *store) pages(prefix string) (func(context.Context) ([]attributes, bool, error), error) {
	keys, x := &s.opts.Keys, &expression{}
	filter, consistent := x.expr("attribute_exists(#guid)"), aws.Bool(true)
	partition, sort, query := prefix, "", false
	if keys.Sort.Name != "" {
		partition, sort, query = strings.Cut(prefix, keys.Separator)
	}
	var p types.AttributeValue
	if query = query && partition != ""; query || partition != "" && keys.Partition.Type != types.ScalarAttributeTypeN {
		var err error
		if p, err = keys.Partition.encode("prefix", partition, maxPartition); err != nil {
			return nil, err
		}
	}
	if !query {
		in := &dynamodb.ScanInput{
			TableName: &s.opts.Table, ConsistentRead: consistent, FilterExpression: &filter, ExpressionAttributeNames: x.names,
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
	cond := x.expr(x.alias(aliasKey, keys.Partition.Name)+" = ?", p)
	if sort != "" && keys.Sort.Type != types.ScalarAttributeTypeN {
		begin, err := keys.Sort.encode("prefix", sort, maxSort)
		if err != nil {
			return nil, err
		}
		cond += x.expr(" AND begins_with("+x.alias(aliasSort, keys.Sort.Name)+", ?)", begin)
	}
	in := &dynamodb.QueryInput{
		TableName: &s.opts.Table, ConsistentRead: consistent, KeyConditionExpression: &cond, FilterExpression: &filter,
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
