package dynamolock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// CreateTable makes sure that there is a table for clients with these options, of which
// only Table, Keys, TTLAttribute, Timeout and OpenTimeout matter. It creates a missing
// table, with on-demand billing. It checks an existing one and does not change it, except
// that it switches Time to Live on if TTLAttribute is set. It waits until the table is
// active, for as long as ctx or [Options.OpenTimeout] allows. Errors are those of [New].
func CreateTable(ctx context.Context, ddb TableAPI, options *Options) error {
	if err := createTable(ctx, ddb, options); err != nil {
		return fmt.Errorf("dynamolock: create table: %w", err)
	}
	return nil
}

func createTable(ctx context.Context, ddb TableAPI, options *Options) error {
	if ddb == nil {
		return driver.Invalid("ddb", "it is nil")
	}
	o, err := filled(options)
	if err != nil {
		return err
	}
	ctx, cancel := o.open(ctx)
	defer cancel()
	t := &table{ddb: ddb, name: o.Table, keys: o.Keys, timeout: o.Timeout}
	err = t.create(ctx, ddb)
	if err == nil {
		err = t.wait(ctx)
	}
	if err == nil {
		err = t.setTTL(ctx, ddb, o.TTLAttribute)
	}
	return ended(ctx, err)
}

// A describer can tell whether a table is fit for use.
type describer interface {
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
}

// table is a table to be created or checked.
type table struct {
	ddb     describer
	name    string
	keys    Keys
	timeout time.Duration
	heard   func(time.Duration) // called with what each answer took; may be nil
	dated   func(out any)       // called with outputs; may be nil
	log     *slog.Logger        // may be nil
	created bool                // the service has confirmed that it exists
}

// try sends one request, again and again while its failures are transient, and
// ctx allows.
func (t *table) try(ctx context.Context, op string, send func(context.Context) error) error {
	loop := backoff.Policy{Max: time.Second}.Start()
	for {
		attempt, cancel := context.WithTimeout(ctx, t.timeout)
		began := time.Now()
		err := settle(attempt, func() error { return send(attempt) })
		cancel()
		if t.heard != nil && answered(err) {
			t.heard(time.Since(began))
		}
		if err == nil {
			return nil
		}
		err = &callError{op: op, table: t.name, kind: classify(err), err: err}
		if ctx.Err() != nil || !transient(err) || !loop.Wait(ctx, nil) {
			return err
		}
	}
}

// ended adds the end of ctx to an error, if ctx has ended.
func ended(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ContextError(ctx), err)
}

func (t *table) create(ctx context.Context, ddb TableAPI) error {
	in := &dynamodb.CreateTableInput{
		TableName:   &t.name,
		BillingMode: types.BillingModePayPerRequest,
	}
	for _, k := range t.schema() {
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String(k.Name), KeyType: k.role})
		in.AttributeDefinitions = append(in.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: aws.String(k.Name), AttributeType: k.Type})
	}
	err := t.try(ctx, "CreateTable", func(ctx context.Context) error {
		_, err := ddb.CreateTable(ctx, in, once)
		return err
	})
	var exists *types.ResourceInUseException
	if errors.As(err, &exists) {
		err = nil // perhaps by an earlier try; wait checks it
	}
	t.created = err == nil
	return err
}

// A keyRole is a key attribute with its role.
type keyRole struct {
	KeyAttr
	role types.KeyType
}

func (t *table) schema() []keyRole {
	s := []keyRole{{t.keys.Partition, types.KeyTypeHash}}
	if t.keys.Sort.Name != "" {
		s = append(s, keyRole{t.keys.Sort, types.KeyTypeRange})
	}
	return s
}

