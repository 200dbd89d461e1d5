package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/logging"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/doctor"
	"github.com/holdfast-go/holdfast/dynamolock"
)

// dynamoDB is the engine, with the settings that only it has. Region, credentials and
// endpoint come from where the AWS SDK finds them.
type dynamoDB struct {
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

func (d *dynamoDB) addFlags(f *pflag.FlagSet) {
	f.StringVar(&d.table, "table", "", "DynamoDB: name or ARN of the table")
	f.StringVar(&d.partition, "partition-key", "id", "DynamoDB: NAME or NAME:TYPE of the partition key, with type S, N or B")
	f.StringVar(&d.sort, "sort-key", "", "DynamoDB: NAME or NAME:TYPE of the sort key, if the table has one; a key is then PARTITION/SORT")
	f.StringVar(&d.mode, "mode", "fail-open", "DynamoDB: fail-open (locks expire with their lease), fail-closed or fail-closed-fenced: all clients of a key must agree")
	f.DurationVar(&d.poll, "poll", 0, "DynamoDB: how often to look at a key while waiting for it (default 1s)")
	f.StringVar(&d.ttlAttribute, "ttl-attribute", "", "DynamoDB: attribute for DynamoDB's Time to Live, which deletes unused items (default: items stay)")
}

// options makes the library's options of the settings.
func (d *dynamoDB) options() (*dynamolock.Options, error) {
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

func (d *dynamoDB) named() bool { return d.table != "" }

func (d *dynamoDB) defaultLease() time.Duration { return dynamolock.DefaultLease }

// sdk returns the SDK's client. It sends nothing.
func (d *dynamoDB) sdk(ctx context.Context) (*dynamodb.Client, error) {
	c, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, fmt.Errorf("AWS settings: %w", err)
	}
	if c.Region == "" {
		return nil, usagef("DynamoDB needs a region: set AWS_REGION")
	}
	return dynamodb.NewFromConfig(c), nil
}

func (d *dynamoDB) connect(ctx context.Context, a *app, o connectOptions) (*client, error) {
	options, err := d.options()
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
	ddb, err := d.sdk(ctx)
	if err != nil {
		return nil, err
	}
	c, err := unlessRefused(ctx, endpointAddress(ddb.Options().BaseEndpoint), func(ctx context.Context) (*dynamolock.Client, error) {
		return dynamolock.New(ctx, ddb, options)
	})
	if err != nil {
		return nil, err
	}
	// DynamoDB tells of nothing. The looks are consistent reads, which cost twice: a read
	// of some replica may show what is older than what the read before has shown.
	lease := func() time.Duration { return c.Options().Lease }
	return &client{Client: c.Client, lease: lease, looks: looks{interval: 2 * time.Second}}, nil
}

func (d *dynamoDB) doctor(ctx context.Context, a *app, prefix string) (func(context.Context, func(doctor.Finding) error) error, error) {
	options, err := d.options()
	if err != nil {
		return nil, err
	}
	options.Lease, options.Logger = a.set.lease, a.log
	ddb, err := d.sdk(ctx)
	if err != nil {
		return nil, err
	}
	return doctor.DynamoDB{Client: ddb, Options: *options, Prefix: prefix, Timeout: a.set.timeout}.Examine, nil
}

// endpointAddress is the address of an endpoint that was named; none if it is AWS's
// own, or behind a proxy.
func endpointAddress(endpoint *string) []string {
	if endpoint == nil {
		return nil
	}
	u, err := url.Parse(*endpoint)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u}); proxy != nil || err != nil {
		return nil
	}
	port := u.Port()
	if port == "" {
		port = u.Scheme
	}
	return []string{net.JoinHostPort(u.Hostname(), port)}
}

// tableJSON is what "table create" tells.
type tableJSON struct {
	Table string `json:"table"`
	Ready bool   `json:"ready"`
}

func newTableCommand(a *app) *cobra.Command {
	table := &cobra.Command{
		Use:   "table",
		Short: "Set up a table for locks on DynamoDB",
		RunE: func(*cobra.Command, []string) error {
			return usagef("usage: holdfast table create")
		},
	}
	table.AddCommand(&cobra.Command{
		Use:   "create",
		Short: "Create the table, or check that it is fit for use",
		Long: `See to it that there is a DynamoDB table of the name --table with the keys
--partition-key and --sort-key: create it, with on-demand billing, or check the one
that is there. With --ttl-attribute, Time to Live is switched on. Wait until the
table can be used, for --timeout at most.`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.set.engine != "" && a.set.engine != "dynamodb" {
				return usagef("tables are DynamoDB's, and --engine is %s", a.set.engine)
			}
			d := &a.set.dynamodb
			options, err := d.options()
			if err != nil {
				return err
			}
			options.Lease = a.set.lease
			ctx, cancel := a.bounded(cmd.Context())
			defer cancel()
			ddb, err := d.sdk(ctx)
			if err != nil {
				return err
			}
			if err := dynamolock.CreateTable(ctx, ddb, options); err != nil {
				return err
			}
			if a.json() {
				return a.printJSON(tableJSON{Table: options.Table, Ready: true})
			}
			_, err = fmt.Fprintf(a.out, "table %s is ready\n", options.Table)
			return err
		},
	})
	return table
}
