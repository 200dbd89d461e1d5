package dynamofake

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func (db *DB) createTable(in *dynamodb.CreateTableInput, _ *usage) (*dynamodb.CreateTableOutput, error) {
	if err := firstOf(only(in, "TableName", "BillingMode", "KeySchema", "AttributeDefinitions"), checkTableName(in.TableName)); err != nil {
		return nil, err
	}
	if in.BillingMode != types.BillingModePayPerRequest {
		return nil, unsupported("provisioned capacity")
	}
	s, err := newSchema(in)
	if err != nil {
		return nil, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.tables[*in.TableName] != nil {
		return nil, &types.ResourceInUseException{Message: aws.String("Table already exists: " + *in.TableName)}
	}
	now := time.Now()
	t := &table{schema: s, created: now, records: make(map[string]*record), description: types.TableDescription{
		AttributeDefinitions: in.AttributeDefinitions,
		BillingModeSummary:   &types.BillingModeSummary{BillingMode: in.BillingMode},
		CreationDateTime:     &now,
		KeySchema:            in.KeySchema,
		TableName:            in.TableName,
	}}
	db.tables[*in.TableName] = t
	d := t.description
	// The answer comes before the table does, however short the delay.
	d.TableStatus = types.TableStatusCreating
	return &dynamodb.CreateTableOutput{TableDescription: &d}, nil
}

// newSchema takes a partition key and perhaps a sort key, with a definition of
// each and no others.
func newSchema(in *dynamodb.CreateTableInput) (schema, error) {
	var s schema
	kinds := make(map[string]types.ScalarAttributeType)
	for _, d := range in.AttributeDefinitions {
		if !ordered(string(d.AttributeType)) {
			return s, invalid("Value '%s' at 'attributeType' failed to satisfy constraint: Member must satisfy enum value set: [B, N, S]", d.AttributeType)
		}
		kinds[aws.ToString(d.AttributeName)] = d.AttributeType
	}
	roles := []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}
	for i, k := range in.KeySchema {
		name := aws.ToString(k.AttributeName)
		if i == len(roles) || k.KeyType != roles[i] || kinds[name] == "" || s.has(name) {
			return s, invalid("Invalid KeySchema: element %d, %q", i+1, name)
		}
		s.keys = append(s.keys, keyAttribute{name: name, typ: string(kinds[name])})
	}
	if len(s.keys) == 0 || len(in.AttributeDefinitions) != len(s.keys) {
		return s, invalid("One or more parameter values were invalid: Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
	}
	return s, nil
}

func (db *DB) describeTable(in *dynamodb.DescribeTableInput, _ *usage) (*dynamodb.DescribeTableOutput, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	t, err := db.described(in.TableName)
	if err != nil {
		return nil, err
	}
	d := t.description
	d.TableStatus = t.status(db)
	return &dynamodb.DescribeTableOutput{Table: &d}, nil
}

func (db *DB) updateTimeToLive(in *dynamodb.UpdateTimeToLiveInput, _ *usage) (*dynamodb.UpdateTimeToLiveOutput, error) {
	spec := in.TimeToLiveSpecification
	switch {
	case aws.ToString(spec.AttributeName) == "" || spec.Enabled == nil:
		return nil, invalid("TimeToLiveSpecification needs an attribute name, and Enabled")
	case !*spec.Enabled:
		return nil, unsupported("turning Time to Live off")
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	t, err := db.described(in.TableName)
	if err != nil {
		return nil, err
	}
	switch status := t.status(db); {
	case status != types.TableStatusActive:
		return nil, &types.ResourceInUseException{Message: aws.String("Attempt to change a resource which is still in use: Table " + *in.TableName)}
	case t.ttl != "":
		return nil, invalid("TimeToLive is already enabled")
	}
	t.ttl = *spec.AttributeName
	return &dynamodb.UpdateTimeToLiveOutput{TimeToLiveSpecification: spec}, nil
}

func (db *DB) describeTimeToLive(in *dynamodb.DescribeTimeToLiveInput, _ *usage) (*dynamodb.DescribeTimeToLiveOutput, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	t, err := db.described(in.TableName)
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
