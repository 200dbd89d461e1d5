package dynamoserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	// DefaultKey is the partition key, of type S, of a table created without keys.
	DefaultKey = "id"
	// tablePrefix marks our tables, for the cleanup of an AWS account after a crash.
	tablePrefix = "holdfast-test-"
	// tablePatience bounds the creation of a table. AWS needs some 10 seconds.
	tablePatience = 2 * time.Minute
)

// Key is one key of a table.
type Key struct {
	Name string
	Type types.ScalarAttributeType // default S
}

// CreateTable creates a table with a unique name, and returns when it is active. The keys are the partition key and
// optionally a sort key; the default is a partition key called id. drop deletes the table; it returns nil if the table is
// already gone.
func (t *Target) CreateTable(ctx context.Context, keys ...Key) (name string, drop func(context.Context) error, err error) {
	ctx, cancel := context.WithTimeout(ctx, tablePatience)
	defer cancel()
	if len(keys) == 0 {
		keys = []Key{{Name: DefaultKey}}
	}
	name = tablePrefix + strings.ToLower(rand.Text()[:16])
	in := &dynamodb.CreateTableInput{TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest}
	for i, k := range keys {
		if k.Type == "" {
			k.Type = types.ScalarAttributeTypeS
		}
		role := types.KeyTypeHash
		if i > 0 {
			role = types.KeyTypeRange
		}
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String(k.Name), KeyType: role})
		in.AttributeDefinitions = append(in.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: aws.String(k.Name), AttributeType: k.Type})
	}
	c := t.Client()
	if _, err := c.CreateTable(ctx, in); err != nil {
		return "", nil, fmt.Errorf("create table %s: %w", name, err)
	}
	drop = func(ctx context.Context) error {
		_, err := c.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(name)})
		var gone *types.ResourceNotFoundException
		if err != nil && !errors.As(err, &gone) {
			return fmt.Errorf("delete table %s: %w", name, err)
		}
		return nil
	}
	active := dynamodb.NewTableExistsWaiter(c, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 10*time.Millisecond, time.Second
	})
	if err := active.Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(name)}, tablePatience); err != nil {
		return "", nil, errors.Join(fmt.Errorf("table %s: %w", name, err), drop(context.WithoutCancel(ctx)))
	}
	return name, drop, nil
}
