package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

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

// mostPages is how much of the table is looked at for items of other programs,
// in pages of 1 MB.
const mostPages = 16

// foreign looks for items that are none of a lock: they lack the guid that each
// lock has.
func (t *table) foreign(ctx context.Context) ([]Finding, error) {
	if t.denied["Scan"] {
		return nil, errUnseen
	}
	in := &dynamodb.ScanInput{
		TableName:                &t.Options.Table,
		FilterExpression:         aws.String("attribute_not_exists(#g)"),
		ExpressionAttributeNames: map[string]string{"#g": "guid"},
	}
	var strangers []string
	pages, all := 0, false
	for ; pages < mostPages && !all; pages++ {
		out, err := t.ddb.Scan(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("list items: %w", err)
		}
		for _, item := range out.Items {
			if name := t.name(item); strings.HasPrefix(name, t.Prefix) && !strings.Contains(name, probePrefix) {
				strangers = append(strangers, strconv.Quote(name))
			}
		}
		in.ExclusiveStartKey, all = out.LastEvaluatedKey, len(out.LastEvaluatedKey) == 0
	}
	part := "the table"
	if !all {
		part = fmt.Sprintf("the first %d MB of the table", pages)
	}
	if len(strangers) == 0 {
		return only(ok("there is nothing but locks in %s", part))
	}
	return only(warning("have a table for locks alone: a lock of such a key cannot be had, and Scan reads all",
		"%s of other programs in %s: %s", count(len(strangers), "item"), part, some(strangers)))
}

// name is the key of an item.
func (t *table) name(item map[string]types.AttributeValue) string {
	var parts []string
	for _, name := range []string{t.partition(), t.Options.Keys.Sort.Name} {
		switch v := item[name].(type) {
		case *types.AttributeValueMemberS:
			parts = append(parts, v.Value)
		case *types.AttributeValueMemberN:
			parts = append(parts, v.Value)
		case *types.AttributeValueMemberB:
			parts = append(parts, string(v.Value))
		}
	}
	return strings.Join(parts, "/")
}

// mostLeft is how many locks that never expire are listed.
const mostLeft = 20

// locks lists the locks that are held, and tells of those that never expire, and
// of those whose item is corrupt.
func (t *table) locks(ctx context.Context) ([]Finding, error) {
	if t.denied["Scan"] || t.denied["Query"] {
		return nil, errUnseen
	}
	held, left := 0, 0
	var findings []Finding
	for info, err := range t.client.List(ctx, t.Prefix) {
		switch {
		case errors.Is(err, dynamolock.ErrItem):
			findings = append(findings, problem("mend or delete the item while nobody uses the key", "a key cannot be had: %v", err))
			continue
		case err != nil:
			return nil, err
		}
		held++
		if info.Lease != 0 {
			continue
		}
		if left++; left > mostLeft {
			continue
		}
		since := "an unknown time"
		if !info.Since.IsZero() {
			since = info.Since.UTC().Format(time.RFC3339)
		}
		cure := t.command("break " + shell(info.Key))
		if info.Token != 0 {
			cure += " --token " + info.Token.String()
		}
		findings = append(findings, warning("if the holder is dead, "+cure, "%q is held by %q since %s, and never expires", info.Key, info.Owner, since))
	}
	if left > mostLeft {
		findings = append(findings, warning(t.command("ls"), "%d more locks never expire", left-mostLeft))
	}
	if len(findings) == 0 {
		return only(ok("%s held, each of which expires if its holder dies", count(held, "lock")))
	}
	return findings, nil
}
