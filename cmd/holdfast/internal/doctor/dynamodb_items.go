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

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

// A permission is what a policy can grant, with a request that needs it and changes
// nothing: it concerns the probe's key, which has no item yet.
type permission struct {
	action string // "dynamodb:" and this
	needed string // for what
	always bool   // locks do not work without it
	try    func(ctx context.Context, t *table) error
}

var permissions = []permission{
	{"GetItem", "every client", true, func(ctx context.Context, t *table) error {
		_, err := t.ddb.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.Options.Table, Key: t.item})
		return err
	}},
	{"UpdateItem", "every client", true, func(ctx context.Context, t *table) error { return t.vainUpdate(ctx) }},
	{"DeleteItem", "--mode fail-closed, and to break its locks", false, func(ctx context.Context, t *table) error {
		_, err := t.ddb.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &t.Options.Table, Key: t.item})
		return err
	}},
	{"Scan", "ls and doctor", false, func(ctx context.Context, t *table) error {
		_, err := t.ddb.Scan(ctx, &dynamodb.ScanInput{TableName: &t.Options.Table, Limit: aws.Int32(1)})
		return err
	}},
	{"Query", "ls with a whole partition key", false, func(ctx context.Context, t *table) error {
		if t.Options.Keys.Sort.Name == "" {
			return nil // not needed
		}
		_, err := t.ddb.Query(ctx, &dynamodb.QueryInput{
			TableName: &t.Options.Table, KeyConditionExpression: aws.String("#p = :p"),
			ExpressionAttributeNames:  map[string]string{"#p": t.partition},
			ExpressionAttributeValues: map[string]types.AttributeValue{":p": t.item[t.partition]},
		})
		return err
	}},
	{"ConditionCheckItem", "transactions with ConditionCheck", false, func(ctx context.Context, t *table) error {
		_, err := t.ddb.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{
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

// vainUpdate is a write whose condition cannot hold: the probe's key has no item.
func (t *table) vainUpdate(ctx context.Context, options ...func(*dynamodb.Options)) error {
	_, err := t.ddb.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.Options.Table, Key: t.item,
		UpdateExpression:         aws.String("REMOVE #g"),
		ConditionExpression:      aws.String("attribute_exists(#p)"),
		ExpressionAttributeNames: map[string]string{"#p": t.partition, "#g": "guid"},
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
		switch {
		case err == nil:
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

// maxPages is how much of the table is searched for items of other programs, in pages of 1 MB.
const maxPages = 16

// notLocks is true of items of other programs: they lack the guid of a lock, or all else that one has.
const notLocks = "attribute_not_exists(#g) OR attribute_not_exists(#t) AND attribute_not_exists(#l) AND attribute_not_exists(#a)" +
	" AND NOT (attribute_type(#g, :b) AND size(#g) = :n AND attribute_type(#o, :s))"

// foreign looks for items of other programs.
func (t *table) foreign(ctx context.Context) ([]Finding, error) {
	if t.denied["Scan"] {
		return nil, errUnseen
	}
	in := &dynamodb.ScanInput{
		TableName:        &t.Options.Table,
		FilterExpression: aws.String(notLocks),
		ExpressionAttributeNames: map[string]string{
			"#g": "guid", "#o": "owner", "#t": "fencingToken", "#l": "leaseDurationMs", "#a": "lockAcquiredTimeUnixMs",
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":b": &types.AttributeValueMemberS{Value: "B"}, ":s": &types.AttributeValueMemberS{Value: "S"},
			":n": &types.AttributeValueMemberN{Value: "64"},
		},
	}
	var strangers []string
	pages, all := 0, false
	for ; pages < maxPages && !all; pages++ {
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
	for _, name := range []string{t.partition, t.Options.Keys.Sort.Name} {
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

// maxLeft is how many locks that never expire, or whose holders seem to be dead, are listed.
const maxLeft = 20

// locks counts the held locks, and reports those that never expire, those of holders that seem to be dead, and corrupt items.
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

// latency measures single writes that change nothing: one must get through in time per heartbeat.
func (t *table) latency(ctx context.Context) ([]Finding, error) {
	if t.denied["UpdateItem"] {
		return nil, errUnseen
	}
	once := func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }
	var writes latencies
	for range writeProbes {
		began := time.Now()
		if err := t.vainUpdate(ctx, once); err != nil {
			return nil, fmt.Errorf("UpdateItem: %w", err)
		}
		writes = append(writes, time.Since(began))
	}
	o := t.client.Options()
	return only(judgeCalls(writes, o.Heartbeat, o.Timeout))
}

func judgeCalls(writes latencies, heartbeat, limit time.Duration) Finding {
	told := fmt.Sprintf("writes took %v; a lock is renewed once per %v, and a request is given up after %v", writes, figure(heartbeat), figure(limit))
	const cure = "use the region that is nearest, see to throttling (CloudWatch: ThrottledRequests), or give a longer --lease"
	switch {
	case writes.worst() >= limit:
		return problem(cure, "%s", told)
	case writes.worst() >= limit/2:
		return warning(cure, "%s", told)
	}
	return ok("%s", told)
}

// trial takes a lock of its own, as a program would. Its item is deleted at the end.
func (t *table) trial(ctx context.Context) ([]Finding, error) {
	if t.denied["GetItem"] || t.denied["UpdateItem"] || t.denied["DeleteItem"] {
		return nil, errUnseen
	}
	t.used = true
	f, err := tryLock(ctx, t.client.Client, t.key, t.Timeout)
	t.present = err == nil && t.Options.Mode != dynamolock.FailClosed // which keeps no item
	if err != nil {
		return nil, err
	}
	return only(f)
}

// reason checks that a write whose condition does not hold returns the item, which the
// trial has left. Otherwise each such write costs another read.
func (t *table) reason(ctx context.Context) ([]Finding, error) {
	if !t.present {
		return only(skipped("see to the permissions, or to what keeps a lock from leaving an item", "not looked at, for want of an item"))
	}
	_, err := t.ddb.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.Options.Table, Key: t.item,
		UpdateExpression:                    aws.String("REMOVE #g"),
		ConditionExpression:                 aws.String("attribute_not_exists(#p)"),
		ExpressionAttributeNames:            map[string]string{"#p": t.partition, "#g": "guid"},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	var failed *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return only(problem("use DynamoDB itself, or another emulator", "a write whose condition does not hold succeeds"))
	case !errors.As(err, &failed):
		return nil, fmt.Errorf("UpdateItem: %w", err)
	case len(failed.Item) == 0:
		return only(ok("a write whose condition does not hold does not tell why, as DynamoDB's would: that costs a read more"))
	}
	return only(ok("a write whose condition does not hold tells why"))
}

// farApart is the clock offset from which on signatures are refused.
const farApart = 5 * time.Minute

// clock compares the wall clocks, because signatures contain the time.
func (t *table) clock(context.Context) ([]Finding, error) {
	_, clock, _ := t.wire.seen()
	if !clock.known {
		return only(skipped("see whether this machine's clock is set (NTP): signatures contain the time", "the answers do not tell the time"))
	}
	return only(judgeClock(clock))
}

func judgeClock(c clock) Finding {
	if c.ahead.Abs() >= farApart {
		return problem("set the clock of this machine (NTP)",
			"the clock of DynamoDB differs from this machine's by %v: signatures are refused from %v on", figure(c.ahead.Abs()), farApart)
	}
	return c.skew("DynamoDB")
}
