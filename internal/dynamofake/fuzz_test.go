package dynamofake

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// fuzzValues are what expressions may refer to, in canonical form.
var fuzzValues = item{
	":s": &types.AttributeValueMemberS{Value: "S"}, ":x": &types.AttributeValueMemberS{Value: "x"},
	":n": &types.AttributeValueMemberN{Value: "1"}, ":m": &types.AttributeValueMemberN{Value: "2.5"},
	":b": &types.AttributeValueMemberB{Value: []byte("x")}, ":l": &types.AttributeValueMemberL{Value: []types.AttributeValue{}},
	":set": &types.AttributeValueMemberSS{Value: []string{"x", "y"}}, ":ns": &types.AttributeValueMemberNS{Value: []string{"1", "3"}},
	":null": &types.AttributeValueMemberNULL{Value: true},
}

var fuzzAttributes = []attribute{"a", "b", "c", "d", "e", "f"}

// fuzzItems are those that expressions are tried on; the last is no item.
var fuzzItems = []item{
	{
		"a": &types.AttributeValueMemberS{Value: "x"},
		"b": &types.AttributeValueMemberN{Value: "1"},
		"c": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberN{Value: "1"}}},
		"d": &types.AttributeValueMemberSS{Value: []string{"S", "x"}},
		"e": &types.AttributeValueMemberB{Value: []byte("xy")},
	},
	{
		"a": &types.AttributeValueMemberS{Value: "S"},
		"b": &types.AttributeValueMemberN{Value: "2.5"},
		"c": &types.AttributeValueMemberNS{Value: []string{"1", "2"}},
		"d": &types.AttributeValueMemberN{Value: "1"},
		"e": &types.AttributeValueMemberS{Value: "xS"},
		"f": &types.AttributeValueMemberNULL{Value: true},
	},
	{
		"a": &types.AttributeValueMemberN{Value: "9" + strings.Repeat("0", 125)},
		"b": &types.AttributeValueMemberN{Value: "9" + strings.Repeat("0", 125)},
		"f": &types.AttributeValueMemberBOOL{},
	},
	nil,
}