// wait waits until the table is active, and checks its keys.
func (t *table) wait(ctx context.Context) error {
	loop := backoff.Policy{Initial: 50 * time.Millisecond, Max: time.Second}.Start()
	for {
		var out *dynamodb.DescribeTableOutput
		err := t.try(ctx, "DescribeTable", func(ctx context.Context) (err error) {
			out, err = t.ddb.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.name}, once)
			return err
		})
		if t.unborn(err) && loop.Wait(ctx, nil) {
			continue
		}
		if err != nil {
			return err
		}
		if t.dated != nil {
			t.dated(out)
		}
		if err := t.check(out.Table); err != nil {
			return err
		}
		switch status := out.Table.TableStatus; status {
		case types.TableStatusActive, types.TableStatusUpdating:
			if t.log != nil && len(out.Table.Replicas) > 0 {
				t.log.Warn("a global table: locks that are taken in one region do not exclude in another", "table", t.name)
			}
			return nil
		case types.TableStatusCreating:
			if !loop.Wait(ctx, nil) {
				return t.unfit("it is still being created")
			}
		default:
			return t.unfit("its status is %s", status)
		}
	}
}

// check compares the keys that the table has with those that it should have.
func (t *table) check(d *types.TableDescription) error {
	if d == nil {
		return t.unfit("DescribeTable returned no description")
	}
	have := make(map[types.KeyType]string)
	for _, k := range d.KeySchema {
		have[k.KeyType] = aws.ToString(k.AttributeName)
	}
	kinds := make(map[string]types.ScalarAttributeType)
	for _, a := range d.AttributeDefinitions {
		kinds[aws.ToString(a.AttributeName)] = a.AttributeType
	}
	for _, want := range t.schema() {
		name := have[want.role]
		switch {
		case name == "":
			return t.unfit("it has no %s key, and %q is expected", want.role, want.Name)
		case name != want.Name:
			return t.unfit("its %s key is %q, not %q", want.role, name, want.Name)
		case kinds[name] != want.Type:
			return t.unfit("its %s key %q is of type %s, not %s", want.role, name, kinds[name], want.Type)
		}
	}
	if name := have[types.KeyTypeRange]; name != "" && t.keys.Sort.Name == "" {
		return t.unfit("it has a %s key %q, and none is expected", types.KeyTypeRange, name)
	}
	return nil
}

func (t *table) unfit(reason string, args ...any) error {
	return fmt.Errorf("table %q: %w: "+reason, append([]any{t.name, ErrTable}, args...)...)
}

// ttlLooks is how often setTTL checks whether somebody else has switched Time to Live on,
// after its own request was refused: the answer may be a moment old.
const ttlLooks = 6

// setTTL switches Time to Live on, if an attribute is given. If several clients do so at
// the same time, the service refuses all but one.
func (t *table) setTTL(ctx context.Context, ddb TableAPI, attr string) error {
	if attr == "" {
		return nil
	}
	loop := backoff.Policy{Initial: 50 * time.Millisecond, Max: time.Second}.Start()
	var refusal error
	for range ttlLooks {
		on, err := t.hasTTL(ctx, ddb, attr)
		if on || err != nil && !t.unborn(err) {
			return err
		}
		if err == nil {
			err = t.try(ctx, "UpdateTimeToLive", func(ctx context.Context) error {
				_, err := ddb.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
					TableName:               &t.name,
					TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attr, Enabled: aws.Bool(true)},
				}, once)
				return err
			})
			if err == nil || ctx.Err() != nil || errors.Is(err, holdfast.ErrDenied) {
				return err
			}
		}
		refusal = err
		if !loop.Wait(ctx, nil) {
			break
		}
	}
	return refusal
}

// hasTTL reports whether Time to Live uses an attribute. It fails if Time to Live uses
// another.
func (t *table) hasTTL(ctx context.Context, ddb TableAPI, attr string) (bool, error) {
	var out *dynamodb.DescribeTimeToLiveOutput
	err := t.try(ctx, "DescribeTimeToLive", func(ctx context.Context) (err error) {
		out, err = ddb.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &t.name}, once)
		return err
	})
	if err != nil {
		return false, err
	}
	d := out.TimeToLiveDescription
	if d == nil || aws.ToString(d.AttributeName) == "" {
		return false, nil
	}
	if *d.AttributeName != attr {
		return false, t.unfit("its Time to Live attribute is %q, not %q", *d.AttributeName, attr)
	}
	return d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling, nil
}

// unborn reports whether an error means that the table was created just now, and not all
// of the service knows it yet.
func (t *table) unborn(err error) bool {
	var missing *types.ResourceNotFoundException
	return t.created && errors.As(err, &missing)
}
