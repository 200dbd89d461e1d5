package dynamofake

import (
	"errors"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// FuzzExpression tests the language: an expression means something, or is
// refused by a ValidationException or as unknown to the fake; what is parsed can
// be evaluated on any item, which stays as it is; and what an update leaves could
// be stored as it is.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"#a = :s AND NOT (#b < :n OR size(#c) >= :n)", "attribute_type(#a, :s) OR begins_with(#a, :s) AND attribute_exists(#c)",
		"#a BETWEEN :n AND :n AND :s <> #a", "((#a = :s))", "(#a) = (:s)", "(#a = #b) = #c", "NOT NOT #a = :set", "size(size(#a)) = :n",
		"SET #a = if_not_exists(#b, :n) + :n REMOVE #c", "ADD #b :n, #c :set", "SET #b = #b - :n, #a = #c", "ADD #c :n SET #a = :s",
		"SET #a = size(#b)", "SET", "#a IN (:s)", "#a.#b = :s", "#a[0] = :s", "a = :s", "contains(#a, :s)", "DELETE #a :set", "",
	} {
		f.Add(seed)
	}
	values := item{
		":s": &types.AttributeValueMemberS{Value: "S"}, ":n": &types.AttributeValueMemberN{Value: "1"},
		":set": &types.AttributeValueMemberSS{Value: []string{"x", "y"}},
	}
	items := []item{
		{},
		{"a": values[":s"], "b": values[":n"], "c": values[":set"]},
		{"a": values[":n"], "b": &types.AttributeValueMemberN{Value: "9e125"}, "c": &types.AttributeValueMemberL{}},
	}
	f.Fuzz(func(t *testing.T, expression string) {
		p, err := newPlaceholders(map[string]string{"#a": "a", "#b": "b", "#c": "c"}, values)
		if err != nil {
			t.Fatal(err)
		}
		documented := func(err error) {
			var api smithy.APIError
			if err != nil && !(errors.As(err, &api) && api.ErrorCode() == "ValidationException") && !errors.Is(err, ErrUnsupported) {
				t.Fatalf("%q: %v", expression, err)
			}
		}
		condition, badCondition := parseCondition(expression, p)
		actions, badUpdate := parseUpdate(expression, p)
		documented(badCondition)
		documented(badUpdate)
		if badCondition == nil && badUpdate == nil {
			t.Fatalf("%q is a condition and an update", expression)
		}
		for _, it := range items {
			it, _ := canonicalItem(it)
			before := clone(it)
			if badCondition == nil && holds(condition, it) == holds(not{condition}, it) {
				t.Fatalf("%q of %v is neither true nor false", expression, it)
			}
			if badUpdate == nil {
				after, err := apply(actions, it)
				documented(err)
				if stored, bad := canonicalItem(after); err == nil && (bad != nil || !reflect.DeepEqual(stored, after)) {
					t.Fatalf("%q leaves %v of %v, which cannot be stored: %v", expression, after, it, bad)
				}
			}
			if !reflect.DeepEqual(it, before) {
				t.Fatalf("%q changes the item as it was: %v", expression, it)
			}
		}
	})
}