// fuzzPlaceholders are those of the expressions that come.
func fuzzPlaceholders(t *testing.T) *placeholders {
	p, err := newPlaceholders(map[string]string{"#a": "a"}, fuzzValues)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// documented fails the test on an error that the package does not document.
func documented(t *testing.T, expression string, err error) {
	var api smithy.APIError
	if !(errors.As(err, &api) && api.ErrorCode() == "ValidationException") && !errors.Is(err, ErrUnsupported) {
		t.Fatalf("%q: %v", expression, err)
	}
}

// again writes down an expression in other words - other placeholders, other
// white space, keywords in another case, no parenthesis that is not needed - and
// parses that. It returns false for what is too long to be parsed.
func again[T any](t *testing.T, parsed T, write func(*writer, T), parse func(string, *placeholders) (T, error), salt []byte) (T, bool) {
	w := &writer{salt: salt, values: make(item), names: make(map[string]string)}
	write(w, parsed)
	text := w.String()
	var names map[string]string
	var values item
	if len(w.names) > 0 {
		names = w.names
	}
	if len(w.values) > 0 {
		values = w.values
	}
	p, err := newPlaceholders(names, values)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	got, err := parse(text, p)
	if len(text) > maxExpression && err != nil {
		return got, false
	}
	if err == nil {
		err = p.finish()
	}
	if err != nil {
		t.Fatalf("%q was made of what had been parsed, and is refused: %v", text, err)
	}
	return got, true
}

// FuzzCondition guards conditions, filters and key conditions: nothing but
// documented errors; what was parsed can be written down in other words and is
// parsed as the same; laws of logic and of the API's operators hold, whatever is
// compared; and a key condition means what it means as a condition.
func FuzzCondition(f *testing.F) {
	for _, seed := range []string{
		"a = :s AND NOT (b < :n OR size(c) >= :n)",
		"attribute_type(#a, :s) OR begins_with(a, :s) AND contains(c, :n)",
		"a BETWEEN :n AND :n AND b IN (:s, a, c)",
		"a BETWEEN :s AND :x and b <> :m Or not not d = :set",
		"((a = :s))", "(a) = (:s)", "(a = b) = c", "NOT (NOT (a = b AND b = c))", "a < a", "a IN (a)", "size(size(a)) = :n",
		"attribute_exists(a) AND attribute_not_exists(f) OR f = :null", "a=:s", "a = :s AND b BETWEEN :n AND :m", ":x = a AND :n<b",
		"a.b[0] = :s", "owner = :s", "#missing = :none", "a = :s)", "IN (a)", "contains(d, :x) AND contains(e, :b)",
	} {
		f.Add(seed, []byte(seed))
	}
	f.Add("", []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	s := schema{keys: []keyAttribute{{"a", "S"}, {"b", "N"}}}
	f.Fuzz(func(t *testing.T, expression string, script []byte) {
		salt := script
		generated := takeCondition(&script, 5)
		if checkCondition(generated) == nil {
			checkLaws(t, generated, salt)
		}
		parsed, err := parseCondition(expression, fuzzPlaceholders(t))
		if err != nil {
			documented(t, expression, err)
			return
		}
		checkLaws(t, parsed, salt)
		kc, err := newKeyCondition(parsed, &s)
		if err != nil {
			documented(t, expression, err)
			return
		}
		for _, it := range fuzzItems {
			if got := equal(it["a"], kc.hash) && holds(kc.sort, it); got != holds(parsed, it) {
				t.Fatalf("%q as a key condition: %v of %v", expression, got, it)
			}
		}
	})
}

// checkLaws checks what has to be true of any condition.
func checkLaws(t *testing.T, n node, salt []byte) {
	other, ok := again(t, n, (*writer).condition, parseCondition, salt)
	if ok && !reflect.DeepEqual(other, n) {
		t.Fatalf("%#v in other words is %#v", n, other)
	}
	twice, ok := again(t, node(not{not{n}}), (*writer).condition, parseCondition, salt)
	equivalent := rewritten(n)
	parsed, alsoOK := again(t, equivalent, (*writer).condition, parseCondition, salt)
	for _, it := range fuzzItems {
		want := holds(n, it)
		if ok && holds(twice, it) != want {
			t.Fatalf("%#v is %v of %v, and not with NOT NOT", n, want, it)
		}
		if holds(equivalent, it) != want || alsoOK && holds(parsed, it) != want {
			t.Fatalf("%#v is %v of %v, and not as %#v", n, want, it, equivalent)
		}
	}
}

// rewritten returns a condition that means the same: AND and OR by De Morgan's
// laws, BETWEEN and IN by comparisons, <> by =, and < by >.
func rewritten(n node) node {
	switch n := n.(type) {
	case logical:
		return not{logical{or: !n.or, x: negated(n.x), y: negated(n.y)}}
	case not:
		return negated(n.x)
	case between:
		if sameAttribute(n.x, n.low) || sameAttribute(n.x, n.high) {
			return n // no comparison may relate an attribute to itself
		}
		return logical{x: comparison{">=", n.x, n.low}, y: comparison{"<=", n.x, n.high}}
	case in:
		var any node
		for _, y := range n.list {
			if sameAttribute(n.x, y) {
				return n
			}
			if eq := (comparison{"=", y, n.x}); any == nil {
				any = eq
			} else {
				any = logical{or: true, x: any, y: eq}
			}
		}
		return any
	case comparison:
		if n.op == "<>" {
			return not{comparison{"=", n.y, n.x}}
		}
		return comparison{mirrored[n.op], n.y, n.x}
	}
	return n
}

func sameAttribute(x, y node) bool {
	a, ok := x.(attribute)
	return ok && y == a
}

func negated(n node) node { return not{rewritten(n)} }

// FuzzUpdate guards update expressions: nothing but documented errors; all
// actions see the item as it was, in whatever order they are written; they change
// the attributes that they name and no others, and what they leave could be
// stored as it is.
func FuzzUpdate(f *testing.F) {
	for _, seed := range []string{
		"SET a = if_not_exists(b, :n) + :n, c = list_append(c, :l) REMOVE #a",
		"SET b = b + :n, d = d - :m REMOVE e, f ADD c :ns",
		"ADD b :n DELETE d :set", "ADD d :set, f :n", "DELETE c :ns", "DELETE d :s", "ADD a :null",
		"SET a = (a - (b + :n))", "SET c = list_append(:l, c), f = :null, e = a, a = e", "SET a = b SET b = a",
		"SET a = if_not_exists(f, if_not_exists(a, :s))", "SET a = list_append(b + :n, :l)", "SET a = :s, a = :x", "REMOVE a.b",
		"set a=:s remove b add d :set delete c :ns", "SET b = b + b", "SET a = size(b)", "SET", "REMOVE",
	} {
		f.Add(seed, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, expression string, salt []byte) {
		actions, err := parseUpdate(expression, fuzzPlaceholders(t))
		if err != nil {
			documented(t, expression, err)
			return
		}
		other, ok := again(t, actions, (*writer).update, parseUpdate, salt)
		backward := slices.Clone(actions)
		slices.Reverse(backward)
		reversed, alsoOK := again(t, backward, (*writer).update, parseUpdate, salt)
		if ok && !reflect.DeepEqual(other, actions) || alsoOK && !reflect.DeepEqual(reversed, backward) {
			t.Fatalf("%q in other words is %#v, and backward %#v", expression, other, reversed)
		}
		for _, it := range fuzzItems {
			if it == nil {
				it = item{} // see change.run
			}
			before := clone(it)
			after, err := apply(actions, it)
			if !reflect.DeepEqual(it, before) {
				t.Fatalf("%q changes the item as it was: %v", expression, it)
			}
			inReverse, otherErr := apply(backward, it)
			if (err == nil) != (otherErr == nil) || err == nil && !reflect.DeepEqual(after, inReverse) {
				t.Fatalf("%q makes %v, %v of %v; backward %v, %v", expression, after, err, it, inReverse, otherErr)
			}
			if err != nil {
				documented(t, expression, err)
				continue
			}
			checkApplied(t, expression, actions, it, after)
		}
	})
}

// checkApplied checks what actions have left of an item.
func checkApplied(t *testing.T, expression string, actions []action, before, after item) {
	if stored, err := canonicalItem(after); err != nil || !reflect.DeepEqual(stored, after) {
		t.Fatalf("%q leaves %v, which cannot be stored: %v", expression, after, err)
	}
	rest := maps.Clone(after)
	untouched := maps.Clone(before)
	for _, a := range actions {
		name := string(a.path)
		delete(rest, name)
		delete(untouched, name)
		was, is := before[name], after[name]
		ok := true
		switch a.clause {
		case "SET":
			ok = is != nil
			if from, copied := a.value.(attribute); copied {
				ok = ok && equal(is, before[string(from)])
			}
		case "REMOVE":
			ok = is == nil
		case "ADD":
			v := a.value.(literal).value
			if was == nil {
				ok = equal(is, v)
			}
			for _, m := range append(setMembers(was), setMembers(v)...) {
				ok = ok && slices.Contains(setMembers(is), m)
			}
		case "DELETE":
			gone := setMembers(a.value.(literal).value)
			for _, m := range setMembers(was) {
				ok = ok && slices.Contains(setMembers(is), m) != slices.Contains(gone, m)
			}
			ok = ok && (is == nil || len(setMembers(is)) > 0)
		}
		if !ok {
			t.Fatalf("%q: %s %s makes %#v of %#v", expression, a.clause, name, is, was)
		}
	}
	if !reflect.DeepEqual(rest, untouched) {
		t.Fatalf("%q leaves %v of %v, which it does not name", expression, rest, untouched)
	}
}

// FuzzProjection guards projections: nothing but documented errors, and of an
// item the attributes that are named, in whatever order, and no others.
func FuzzProjection(f *testing.F) {
	for _, seed := range []string{"a, b, #a", "a,b , f", "#a", "a, a", "a.b", "c[0]", "a,", ",", "name", ":s", "a b"} {
		f.Add(seed, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, expression string, salt []byte) {
		paths, err := parseProjection(expression, fuzzPlaceholders(t))
		if err != nil {
			documented(t, expression, err)
			return
		}
		backward := slices.Clone(paths)
		slices.Reverse(backward)
		other, ok := again(t, backward, (*writer).projection, parseProjection, salt)
		if ok && !slices.Equal(other, backward) {
			t.Fatalf("%q in other words, and backward, is %q", expression, other)
		}
		for _, it := range fuzzItems {
			got := project(it, paths)
			if (got == nil) != (it == nil) {
				t.Fatalf("%q of %v is %v", expression, it, got)
			}
			for name, v := range it {
				if want := slices.Contains(paths, attribute(name)); want != (got[name] != nil) || want && !equal(got[name], v) && v != nil {
					t.Fatalf("%q of %v is %v", expression, it, got)
				}
			}
			for name := range got {
				if it[name] == nil {
					t.Fatalf("%q of %v is %v", expression, it, got)
				}
			}
		}
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
