package dynamoserver

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// features are the features that some servers lack.
type features struct {
	transactions, timeToLive bool
}

var allFeatures = features{transactions: true, timeToLive: true}

// Transactions reports whether the service supports TransactWriteItems.
func (t *Target) Transactions() bool { return t.features.transactions }

// TimeToLive reports whether the service supports UpdateTimeToLive.
func (t *Target) TimeToLive() bool { return t.features.timeToLive }

// probe tries each feature on a table of its own.
func probe(ctx context.Context, t *Target) (f features, err error) {
	c := t.Client()
	table, drop, err := t.CreateTable(ctx)
	if err != nil {
		return f, err
	}
	defer func() {
		if dropErr := drop(context.WithoutCancel(ctx)); err == nil {
			err = dropErr
		}
	}()
	item := map[string]types.AttributeValue{DefaultKey: &types.AttributeValueMemberS{Value: "probe"}}
	_, err = c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: aws.String(table), Item: item}},
	}})
	if f.transactions, err = known(err); err != nil {
		return f, err
	}
	_, err = c.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(table),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expires"), Enabled: aws.Bool(true)},
	})
	f.timeToLive, err = known(err)
	return f, err
}

// known reports whether an operation's error shows that the server supports the
// operation.
func known(err error) (bool, error) {
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "UnknownOperationException" {
		return false, nil
	}
	return err == nil, err
}
