package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

// A permission can be granted by a policy. It has a request that needs it and changes nothing, because the probe's key has no item yet.
type permission struct {
	action string // "dynamodb:" and this
	needed string // for what
	always bool   // locks do not work without it
	try    func(ctx context.Context, t *table) error
}

var permissions = []permission{
	{"GetItem", "every client", true, func(ctx context.Context, t *table) error {
		_, err := t.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.Options.Table, Key: t.item})
		return err
	}},
	{"UpdateItem", "every client", true, func(ctx context.Context, t *table) error { return t.vainUpdate(ctx) }},
	{"DeleteItem", "--mode fail-closed, and to break its locks", false, func(ctx context.Context, t *table) error {
		_, err := t.Client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &t.Options.Table, Key: t.item})
		return err
	}},
	{"Scan", "ls and doctor", false, func(ctx context.Context, t *table) error {
		_, err := t.Client.Scan(ctx, &dynamodb.ScanInput{TableName: &t.Options.Table, Limit: aws.Int32(1)})
		return err
	}},
	{"Query", "ls with a whole partition key", false, func(ctx context.Context, t *table) error {
		if t.Options.Keys.Sort.Name == "" {
			return nil // not needed
		}
		_, err := t.Client.Query(ctx, &dynamodb.QueryInput{
			TableName: &t.Options.Table, KeyConditionExpression: aws.String("#p = :p"),
			ExpressionAttributeNames:  map[string]string{"#p": t.partition},
			ExpressionAttributeValues: map[string]types.AttributeValue{":p": t.item[t.partition]},
		})
		return err
	}},
	{"ConditionCheckItem", "transactions with ConditionCheck", false, func(ctx context.Context, t *table) error {
		_, err := t.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{
			ConditionCheck: &types.ConditionCheck{
				TableName: &t.Options.Table, Key: t.item,
				ConditionExpression:      aws.String("attribute_not_exists(#p)"),
				ExpressionAttributeNames: map[string]string{"#p": t.partition},
			},
		}}})
		if api, is := answer(err); is && api.ErrorCode() == "UnknownOperationException" {
			return nil // an emulator without transactions has no policy either
		}
		return err
	}},
}

// errUnconditional is a fault of some emulators, with which no lock excludes others.
var errUnconditional = errors.New("a write whose condition does not hold succeeds")

// vainUpdate is a write whose condition cannot hold, because the probe's key has no item.
func (t *table) vainUpdate(ctx context.Context, options ...func(*dynamodb.Options)) error {
	_, err := t.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.Options.Table, Key: t.item,
		UpdateExpression:         aws.String("REMOVE #g"),
		ConditionExpression:      aws.String("attribute_exists(#p)"),
		ExpressionAttributeNames: map[string]string{"#p": t.partition, "#g": "guid"},
	}, options...)
	switch failed := (*types.ConditionalCheckFailedException)(nil); {
	case err == nil:
		return errUnconditional
	case errors.As(err, &failed):
		return nil
	}
	return err
}

// permissions makes each kind of request that clients make.
func (t *table) permissions(ctx context.Context) ([]Finding, error) {
	var findings []Finding
	for _, p := range permissions {
		err := p.try(ctx, t)
		switch {
		case err == nil:
		case errors.Is(err, errUnconditional):
			t.used = true // that has made an item
			return last(problem("use DynamoDB itself, or another emulator", "%v", err))
		case deniedCall(err):
			t.denied[p.action] = true
			findings = append(findings, p.missing(t.Options.Mode))
		default:
			return findings, fmt.Errorf("%s: %w", p.action, err)
		}
	}
	if len(findings) == 0 {
		return only(ok("every call that clients make is allowed"))
	}
	return findings, nil
}

// missing reports that a permission is not granted.
func (p permission) missing(mode dynamolock.Mode) Finding {
	cure := fmt.Sprintf("allow dynamodb:%s on the table to these credentials", p.action)
	const found = "dynamodb:%s is denied; it is for %s"
	if p.always || p.action == "DeleteItem" && mode == dynamolock.FailClosed {
		return problem(cure, found, p.action, p.needed)
	}
	return warning(cure+", if they are to do that", found, p.action, p.needed)
}

// maxLeft limits the listed locks that never expire or whose holders seem to be dead.
const maxLeft = 20

// locks counts the held locks, and reports those that never expire, those of holders that seem to be dead, and corrupt items.
func (t *table) locks(ctx context.Context) ([]Finding, error) {
	if t.denied["Scan"] || t.denied["Query"] {
		return nil, errUnseen
	}
	held, left := 0, 0
	var findings []Finding
	for info, err := range t.locker.List(ctx, t.Prefix) {
		switch {
		case errors.Is(err, dynamolock.ErrItem):
			findings = append(findings, problem("mend or delete the item while no program uses the key", "a key cannot be had: %v", err))
			continue
		case err != nil:
			return nil, err
		}
		held++
		for grant := range info.Each() {
			if grant.Lease != 0 && !grant.SeemsDead(time.Now()) {
				continue
			}
			if left++; left <= maxLeft {
				findings = append(findings, t.stuck(grant))
			}
		}
	}
	if left > maxLeft {
		findings = append(findings, warning(t.command("ls"), "%d more locks never expire, or seem to have dead holders", left-maxLeft))
	}
	if len(findings) == 0 {
		return only(ok("%s held, each of which expires if its holder dies", count(held, "lock")))
	}
	return findings, nil
}

// stuck reports a lock that never expires, or whose holder seems to be dead.
func (t *table) stuck(grant holdfast.Info) Finding {
	since := "an unknown time"
	if !grant.Since.IsZero() {
		since = grant.Since.UTC().Format(time.RFC3339)
	}
	cure := t.command("break " + shell(grant.Key))
	if grant.Token != 0 {
		cure += " --token " + grant.Token.String()
	}
	if grant.Lease == 0 {
		return warning("if the holder is dead, "+cure, "%q is held by %q since %s, and never expires", grant.Key, grant.Owner, since)
	}
	return warning("the next client that wants it takes it over after a lease; or, if the holder is dead, "+cure+" --now",
		"%q is held by %q since %s, which seems dead: it was last heard of at %s by its own clock, and its lease is %v",
		grant.Key, grant.Owner, since, grant.LastHeard.UTC().Format(time.RFC3339), grant.Lease)
}

// latency measures single writes that change nothing.
func (t *table) latency(ctx context.Context) ([]Finding, error) {
	if t.denied["UpdateItem"] {
		return nil, errUnseen
	}
	took, err := measure(func() error {
		return t.vainUpdate(ctx, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	})
	if err != nil {
		return nil, fmt.Errorf("UpdateItem: %w", err)
	}
	o := t.locker.Options()
	return only(judgeWrites(took, o.Heartbeat, o.Timeout))
}

// trial takes a lock as a program would. The examination deletes its item at the end.
func (t *table) trial(ctx context.Context) ([]Finding, error) {
	if t.denied["GetItem"] || t.denied["UpdateItem"] || t.denied["DeleteItem"] {
		return nil, errUnseen
	}
	t.used = true
	return tryLock(ctx, t.locker.Client, t.key, t.Timeout)
}
