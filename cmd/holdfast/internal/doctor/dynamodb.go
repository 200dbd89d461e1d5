package doctor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

// DynamoDB says what to examine.
type DynamoDB struct {
	Client  *dynamodb.Client
	Options dynamolock.Options
	Prefix  string        // of the keys to look at
	Timeout time.Duration // for each check
}

// dynamoChecks are the checks in order: each may rely on the findings of earlier ones.
var dynamoChecks = []check[*table]{
	{"credentials", (*table).credentials},
	{"table", (*table).describe},
	{"clock", (*table).clock},
	{"schema", (*table).schema},
	{"replicas", (*table).replicas},
	{"ttl", (*table).timeToLive},
	{"permissions", (*table).permissions},
	{"latency", (*table).latency},
	{"lock", (*table).trial},
	{"locks", (*table).locks},
}

// Examine runs the checks and reports each finding at once. It fails if ctx ends, if report fails, or with holdfast.ErrInvalid if the
// settings make no sense.
func (d DynamoDB) Examine(ctx context.Context, report func(Finding) error) error {
	t := &table{DynamoDB: d, denied: make(map[string]bool), partition: cmp.Or(d.Options.Keys.Partition.Name, "id")}
	t.key, t.item = newProbeKey(d.Options.Keys, d.Prefix)
	if err := valid(func(ctx context.Context) error { _, err := dynamolock.New(ctx, t.Client, &t.Options); return err }); err != nil {
		return err
	}
	defer t.close()
	return examine(ctx, examination{timeout: d.Timeout, report: report, refused: refusedByDynamoDB}, t, dynamoChecks)
}

// A table is what is examined.
type table struct {
	DynamoDB
	partition   string // name of the partition key
	description *types.TableDescription
	ahead       *time.Duration // of this machine's clock is DynamoDB's; nil if unknown
	locker      *dynamolock.Client
	key         string // of the probe
	item        map[string]types.AttributeValue
	used        bool // the probe may have an item

	denied map[string]bool // calls that are not permitted
}

// close ends the client, which waits until abandoned calls are undone, and removes the probe's item.
func (t *table) close() {
	ctx, cancel := cleaning(t.Timeout)
	defer cancel()
	if t.locker != nil {
		_ = t.locker.Close(ctx)
	}
	if t.used {
		_, _ = t.Client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &t.Options.Table, Key: t.item})
	}
}

// deniedCall reports whether a policy forbids a call.
func deniedCall(err error) bool {
	api, is := answer(err)
	return is && slices.Contains([]string{"AccessDeniedException", "AccessDenied", "NotAuthorized"}, api.ErrorCode())
}

// refusedByDynamoDB reports whether DynamoDB has answered with an error.
func refusedByDynamoDB(err error) bool {
	_, is := answer(err)
	return is || errors.Is(err, holdfast.ErrDenied)
}

func answer(err error) (smithy.APIError, bool) {
	var api smithy.APIError
	is := errors.As(err, &api)
	return api, is
}

// newProbeKey returns a unique key below a prefix, on which policies may depend, and the key attributes of its item.
func newProbeKey(keys dynamolock.Keys, prefix string) (string, map[string]types.AttributeValue) {
	name := cmp.Or(keys.Partition.Name, "id")
	if keys.Sort.Name == "" {
		text := probeText(keys.Partition, prefix)
		return text, map[string]types.AttributeValue{name: keyValue(keys.Partition, text)}
	}
	partition, sort, found := strings.Cut(prefix, "/")
	if !found || partition == "" {
		partition, sort = probeText(keys.Partition, partition), ""
	}
	sort = probeText(keys.Sort, sort)
	return partition + "/" + sort, map[string]types.AttributeValue{
		name: keyValue(keys.Partition, partition), keys.Sort.Name: keyValue(keys.Sort, sort),
	}
}

// probeText is a random text after a prefix, or a random number.
func probeText(attr dynamolock.KeyAttr, prefix string) string {
	name := probeName()
	if attr.Type != types.ScalarAttributeTypeN {
		return prefix + name
	}
	digits := strings.Map(func(r rune) rune { return '0' + r%10 }, strings.TrimPrefix(name, probePrefix))
	return "1" + digits // no leading zero
}

func keyValue(attr dynamolock.KeyAttr, text string) types.AttributeValue {
	switch attr.Type {
	case types.ScalarAttributeTypeN:
		return &types.AttributeValueMemberN{Value: text}
	case types.ScalarAttributeTypeB:
		return &types.AttributeValueMemberB{Value: []byte(text)}
	}
	return &types.AttributeValueMemberS{Value: text}
}
