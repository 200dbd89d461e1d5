package dynamoserver

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Transactions reports whether the service supports TransactWriteItems. It asks for a write to a table that does not exist.
func (t *Target) Transactions() bool {
	item := map[string]types.AttributeValue{DefaultKey: &types.AttributeValueMemberS{Value: "probe"}}
	_, err := t.Client().TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: aws.String(tablePrefix + "none"), Item: item}},
	}})
	var api smithy.APIError
	return !errors.As(err, &api) || api.ErrorCode() != "UnknownOperationException"
}
