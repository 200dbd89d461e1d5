package dynamofake

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func (db *DB) createTable(in *dynamodb.CreateTableInput, _ *usage) (*dynamodb.CreateTableOutput, error) {
	if err := firstOf(
		refuse(in, "GlobalSecondaryIndexes", "GlobalTableSettingsReplicationMode", "GlobalTableSourceArn",
			"LocalSecondaryIndexes", "StreamSpecification", "VectorIndexes"),
		checkTableName(in.TableName),
		checkBilling(in),
	); err != nil {
		return nil, err
	}
	s, err := newSchema(in)
	if err != nil {
		return nil, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if t, _ := db.existing(*in.TableName); t != nil {
		return nil, inUse("Table already exists: %s", *in.TableName)
	}
	now := time.Now()
	t := &table{schema: s, created: now, records: make(map[string]*record)}
	h := fnv.New64a()
	fmt.Fprint(h, *in.TableName, now.UnixNano())
	t.description = types.TableDescription{
		AttributeDefinitions:      in.AttributeDefinitions,
		CreationDateTime:          &now,
		DeletionProtectionEnabled: aws.Bool(isTrue(in.DeletionProtectionEnabled)),
		KeySchema:                 in.KeySchema,
		ProvisionedThroughput: &types.ProvisionedThroughputDescription{
			NumberOfDecreasesToday: aws.Int64(0), ReadCapacityUnits: aws.Int64(0), WriteCapacityUnits: aws.Int64(0),
		},
		TableArn:  aws.String("arn:aws:dynamodb:us-east-1:000000000000:table/" + *in.TableName),
		TableId:   aws.String(fmt.Sprintf("%016x", h.Sum64())),
		TableName: in.TableName,
	}
	if p := in.ProvisionedThroughput; p != nil {
		t.description.ProvisionedThroughput.ReadCapacityUnits = p.ReadCapacityUnits
		t.description.ProvisionedThroughput.WriteCapacityUnits = p.WriteCapacityUnits
	}
	if in.BillingMode == types.BillingModePayPerRequest {
		t.description.BillingModeSummary = &types.BillingModeSummary{BillingMode: in.BillingMode}
	}
	db.tables[*in.TableName] = t
	d := t.describe(db)
	// The answer comes before the table does, however short the delay.
	d.TableStatus = types.TableStatusCreating
	return &dynamodb.CreateTableOutput{TableDescription: d}, nil
}

func checkBilling(in *dynamodb.CreateTableInput) error {
	if err := oneOf("billingMode", in.BillingMode, in.BillingMode.Values()...); err != nil {
		return err
	}
	p := in.ProvisionedThroughput
	switch {
	case in.BillingMode == types.BillingModePayPerRequest && p != nil:
		return invalid("One or more parameter values were invalid: Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST")
	case in.BillingMode == types.BillingModePayPerRequest:
		return nil
	case p == nil || p.ReadCapacityUnits == nil || p.WriteCapacityUnits == nil:
		return invalid("One or more parameter values were invalid: ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
	case *p.ReadCapacityUnits < 1 || *p.WriteCapacityUnits < 1:
		return invalid("Value at 'provisionedThroughput' failed to satisfy constraint: Member must have value greater than or equal to 1")
	}
	return nil
}

func newSchema(in *dynamodb.CreateTableInput) (schema, error) {
	var s schema
	if n := len(in.KeySchema); n < 1 || n > 2 {
		return s, invalid("Value at 'keySchema' failed to satisfy constraint: Member must have length from 1 to 2: %d", n)
	}
	kinds := make(map[string]string)
	for _, d := range in.AttributeDefinitions {
		if err := oneOf("attributeType", d.AttributeType, d.AttributeType.Values()...); err != nil {
			return s, err
		}
		kinds[aws.ToString(d.AttributeName)] = string(d.AttributeType)
	}
	for i, k := range in.KeySchema {
		if want := []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]; k.KeyType != want {
			return s, invalid("Invalid KeySchema: KeySchemaElement %d is not a %s key type", i+1, want)
		}
		name := aws.ToString(k.AttributeName)
		if kinds[name] == "" {
			return s, invalid("One or more parameter values were invalid: Some index key attributes are not defined in AttributeDefinitions: %s", name)
		}
		if s.has(name) {
			return s, invalid("Both the Hash Key and the Range Key element in the KeySchema have the same name")
		}
		s.keys = append(s.keys, keyAttribute{name: name, typ: kinds[name]})
	}
	if len(in.AttributeDefinitions) != len(s.keys) {
		return s, invalid("One or more parameter values were invalid: Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
	}
	return s, nil
}

// describe returns the description as of now.
func (t *table) describe(db *DB) *types.TableDescription {
	d := clone(t.description)
	d.TableStatus = t.status(db)
	entries := t.entries(time.Time{})
	size := 0
	for _, e := range entries {
		size += sizeOf(e.item)
	}
	d.ItemCount = aws.Int64(int64(len(entries)))
	d.TableSizeBytes = aws.Int64(int64(size))
	return &d
}

func (db *DB) describeTable(in *dynamodb.DescribeTableInput, _ *usage) (*dynamodb.DescribeTableOutput, error) {
	if err := checkTableName(in.TableName); err != nil {
		return nil, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	t, err := db.described(*in.TableName)
	if err != nil {
		return nil, err
	}
	return &dynamodb.DescribeTableOutput{Table: t.describe(db)}, nil
}

func (db *DB) deleteTable(in *dynamodb.DeleteTableInput, _ *usage) (*dynamodb.DeleteTableOutput, error) {
	if err := checkTableName(in.TableName); err != nil {
		return nil, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	t, err := db.existing(*in.TableName)
	if err != nil {
		return nil, err
	}
	switch status := t.status(db); {
	case status != active:
		return nil, inUse("Attempt to change a resource which is still in use: Table %s is in state %s", *in.TableName, status)
	case isTrue(t.description.DeletionProtectionEnabled):
		return nil, invalid("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
	}
	t.deleted = time.Now()
	d := t.describe(db)
	d.TableStatus = types.TableStatusDeleting
	return &dynamodb.DeleteTableOutput{TableDescription: d}, nil
}

func (db *DB) updateTimeToLive(in *dynamodb.UpdateTimeToLiveInput, _ *usage) (*dynamodb.UpdateTimeToLiveOutput, error) {
	if err := checkTableName(in.TableName); err != nil {
		return nil, err
	}
	spec := in.TimeToLiveSpecification
	if aws.ToString(spec.AttributeName) == "" || spec.Enabled == nil {
		return nil, invalid("TimeToLiveSpecification needs an attribute name, and Enabled")
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	t, err := db.described(*in.TableName)
	if err != nil {
		return nil, err
	}
	switch status := t.status(db); {
	case status != active:
		return nil, inUse("Attempt to change a resource which is still in use: Table %s is in state %s", *in.TableName, status)
	case *spec.Enabled && t.ttl != "":
		return nil, invalid("TimeToLive is already enabled")
	case !*spec.Enabled && t.ttl == "":
		return nil, invalid("TimeToLive is already disabled")
	case *spec.Enabled:
		t.ttl = *spec.AttributeName
	case *spec.AttributeName != t.ttl:
		return nil, invalid("TimeToLive is active on a different AttributeName: current AttributeName is %s", t.ttl)
	default:
		t.ttl = ""
	}
	return &dynamodb.UpdateTimeToLiveOutput{TimeToLiveSpecification: spec}, nil
}

func (db *DB) describeTimeToLive(in *dynamodb.DescribeTimeToLiveInput, _ *usage) (*dynamodb.DescribeTimeToLiveOutput, error) {
	if err := checkTableName(in.TableName); err != nil {
		return nil, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	t, err := db.described(*in.TableName)
	if err != nil {
		return nil, err
	}
	d := &types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusDisabled}
	if t.ttl != "" {
		d.TimeToLiveStatus = types.TimeToLiveStatusEnabled
		d.AttributeName = aws.String(t.ttl)
	}
	return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: d}, nil
}
