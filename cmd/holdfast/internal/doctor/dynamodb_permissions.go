package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/dynamolock"
)

// A permission is what a policy can grant, and a request that needs it and
// changes nothing, whoever makes it: it is about the probe's key, which has no
// item yet.
type permission struct {
	action string // "dynamodb:" and this
	needed string // for what
	always bool   // locks do not work without it
	try    func(ctx context.Context, t *table) error
}

var permissions = []permission{
	{"GetItem", "every client", true, func(ctx context.Context, t *table) error {
		_, err := t.ddb.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.Options.Table, Key: t.key.item})
		return err
	}},
	{"UpdateItem", "every client", true, func(ctx context.Context, t *table) error { return t.vainUpdate(ctx) }},
	{"DeleteItem", "--mode fail-closed, and to break its locks", false, func(ctx context.Context, t *table) error {
		_, err := t.ddb.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &t.Options.Table, Key: t.key.item})
		return err
	}},
	{"Scan", "ls and doctor", false, func(ctx context.Context, t *table) error {
		_, err := t.ddb.Scan(ctx, &dynamodb.ScanInput{TableName: &t.Options.Table, Limit: aws.Int32(1)})
		return err
	}},
	{"Query", "ls with a whole partition key", false, func(ctx context.Context, t *table) error {
		if t.Options.Keys.Sort.Name == "" {
			return nil // nobody does
		}
		partition := t.Options.Keys.Partition.Name
		_, err := t.ddb.Query(ctx, &dynamodb.QueryInput{
			TableName: &t.Options.Table, KeyConditionExpression: aws.String("#p = :p"),
			ExpressionAttributeNames:  map[string]string{"#p": partition},
			ExpressionAttributeValues: map[string]types.AttributeValue{":p": t.key.item[partition]},
		})
		return err
	}},
	{"ConditionCheckItem", "transactions with ConditionCheck", false, func(ctx context.Context, t *table) error {
		_, err := t.ddb.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{
			ConditionCheck: &types.ConditionCheck{
				TableName: &t.Options.Table, Key: t.key.item,
				ConditionExpression:      aws.String("attribute_not_exists(#p)"),
				ExpressionAttributeNames: map[string]string{"#p": t.partition()},
			},
		}}})
		if api, is := answer(err); is && api.ErrorCode() == "UnknownOperationException" {
			return nil // an emulator without transactions; no policy either
		}
		return err
	}},
}

// partition is the name of the partition key.
func (t *table) partition() string {
	if name := t.Options.Keys.Partition.Name; name != "" {
		return name
	}
	return "id"
}

// vainUpdate is a write of which the condition cannot hold: the probe's key has
// no item.
func (t *table) vainUpdate(ctx context.Context, options ...func(*dynamodb.Options)) error {
	_, err := t.ddb.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.Options.Table, Key: t.key.item,
		UpdateExpression:         aws.String("REMOVE #g"),
		ConditionExpression:      aws.String("attribute_exists(#p)"),
		ExpressionAttributeNames: map[string]string{"#p": t.partition(), "#g": "guid"},
	}, options...)
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return nil
	}
	return err
}

// permissions makes each kind of request that clients make.
func (t *table) permissions(ctx context.Context) ([]Finding, error) {
	var findings []Finding
	for _, p := range permissions {
		err := p.try(ctx, t)
		if err == nil {
			continue
		}
		if !deniedCall(err) {
			return findings, fmt.Errorf("%s: %w", p.action, err)
		}
		t.denied[p.action] = true
		findings = append(findings, p.missing(t.Options.Mode))
	}
	if len(findings) == 0 {
		return only(ok("every call that clients make is allowed"))
	}
	return findings, nil
}

// missing says what it means that a permission is not granted.
func (p permission) missing(mode dynamolock.Mode) Finding {
	cure := fmt.Sprintf("allow dynamodb:%s on the table to these credentials", p.action)
	const found = "dynamodb:%s is denied; it is for %s"
	if p.always || p.action == "DeleteItem" && mode == dynamolock.FailClosed {
		return problem(cure, found, p.action, p.needed)
	}
	return warning(cure+", if they are to do that", found, p.action, p.needed)
}
