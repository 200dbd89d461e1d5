package dynamofake

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// UpdateItem changes or creates an item, as [dynamodb.Client.UpdateItem].
func (c *Client) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return do(ctx, c, "UpdateItem", in, options, c.db.updateItem, "TableName", "Key")
}

// DeleteItem removes an item, as [dynamodb.Client.DeleteItem].
func (c *Client) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, options ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return do(ctx, c, "DeleteItem", in, options, c.db.deleteItem, "TableName", "Key")
}

// GetItem reads an item, as [dynamodb.Client.GetItem].
func (c *Client) GetItem(ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return do(ctx, c, "GetItem", in, options, c.db.getItem, "TableName", "Key")
}

// Query reads a page of a partition, as [dynamodb.Client.Query].
func (c *Client) Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return do(ctx, c, "Query", in, options, c.db.query, "TableName")
}

// Scan reads a page of a table, as [dynamodb.Client.Scan].
func (c *Client) Scan(ctx context.Context, in *dynamodb.ScanInput, options ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return do(ctx, c, "Scan", in, options, c.db.scan, "TableName")
}

// TransactWriteItems does several writes, or none, as [dynamodb.Client.TransactWriteItems].
func (c *Client) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return do(ctx, c, "TransactWriteItems", in, options, c.db.transactWriteItems, "TransactItems")
}

// CreateTable creates a table, as [dynamodb.Client.CreateTable].
func (c *Client) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, options ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	return do(ctx, c, "CreateTable", in, options, c.db.createTable, "TableName")
}

// DescribeTable tells the state of a table, as [dynamodb.Client.DescribeTable].
func (c *Client) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, options ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return do(ctx, c, "DescribeTable", in, options, c.db.describeTable, "TableName")
}

// UpdateTimeToLive enables or disables the time to live, as [dynamodb.Client.UpdateTimeToLive].
func (c *Client) UpdateTimeToLive(ctx context.Context, in *dynamodb.UpdateTimeToLiveInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	return do(ctx, c, "UpdateTimeToLive", in, options, c.db.updateTimeToLive, "TableName", "TimeToLiveSpecification")
}

// DescribeTimeToLive tells whether a time to live is enabled, as [dynamodb.Client.DescribeTimeToLive].
func (c *Client) DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, options ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return do(ctx, c, "DescribeTimeToLive", in, options, c.db.describeTimeToLive, "TableName")
}
