package dynamofake_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

var placeholder = regexp.MustCompile(`:\w+`)

// usedIn picks the values that an expression refers to.
func usedIn(expression string, from ...item) item {
	used := make(item)
	for _, name := range placeholder.FindAllString(expression, -1) {
		for _, values := range from {
			if v, ok := values[name]; ok {
				used[name] = v
			}
		}
	}
	if len(used) == 0 {
		return nil
	}
	return used
}

// TestPlaceholders checks what the API wants of names and values.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
	for what, test := range map[string]struct {
		update string
		names  map[string]string
		values item
		want   string
	}{
		"both used":           {"SET #a = :v", map[string]string{"#a": "name"}, item{":v": s("x")}, ""},
		"digits":              {"SET #1 = :1", map[string]string{"#1": "a"}, item{":1": s("x")}, ""},
		"a dot in the name":   {"SET #a = :v", map[string]string{"#a": "a.b"}, item{":v": s("x")}, ""},
		"unused name":         {"SET a = :v", map[string]string{"#a": "name"}, item{":v": s("x")}, validation},
		"unused value":        {"SET a = :v", nil, item{":v": s("x"), ":w": s("x")}, validation},
		"undefined name":      {"SET #b = :v", map[string]string{"#a": "name"}, item{":v": s("x")}, validation},
		"undefined value":     {"SET a = :w", nil, item{":v": s("x")}, validation},
		"empty names":         {"REMOVE a", map[string]string{}, nil, validation},
		"empty values":        {"REMOVE a", nil, item{}, validation},
		"name without sigil":  {"SET a = :v", map[string]string{"a": "name"}, item{":v": s("x")}, validation},
		"value without sigil": {"SET a = :v", nil, item{"v": s("x")}, validation},
		"name of nothing":     {"SET #a = :v", map[string]string{"#a": ""}, item{":v": s("x")}, validation},
		"no value":            {"SET a = :v", nil, item{":v": nil}, validation},
		"bad number":          {"SET a = :v", nil, item{":v": n("x")}, validation},
		"false NULL":          {"SET a = :v", nil, item{":v": l(boolean(true), m(item{"x": n("")}))}, validation},
		"empty set":           {"SET a = :v", nil, item{":v": ss()}, validation},
		"empty member":        {"SET a = :v", nil, item{":v": ss("")}, validation},
		"equal members":       {"SET a = :v", nil, item{":v": ns("1", "1.0")}, validation},
		"nothing but values":  {"", nil, item{":v": s("x")}, validation},
		"reserved":            {"SET Owner = :v", nil, item{":v": s("x")}, validation},
		"too long":            {"SET a = :v" + strings.Repeat(" ", 4096), nil, item{":v": s("x")}, validation},
	} {
		in := &dynamodb.UpdateItemInput{
			TableName: aws.String(plainTable), Key: item{"id": s(what)},
			ExpressionAttributeNames: maps.Clone(test.names), ExpressionAttributeValues: test.values,
		}
		if test.update != "" {
			in.UpdateExpression = &test.update
		}
		_, err := c.UpdateItem(t.Context(), in)
		sameCode(t, what, err, test.want)
	}
}
