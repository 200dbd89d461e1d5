package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/logging"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/doctor"
	"github.com/holdfast-go/holdfast/dynamolock"
)

// dynamoDB is the engine, with its own settings. The AWS SDK finds region, credentials and endpoint.
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

// options converts the settings to the library's options.
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

func (d *dynamoDB) about() about {
	return about{
		name: "DynamoDB", means: "table", lease: dynamolock.DefaultLease,
		values: map[string][]string{"mode": slices.Sorted(maps.Keys(modes))},
		fields: map[string]string{
			"Options.Lease":               "--lease",
			"Options.Table":               "--table",
			"Options.Poll":                "--poll",
			"Options.TTLAttribute":        "--ttl-attribute",
			"Options.Keys.Partition.Name": "--partition-key",
			"Options.Keys.Partition.Type": "--partition-key",
			"Options.Keys.Sort.Name":      "--sort-key",
			"Options.Keys.Sort.Type":      "--sort-key",
		},
	}
}

func (d *dynamoDB) named() bool { return d.table != "" }

func (d *dynamoDB) readEnv(func(string) (string, bool)) string { return "" }

func (d *dynamoDB) explain(err error) string {
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		return fmt.Sprintf("there is no table %q in this region: \"holdfast table create\" makes it", d.table)
	}
	text := err.Error()
	// Instance roles are the last source of credentials that the SDK tries.
	if _, why, found := strings.Cut(text, "get credentials: "); found && strings.Contains(why, "EC2 IMDS") {
		return fmt.Sprintf("no AWS credentials: set AWS_ACCESS_KEY_ID, AWS_PROFILE or a role (%s)", why)
	}
	if said := strings.Replace(text, "another mode than FailClosed", "another mode than --mode fail-closed", 1); said != text {
		return said
	}
	return ""
}

// open returns the SDK's client, and the library's options. It sends nothing.
func (d *dynamoDB) open(ctx context.Context, a *app) (*dynamodb.Client, *dynamolock.Options, error) {
	options, err := d.options()
	if err != nil {
		return nil, nil, err
	}
	options.Lease, options.Logger = a.set.lease, a.log
	c, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, nil, fmt.Errorf("AWS settings: %w", err)
	}
	if c.Region == "" {
		return nil, nil, usagef("DynamoDB needs a region: set AWS_REGION")
	}
	if hasFileKeys(c) {
		load := func() (aws.Config, error) {
			c, err := config.LoadDefaultConfig(context.Background(), config.WithLogger(logging.Nop{}))
			if err == nil && !hasFileKeys(c) { // the SDK would go on to the next source of credentials
				err = errors.New("no keys in the files")
			}
			return c, err
		}
		keys, err := newRenewed(load, cmp.Or(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), config.DefaultSharedCredentialsFilename()),
			cmp.Or(os.Getenv("AWS_CONFIG_FILE"), config.DefaultSharedConfigFilename()))
		if err != nil {
			return nil, nil, fmt.Errorf("AWS settings: %w", err)
		}
		c.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			return keys.get().Credentials.Retrieve(ctx)
		})
	}
	return dynamodb.NewFromConfig(c), options, nil
}

// hasFileKeys reports whether there are keys in the shared credentials or configuration file, which the SDK reads once.
func hasFileKeys(c aws.Config) bool {
	for _, source := range c.ConfigSources {
		if shared, ok := source.(config.SharedConfig); ok {
			return shared.Credentials.HasKeys() || shared.Source != nil && shared.Source.Credentials.HasKeys()
		}
	}
	return false
}

func (d *dynamoDB) connect(ctx context.Context, a *app, o connectOptions) (*client, error) {
	ddb, options, err := d.open(ctx, a)
	if err != nil {
		return nil, err
	}
	options.Owner, options.OnEvent = o.owner, o.onEvent
	if w := o.holds; w != nil {
		options.Lease, options.Margin = w.lease, w.margin
		if w.margin > w.lease/3 { // default heartbeats would leave no time for a second try
			options.Heartbeat, options.Timeout = w.lease/6, min(w.lease/8, 5*time.Second)
		}
	}
	c, err := unlessRefused(ctx, endpointAddress(ddb.Options().BaseEndpoint), func(ctx context.Context) (*dynamolock.Client, error) {
		return dynamolock.New(ctx, ddb, options)
	})
	if err != nil {
		return nil, err
	}
	lease := func() time.Duration { return c.Options().Lease }
	return &client{Client: c.Client, breakNow: c.BreakNow, lease: lease}, nil
}

func (d *dynamoDB) doctor(ctx context.Context, a *app, prefix string) (func(context.Context, func(doctor.Finding) error) error, error) {
	ddb, options, err := d.open(ctx, a)
	if err != nil {
		return nil, err
	}
	return doctor.DynamoDB{Client: ddb, Options: *options, Prefix: prefix, Timeout: a.set.timeout}.Examine, nil
}

// endpointAddress returns the address of a custom endpoint, or nothing for AWS's own endpoint or one behind a proxy.
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

// tableJSON is the output of "table create".
type tableJSON struct {
	Table string `json:"table"`
	Ready bool   `json:"ready"`
}

func (d *dynamoDB) commands(a *app) []*cobra.Command {
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
		Args:  takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.set.engine != "" && a.set.engine != d.about().choice() {
				return usagef("tables are DynamoDB's, and --engine is %s", a.set.engine)
			}
			if err := a.set.checkFor(d); err != nil {
				return err
			}
			ctx, cancel := a.bounded(cmd.Context())
			defer cancel()
			ddb, options, err := d.open(ctx, a)
			if err != nil {
				return err
			}
			if err := dynamolock.CreateTable(ctx, ddb, options); err != nil {
				return err
			}
			return a.print(tableJSON{Table: options.Table, Ready: true}, "table %s is ready", options.Table)
		},
	})
	return []*cobra.Command{table}
}
