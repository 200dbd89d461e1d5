package dynamofake

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// FuzzExpression parses and evaluates whatever comes. There is no panic, and no
// failure but those that the package documents.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"a = :s AND NOT (b < :n OR size(c) >= :n)",
		"attribute_type(#a, :s) OR begins_with(a, :s) AND contains(c, :n)",
		"a BETWEEN :n AND :n AND b IN (:s, a, c)",
		"((a = :s))",
		"SET a = if_not_exists(b, :n) + :n, c = list_append(c, :l) REMOVE #a",
		"ADD b :n DELETE c :set",
		"SET a = (a - (b + :n))",
		"a, b, #a",
		"a.b[0] = :s",
	} {
		f.Add(seed)
	}
	it := item{
		"a": &types.AttributeValueMemberS{Value: "x"},
		"b": &types.AttributeValueMemberN{Value: "1"},
		"c": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberN{Value: "1"}}},
	}
	values := item{
		":s": &types.AttributeValueMemberS{Value: "S"}, ":n": &types.AttributeValueMemberN{Value: "1"},
		":l": &types.AttributeValueMemberL{}, ":set": &types.AttributeValueMemberSS{Value: []string{"x"}},
	}
	f.Fuzz(func(t *testing.T, expression string) {
		parse := func(parse func(*placeholders) error) {
			p, err := newPlaceholders(map[string]string{"#a": "a"}, values)
			if err != nil {
				t.Fatal(err)
			}
			err = parse(p)
			var api smithy.APIError
			if err != nil && !errors.As(err, &api) && !errors.Is(err, ErrUnsupported) {
				t.Errorf("%q: %v", expression, err)
			}
		}
		parse(func(p *placeholders) error {
			condition, err := parseCondition(expression, p)
			if err != nil {
				return err
			}
			for _, it := range []item{it, nil} {
				if holds(condition, it) == holds(not{condition}, it) {
					t.Errorf("%q is true and false", expression)
				}
			}
			s := schema{keys: []keyAttribute{{"a", "S"}, {"b", "N"}}}
			_, err = newKeyCondition(condition, &s)
			return err
		})
		parse(func(p *placeholders) error {
			actions, err := parseUpdate(expression, p)
			if err != nil {
				return err
			}
			_, err = apply(actions, it)
			if _, err := apply(actions, item{}); err != nil {
				return err
			}
			return err
		})
		parse(func(p *placeholders) error {
			paths, err := parseProjection(expression, p)
			project(it, paths)
			return err
		})
	})
}

func TestReservedWords(t *testing.T) {
	if len(reservedWords) != 573 {
		t.Errorf("%d words, want 573", len(reservedWords))
	}
	for word, want := range map[string]bool{"OWNER": true, "ttl": true, "Name": true, "lease": false, "guid": false} {
		if isReserved(word) != want {
			t.Errorf("%s: %v", word, !want)
		}
	}
}
