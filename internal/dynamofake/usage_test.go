package dynamofake_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// TestPlaceholders checks what the API wants of names and values.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
	a := map[string]string{"#a": "name"}
	for what, test := range map[string]struct {
		update string
		names  map[string]string
		values item
		want   string
	}{
		"both used":           {"SET #a = :v", a, item{":v": s("x")}, ""},
		"digits":              {"SET #1 = :1", map[string]string{"#1": "a"}, item{":1": s("x")}, ""},
		"a dot in the name":   {"SET #a = :v", map[string]string{"#a": "a.b"}, item{":v": s("x")}, ""},
		"unused name":         {"SET #a = :v", map[string]string{"#a": "name", "#b": "b"}, item{":v": s("x")}, validation},
		"unused value":        {"SET #a = :v", a, item{":v": s("x"), ":w": s("x")}, validation},
		"undefined name":      {"SET #b = :v", a, item{":v": s("x")}, validation},
		"undefined value":     {"SET #a = :w", a, item{":v": s("x")}, validation},
		"empty names":         {"SET #a = :v", map[string]string{}, item{":v": s("x")}, validation},
		"empty values":        {"REMOVE #a", a, item{}, validation},
		"name without sigil":  {"SET a = :v", map[string]string{"a": "name"}, item{":v": s("x")}, validation},
		"value without sigil": {"SET #a = :v", a, item{"v": s("x")}, validation},
		"name of nothing":     {"SET #a = :v", map[string]string{"#a": ""}, item{":v": s("x")}, validation},
		"no value":            {"SET #a = :v", a, item{":v": nil}, validation},
		"bad number":          {"SET #a = :v", a, item{":v": n("x")}, validation},
		"false NULL":          {"SET #a = :v", a, item{":v": l(boolean(true), m(item{"x": n("")}))}, validation},
		"empty set":           {"SET #a = :v", a, item{":v": ss()}, validation},
		"empty member":        {"SET #a = :v", a, item{":v": ss("")}, validation},
		"equal members":       {"SET #a = :v", a, item{":v": ns("1", "1.0")}, validation},
		"no placeholder":      {"SET owner = :v", nil, item{":v": s("x")}, unsupported},
		"no update":           {"", nil, nil, unsupported},
		"too long":            {"SET #a = :v" + strings.Repeat(" ", 4096), a, item{":v": s("x")}, validation},
	} {
		in := &dynamodb.UpdateItemInput{
			TableName: aws.String(plainTable), Key: item{"id": s(what)},
			ExpressionAttributeNames: test.names, ExpressionAttributeValues: test.values,
		}
		if test.update != "" {
			in.UpdateExpression = &test.update
		}
		_, err := c.UpdateItem(t.Context(), in)
		sameCode(t, what, err, test.want)
	}
}
