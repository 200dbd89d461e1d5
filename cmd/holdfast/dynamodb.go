package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/dynamolock"
)

// dynamoSettings are those that only DynamoDB has. Region, credentials and
// endpoint come from where the AWS SDK finds them.
type dynamoSettings struct {
	table        string
	partition    string
	sort         string
	mode         string
	poll         time.Duration
	ttlAttribute string
}

var modes = map[string]dynamolock.Mode{
	"fail-open":          dynamolock.FailOpen,
	"fail-closed":        dynamolock.FailClosed,
	"fail-closed-fenced": dynamolock.FailClosedFenced,
}

func (d *dynamoSettings) addFlags(f *pflag.FlagSet) {
	f.StringVar(&d.table, "table", "", "DynamoDB: name or ARN of the table")
	f.StringVar(&d.partition, "partition-key", "id", "DynamoDB: NAME or NAME:TYPE of the partition key, with type S, N or B")
	f.StringVar(&d.sort, "sort-key", "", "DynamoDB: NAME or NAME:TYPE of the sort key, if the table has one; a key is then PARTITION/SORT")
	f.StringVar(&d.mode, "mode", "fail-open", "DynamoDB: fail-open (locks expire with their lease), fail-closed or fail-closed-fenced: all who use a key must agree")
	f.DurationVar(&d.poll, "poll", 0, "DynamoDB: time from one look at a key that is waited for to the next (default 1s)")
	f.StringVar(&d.ttlAttribute, "ttl-attribute", "", "DynamoDB: attribute for DynamoDB's Time to Live, which deletes unused items (default: items stay)")
	fromEnv(f, "table", "HOLDFAST_TABLE")
	fromEnv(f, "partition-key", "HOLDFAST_PARTITION_KEY")
	fromEnv(f, "sort-key", "HOLDFAST_SORT_KEY")
	fromEnv(f, "mode", "HOLDFAST_MODE")
	fromEnv(f, "poll", "HOLDFAST_POLL")
	fromEnv(f, "ttl-attribute", "HOLDFAST_TTL_ATTRIBUTE")
}

// options makes the library's options of the settings.
func (d *dynamoSettings) options() (*dynamolock.Options, error) {
	if d.table == "" {
		return nil, usagef("DynamoDB needs --table (HOLDFAST_TABLE)")
	}
	mode, ok := modes[d.mode]
	if !ok {
		return nil, usagef("--mode: %q is none of fail-open, fail-closed and fail-closed-fenced", d.mode)
	}
	o := &dynamolock.Options{Table: d.table, Mode: mode, Poll: d.poll, TTLAttribute: d.ttlAttribute}
	var err error
	if o.Keys.Partition, err = keyAttr("--partition-key", d.partition); err != nil {
		return nil, err
	}
	if d.sort != "" {
		o.Keys.Sort, err = keyAttr("--sort-key", d.sort)
	}
	return o, err
}

func keyAttr(flag, text string) (dynamolock.KeyAttr, error) {
	name, kind, typed := strings.Cut(text, ":")
	if name == "" || typed && kind == "" {
		return dynamolock.KeyAttr{}, usagef("%s: %q is neither NAME nor NAME:TYPE", flag, text)
	}
	return dynamolock.KeyAttr{Name: name, Type: types.ScalarAttributeType(kind)}, nil
}

// dynamoDB returns the SDK's client. It sends nothing.
func (a *app) dynamoDB(ctx context.Context) (*dynamodb.Client, error) {
	c, err := config.LoadDefaultConfig(ctx, config.WithLogger(discard{}))
	if err != nil {
		return nil, fmt.Errorf("AWS settings: %w", err)
	}
	if c.Region == "" {
		return nil, usagef("DynamoDB needs a region: set AWS_REGION")
	}
	return dynamodb.NewFromConfig(c), nil
}

// openDynamoDB connects.
func (a *app) openDynamoDB(ctx context.Context, o connectOptions) (*client, error) {
	options, err := a.set.dynamoSettings.options()
	if err != nil {
		return nil, err
	}
	options.Lease = a.set.lease
	options.Owner, options.Logger, options.Hooks = o.owner, a.log, o.hooks
	if w := o.holds; w != nil {
		options.Lease, options.Margin = w.lease, w.margin
		if w.margin > w.lease/3 { // then the usual pace leaves no time for a second try
			options.Heartbeat, options.Timeout = w.lease/6, min(w.lease/8, 5*time.Second)
		}
	}
	ddb, err := a.dynamoDB(ctx)
	if err != nil {
		return nil, err
	}
	c, err := unlessRefused(ctx, endpointAddress(ddb.Options().BaseEndpoint), func(ctx context.Context) (*dynamolock.Client, error) {
		return dynamolock.New(ctx, ddb, options)
	})
	if err != nil {
		return nil, err
	}
	return &client{Client: c.Client, dynamo: c}, nil
}
