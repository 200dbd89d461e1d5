package integration_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
)

// TestMotoDeviates lists where moto deviates from DynamoDB's documentation, which the
// fake follows. These are the reasons why tests on moto leave something out. If a case
// fails, moto has improved: delete the case and enable the tests that it excused.
// moto_server.py corrects the deviations that dynamolock itself would fail on.
func TestMotoDeviates(t *testing.T) {
	start(t)
	d := newDifferential(t)
	if d.target.Source() != dynamoserver.Moto {
		return // other servers deviate elsewhere
	}
	d.strict = true // compare the cost
	table := &d.tables[0].name
	key := attributeMap{"id": text("1")}
	update := func(name string, v types.AttributeValue) *dynamodb.UpdateItemInput {
		return &dynamodb.UpdateItemInput{
			TableName: table, Key: key, UpdateExpression: aws.String("SET #a = :x"),
			ExpressionAttributeNames: map[string]string{"#a": name}, ExpressionAttributeValues: attributeMap{":x": v},
		}
	}
	when := func(in *dynamodb.UpdateItemInput, condition string) *dynamodb.UpdateItemInput {
		in.ConditionExpression = &condition
		return in
	}
	into := func(in *dynamodb.UpdateItemInput) *dynamodb.UpdateItemInput {
		in.UpdateExpression, in.ExpressionAttributeNames["#b"] = aws.String("SET #a.#b = :x"), "b"
		return in
	}
	returning := func(in *dynamodb.UpdateItemInput, what types.ReturnValue) *dynamodb.UpdateItemInput {
		in.ReturnValues = what
		return in
	}
	ttl := func(attribute string) *dynamodb.UpdateTimeToLiveInput {
		return &dynamodb.UpdateTimeToLiveInput{
			TableName:               table,
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: aws.Bool(true)},
		}
	}
	x := attributeMap{":x": text("x")}
	item := attributeMap{"id": text("1"), "a": text("x"), "n": keyValue("N", "7")}
	expires := ttl("expires")
	for _, c := range []struct {
		name           string
		item           attributeMap // is there before
		before         any          // is done before
		input          any
		server, by     string // the answers' codes; "" with differs: both succeed, and with different answers
		reasonForTests string
	}{
		{"costs nobody asked for", item, nil, update("a", text("x")), "", "", "costs are not compared"},
		{"a number's zeros", nil, nil, returning(update("n", keyValue("N", "007")), types.ReturnValueAllNew), "", "", "numbers are in their shortest form"},
		{"NOT NOT", item, nil, when(update("a", text("x")), "NOT NOT attribute_exists(#a)"), "500", "", "NOT is followed by a parenthesis"},
		{"an entry of what is no map", item, nil, into(update("a", text("x"))), "", "ValidationException", "single entries of maps are not changed"},
		{
			"a value that is not used, in a transaction", nil, nil, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
				{ConditionCheck: &types.ConditionCheck{
					TableName: table, Key: key, ConditionExpression: aws.String("attribute_not_exists(#a)"),
					ExpressionAttributeNames: map[string]string{"#a": "ghost"}, ExpressionAttributeValues: x,
				}},
			}}, "", "ValidationException", "all values are used",
		},
		{"a bad name of a table", nil, nil, &dynamodb.DescribeTableInput{TableName: aws.String("a b c")}, "ResourceNotFoundException", "ValidationException", "TestDynamoDifferentialTables is not run"},
		{"Time to Live twice", nil, expires, expires, "", "ValidationException", "it is turned on once"},
		{"Time to Live of another attribute", nil, expires, ttl("other"), "", "ValidationException", "it is turned on once"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.item != nil {
				d.db.SetItem(*table, c.item)
				must(t, errOf(d.target.Client().PutItem(limited(t), &dynamodb.PutItemInput{TableName: table, Item: c.item})))
			}
			if c.before != nil {
				d.run(t, d.server, c.before)
				d.run(t, d.fake, c.before)
			}
			server, fake := d.code(t, d.server, c.input), d.code(t, d.fake, c.input)
			if server.Code != c.server || fake.Code != c.by {
				t.Errorf("moto answers %q, the fake %q; known is %q and %q, so that %s", server.Code, fake.Code, c.server, c.by, c.reasonForTests)
			}
			if s, f := toJSON(t, server), toJSON(t, fake); s == f {
				t.Errorf("both answer %s: no need that %s", s, c.reasonForTests)
			}
		})
	}
}

// code is run for a server that may fail with a page of HTML, as moto does on unexpected
// requests: the code is "500" then.
func (d *differential) code(t *testing.T, api dynamoAPI, input any) dynamoOutcome {
	t.Helper()
	if in, ok := input.(*dynamodb.UpdateItemInput); ok {
		if _, err := api.UpdateItem(limited(t), in); err != nil && strings.Contains(err.Error(), "StatusCode: 500") {
			return dynamoOutcome{Code: "500"}
		}
	}
	_, o := d.run(t, api, input)
	return o
}
