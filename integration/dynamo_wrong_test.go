package integration_test

import (
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// bad returns a request that is usually invalid in some way. Both sides must agree on
// whether it is.
func (g *generator) bad(r *request) any {
	in := g.update(r)
	simple := func(update string) {
		in.UpdateExpression, in.ConditionExpression = &update, nil
		in.ExpressionAttributeNames = map[string]string{"#a": "a", "#b": "b"}
		maps.DeleteFunc(in.ExpressionAttributeNames, func(name, _ string) bool { return !strings.Contains(update, name) })
	}
	switch g.IntN(15) {
	case 0:
		in.TableName = aws.String("holdfast-no-such-table")
	case 1:
		in.Key["id"] = &types.AttributeValueMemberBOOL{Value: true}
	case 2:
		delete(in.Key, "id")
	case 3:
		in.Key["other"] = text("x")
	case 4:
		in.Key["id"] = text("")
	case 5:
		in.ExpressionAttributeValues[":unused"] = text("x")
	case 6:
		in.ExpressionAttributeNames["#unused"] = "a"
	case 7:
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = nil, nil
	case 8:
		in.ConditionExpression = aws.String("")
	case 9:
		in.ExpressionAttributeNames = map[string]string{}
	case 10:
		simple("SET #a = :x")
		in.ExpressionAttributeValues = attributeMap{":x": g.badValue()}
	case 11:
		simple(pick(g, badUpdates...))
		in.ExpressionAttributeValues = attributeMap{":x": text("x"), ":one": keyValue("N", "1")}
	case 12:
		simple("SET #a = :x")
		in.ExpressionAttributeValues = attributeMap{":x": text("x")}
		in.ConditionExpression = aws.String(pick(g, "((#a = :x))", "((#a) = :x) AND ((#a = :x OR #a <> :x))", "#a = (:x)", "#a = #a", "#a BETWEEN :x AND :x"))
	case 13:
		return g.badQuery(r.table)
	default:
		return g.soup(r)
	}
	return in
}

func (g *generator) badValue() types.AttributeValue {
	return pick(g, []types.AttributeValue{
		&types.AttributeValueMemberN{Value: ""}, &types.AttributeValueMemberN{Value: "ten"}, &types.AttributeValueMemberN{Value: "1e126"},
		&types.AttributeValueMemberN{Value: "1e-131"}, &types.AttributeValueMemberN{Value: "123456789012345678901234567890123456789"},
		&types.AttributeValueMemberNS{Value: []string{"1", "1.0"}}, &types.AttributeValueMemberSS{Value: []string{"a", "a"}},
		&types.AttributeValueMemberSS{Value: []string{}}, &types.AttributeValueMemberNULL{Value: false},
		&types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberN{Value: "x"}}},
	}...)
}

// badUpdates may be valid except for an unused value.
var badUpdates = []string{
	"", "SET", "SET #a", "SET #a = ", "SET #a = :x SET #b = :one", "SET #a = :x, #a = :one", "SET #a = :x REMOVE #a", "#a = :x", "SET #a = :x,",
	"SET #a = :x + :one", "SET #a = :one + :one + :one", "SET #a = size(#b)", "SET #a = unknown(#b)", "SET #a = if_not_exists(:x, :one)",
	"SET #a = if_not_exists(#b)", "ADD #a :x", "ADD #a #b", "ADD #a = :one", "REMOVE #a #b", "REMOVE :x", "SET :x = #a",
	"SET #a = attribute_exists(#b)", "SET #a = :x AND #b = :one", "REMOVE", "SET #a = #b #a", "SET #a == :x", "SET owner = :x",
}

func (g *generator) badQuery(t dynamoTable) *dynamodb.QueryInput {
	r := &request{table: t, key: g.key(t), names: make(map[string]string)}
	in := g.query(r)
	switch g.IntN(6) {
	case 0:
		in.Limit = aws.Int32(0)
	case 1:
		in.KeyConditionExpression = nil
	case 2:
		in.KeyConditionExpression = aws.String(*in.KeyConditionExpression + " OR " + *in.KeyConditionExpression)
	case 3:
		in.KeyConditionExpression = aws.String("NOT " + *in.KeyConditionExpression)
	case 4:
		in.FilterExpression = aws.String("attribute_exists(#id)")
	default:
		in.ExclusiveStartKey = attributeMap{"other": text("x")}
	}
	return in
}

// soup returns a condition of random tokens on an existing item. Its only name is that of
// the key, because dynalite finds two missing attributes equal.
func (g *generator) soup(r *request) *dynamodb.UpdateItemInput {
	in := &dynamodb.UpdateItemInput{
		TableName: &r.table.name, Key: r.key, UpdateExpression: aws.String("SET #last = :v"),
		ExpressionAttributeNames: map[string]string{"#last": "last"}, ExpressionAttributeValues: attributeMap{":v": text("1")},
	}
	if r.present == nil || r.table.keys[0].Type == types.ScalarAttributeTypeN { // which has no size
		return in
	}
	tokens := []string{
		"#id", "#id", ":v", ":v", "(", ")", "=", "<>", "<", ">=", "AND", "OR", "NOT", "BETWEEN", ",",
		"attribute_exists (", "attribute_exists(#id)", "begins_with (", "size (", "and", "+",
	}
	var words []string
	for range 2 + g.IntN(8) {
		word := pick(g, tokens...)
		// dynalite alone accepts two in a row.
		if len(words) > 0 && word == "NOT" && words[len(words)-1] == "NOT" {
			continue
		}
		words = append(words, word)
	}
	expression := strings.Join(words, " ")
	in.ConditionExpression = &expression
	if strings.Contains(expression, "#id") {
		in.ExpressionAttributeNames["#id"] = "id"
	}
	return in
}
