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

// mostPages is how much of the table is looked at for items of other programs,
// in pages of 1 MB.
const mostPages = 16

// foreign looks for items that are none of a lock: they lack the guid that each
// lock has.
func (t *table) foreign(ctx context.Context) ([]Finding, error) {
	if t.denied["Scan"] {
		return only(ok(seePermissions))
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
		return only(ok(seePermissions))
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
