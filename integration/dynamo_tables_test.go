package integration_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// described is the part of a description that servers agree on.
func described(d *types.TableDescription) any {
	out := map[string]any{
		"TableName": d.TableName, "AttributeDefinitions": wire(d.AttributeDefinitions),
		"KeySchema": wire(d.KeySchema), "TableStatus": d.TableStatus,
	}
	if d.BillingModeSummary != nil {
		out["BillingMode"] = d.BillingModeSummary.BillingMode
	}
	return out
}

// TestDynamoDifferentialTables compares the replies to the operations on tables.
func TestDynamoDifferentialTables(t *testing.T) {
	start(t)
	d := newDifferential(t)
	table := &d.tables[0].name
	key := func(name string, role types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: &name, KeyType: role}
	}
	attribute := func(name string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS}
	}
	create := func(change func(*dynamodb.CreateTableInput)) *dynamodb.CreateTableInput {
		in := &dynamodb.CreateTableInput{
			TableName:            aws.String("holdfast-test-never-created"),
			BillingMode:          types.BillingModePayPerRequest,
			KeySchema:            []types.KeySchemaElement{key("id", types.KeyTypeHash)},
			AttributeDefinitions: []types.AttributeDefinition{attribute("id")},
		}
		change(in)
		return in
	}
	missing := aws.String("holdfast-no-such-table")
	cases := []struct {
		name  string
		input any
		code  string
	}{
		{"describe", &dynamodb.DescribeTableInput{TableName: table}, ""},
		{"describe, missing", &dynamodb.DescribeTableInput{TableName: missing}, "ResourceNotFoundException"},
		{"describe, bad name", &dynamodb.DescribeTableInput{TableName: aws.String("a b c")}, "ValidationException"},
		{"create, there already", create(func(in *dynamodb.CreateTableInput) { in.TableName = table }), "ResourceInUseException"},
		{"create, short name", create(func(in *dynamodb.CreateTableInput) { in.TableName = aws.String("ab") }), "ValidationException"},
		{"create, no key", create(func(in *dynamodb.CreateTableInput) { in.KeySchema = nil }), "ValidationException"},
		{"create, sort key only", create(func(in *dynamodb.CreateTableInput) { in.KeySchema[0].KeyType = types.KeyTypeRange }), "ValidationException"},
		{"create, two partition keys", create(func(in *dynamodb.CreateTableInput) {
			in.KeySchema = append(in.KeySchema, key("sort", types.KeyTypeHash))
			in.AttributeDefinitions = append(in.AttributeDefinitions, attribute("sort"))
		}), "ValidationException"},
		{"create, one attribute twice", create(func(in *dynamodb.CreateTableInput) {
			in.KeySchema = append(in.KeySchema, key("id", types.KeyTypeRange))
		}), "ValidationException"},
		{"create, undefined key", create(func(in *dynamodb.CreateTableInput) { in.AttributeDefinitions[0] = attribute("other") }), "ValidationException"},
		{"create, superfluous attribute", create(func(in *dynamodb.CreateTableInput) {
			in.AttributeDefinitions = append(in.AttributeDefinitions, attribute("other"))
		}), "ValidationException"},
		{"create, unknown type", create(func(in *dynamodb.CreateTableInput) { in.AttributeDefinitions[0].AttributeType = "BOOL" }), "ValidationException"},
		{"time to live, missing table", &dynamodb.DescribeTimeToLiveInput{TableName: missing}, "ResourceNotFoundException"},
		{"time to live", &dynamodb.DescribeTimeToLiveInput{TableName: table}, ""},
	}
	for _, c := range cases {
		_, fromServer := d.run(t, d.server, c.input)
		if fromServer.Code != c.code {
			t.Errorf("%s: the server says %q, want %q", c.name, fromServer.Code, c.code)
		}
		d.step(t, operation{input: c.input})
	}
}

// TestDynamoTimeToLive enables and describes Time to Live as CreateTable and doctor do.
// The fake must answer like a server that has it.
func TestDynamoTimeToLive(t *testing.T) {
	start(t)
	d := newDifferential(t)
	if !d.target.TimeToLive() {
		return // newDifferential has logged why
	}
	table := d.tables[0].name
	describe := operation{input: &dynamodb.DescribeTimeToLiveInput{TableName: &table}}
	enable := func(attribute string) operation {
		return operation{input: &dynamodb.UpdateTimeToLiveInput{
			TableName:               &table,
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: aws.Bool(true)},
		}}
	}
	steps := []operation{describe, enable("expires"), describe}
	if d.strict { // moto takes any change
		steps = append(steps, enable("expires"), enable("other"), describe)
	}
	for _, op := range steps {
		d.step(t, op)
	}
}
