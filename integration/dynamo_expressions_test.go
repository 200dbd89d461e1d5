package integration_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// condition returns a condition on any attribute, the key among them.
func (g *generator) condition(r *request, depth int) string {
	if depth == 0 || g.often(4) {
		return g.simple(r, append(slices.Clone(attributes), "id", "ghost"))
	}
	switch g.IntN(3) {
	case 0:
		return "NOT (" + g.condition(r, depth-1) + ")"
	case 1:
		// A part in parentheses, a part without.
		return "(" + g.condition(r, depth-1) + ") " + pick(g, "AND", "OR", "or") + " " + g.simple(r, attributes)
	}
	return g.simple(r, attributes) + " " + pick(g, "AND", "OR", "and") + " NOT " + g.simple(r, attributes) +
		" " + pick(g, "AND", "OR") + " " + g.simple(r, attributes)
}

// simple returns a condition without AND, OR and NOT.
func (g *generator) simple(r *request, from []string) string {
	attribute := pick(g, from...)
	path := g.path(r, attribute)
	switch g.IntN(12) {
	case 0, 1:
		return pick(g, "attribute_exists", "attribute_not_exists") + "(" + path + ")"
	case 2:
		// dynalite finds no type in a BOOL that is false.
		return "attribute_type(" + path + ", " + r.literal(text(pick(g, "S", "N", "B", "NULL", "SS", "NS", "BS", "L", "M"))) + ")"
	case 3:
		if attribute != "wide" {
			return "begins_with(" + path + ", " + r.literal(g.stringOrBinary()) + ")"
		}
	case 4:
		// A list or a set may be a member of a list, but not in dynalite.
		if attribute != "wide" {
			return "contains(" + path + ", " + r.literal(g.scalar()) + ")"
		}
	case 5:
		if attribute != "wide" && attribute != "id" {
			return "size(" + path + ") " + pick(g, "=", "<>", "<", "<=", ">", ">=") + " " + r.literal(g.number())
		}
	case 6:
		low, high := g.bounds(r)
		return path + " BETWEEN " + low + " AND " + high
	case 7:
		var list []string
		for range 1 + g.IntN(3) {
			list = append(list, r.literal(g.like(r, attribute, "S", "N", "B", "SS", "NS", "BS", "NULL")))
		}
		return path + " IN (" + strings.Join(list, ", ") + ")"
	case 8:
		if other := pick(g, from...); g.comparable(r, attribute, other) {
			return path + " " + pick(g, "=", "<>", "<", "<=", ">", ">=") + " " + g.path(r, other)
		}
	case 9:
		// Lists and maps are never equal in dynalite.
		x, y := path, r.literal(g.like(r, attribute, "S", "N", "B", "SS", "NS", "BS", "NULL", "BOOL"))
		if g.often(2) {
			x, y = y, x
		}
		return x + pick(g, "=", " <> ") + y
	}
	// Only these have an order; dynalite does not refuse the others.
	return path + pick(g, "=", " <> ", "<", " <= ", ">", " >= ") + r.literal(g.like(r, attribute, "S", "N", "B"))
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func (g *generator) stringOrBinary() types.AttributeValue {
	for {
		if v := g.scalar(); typeName(v) != "N" {
			return v
		}
	}
}

// bounds returns two literals, now and then of two types or in the wrong order.
func (g *generator) bounds(r *request) (low, high string) {
	if g.often(2) {
		return r.literal(g.scalar()), r.literal(g.scalar())
	}
	pairs := [][2]types.AttributeValue{
		{text("a"), text("b")},
		{text("1"), text("z")},
		{&types.AttributeValueMemberN{Value: "-1"}, &types.AttributeValueMemberN{Value: "9.5"}},
		{&types.AttributeValueMemberB{Value: []byte("a")}, &types.AttributeValueMemberB{Value: []byte("b")}},
	}
	pair := pick(g, pairs...)
	return r.literal(pair[0]), r.literal(pair[1])
}

// like returns a value of one of the types, often the one that the item has.
func (g *generator) like(r *request, attribute string, allowed ...string) types.AttributeValue {
	if v := r.present[attribute]; v != nil && g.often(6) && slices.Contains(allowed, typeName(v)) {
		return v
	}
	for {
		if v := g.valueFor(attribute); slices.Contains(allowed, typeName(v)) {
			return v
		}
	}
}

// comparable keeps path against path to what dynalite can compare: it takes two
// missing attributes for equal, and has an order of its own for types that have
// none.
func (g *generator) comparable(r *request, x, y string) bool {
	ordered := func(name string) bool {
		return slices.Contains([]string{"", "S", "N", "B"}, typeName(r.present[name]))
	}
	return !r.many && (r.present[x] != nil || r.present[y] != nil) && ordered(x) && ordered(y)
}

func typeName(v types.AttributeValue) string {
	if v == nil {
		return ""
	}
	_, name, _ := strings.Cut(fmt.Sprintf("%T", v), "Member")
	return name
}

// updateExpression returns actions on distinct attributes.
func (g *generator) updateExpression(r *request) string {
	targets := slices.Clone(attributes)
	g.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
	targets = targets[:1+g.IntN(3)]
	clauses := make(map[string][]string)
	// dynalite lets SET a = b ADD b :n change both.
	changed := make(map[string]bool)
	var sets []string
	for _, target := range targets {
		clause := pick(g, "SET", "SET", "SET", "REMOVE", "ADD", "DELETE")
		if target == "wide" && clause != "REMOVE" {
			clause = "SET"
		}
		switch clause {
		case "SET":
			sets = append(sets, target)
		case "REMOVE":
			clauses[clause] = append(clauses[clause], g.path(r, target))
		case "ADD":
			changed[target] = true
			clauses[clause] = append(clauses[clause], g.path(r, target)+" "+r.literal(g.addend(r, target)))
		case "DELETE":
			changed[target] = true
			clauses[clause] = append(clauses[clause], g.path(r, target)+" "+r.literal(g.set(g.setType(r, target))))
		}
	}
	// A service creates no item to take something away from; dynalite does.
	if r.present == nil && len(sets) == 0 && len(clauses["ADD"]) == 0 {
		sets = append(sets, "ghost")
	}
	for _, target := range sets {
		clauses["SET"] = append(clauses["SET"], g.path(r, target)+pick(g, "=", " = ")+g.newValue(r, target, changed))
	}
	var parts []string
	for clause, actions := range clauses {
		parts = append(parts, clause+" "+strings.Join(actions, ", "))
	}
	// Maps have no order, which a seed must repeat.
	slices.Sort(parts)
	g.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return strings.Join(parts, " ")
}

func (g *generator) setType(r *request, target string) string {
	if typ := typeName(r.present[target]); g.often(8) && strings.HasSuffix(typ, "S") && typ != "S" {
		return typ
	}
	return pick(g, "SS", "NS", "BS")
}

func (g *generator) addend(r *request, target string) types.AttributeValue {
	typ := typeName(r.present[target])
	if r.summable(target) && (typ == "N" || typ == "" && g.often(5)) {
		return g.small()
	}
	return g.set(g.setType(r, target))
}

// small numbers keep sums within 38 digits: dynalite knows no limit there.
func (g *generator) small() types.AttributeValue {
	return &types.AttributeValueMemberN{Value: pick(g, "1", "-1", "2.5", "100", "0")}
}

// summable tells whether an attribute may be an operand of + and -.
func (r *request) summable(attribute string) bool {
	n, ok := r.present[attribute].(*types.AttributeValueMemberN)
	return !ok || len(n.Value) < 20
}

func (g *generator) newValue(r *request, target string, changed map[string]bool) string {
	if target == "wide" {
		return r.literal(g.wide())
	}
	source := pick(g, "a", "b", "c", "d", "n", "n")
	if changed[source] {
		source = "id"
	}
	switch g.IntN(8) {
	case 0:
		return g.path(r, source)
	case 1:
		if r.summable(source) {
			return g.path(r, source) + pick(g, " + ", " - ", "+", "-") + r.literal(g.small())
		}
	case 2:
		return r.literal(g.small()) + pick(g, " + ", " - ") + r.literal(g.small())
	case 3:
		if r.summable(source) {
			return "if_not_exists(" + g.path(r, source) + ", " + r.literal(g.small()) + ") + " + r.literal(g.small())
		}
	case 4:
		return "if_not_exists(" + g.path(r, source) + ", " + r.literal(g.valueFor(target)) + ")"
	case 5:
		item := &types.AttributeValueMemberL{Value: []types.AttributeValue{g.scalar()}}
		return "list_append(" + g.path(r, source) + ", " + r.literal(item) + ")"
	}
	return r.literal(g.valueFor(target))
}

// bad returns a request that is wrong in one way or another, though not always:
// the sides must agree on that too.
func (g *generator) bad(r *request) any {
	in := g.update(r)
	switch g.IntN(16) {
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
		in.ExpressionAttributeValues = maps.Clone(r.values)
		if in.ExpressionAttributeValues == nil {
			in.ExpressionAttributeValues = make(attributeMap)
		}
		in.ExpressionAttributeValues[":unused"] = text("x")
	case 6:
		in.ExpressionAttributeNames = map[string]string{"#unused": "a"}
	case 7:
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = nil, nil
	case 8:
		in.UpdateExpression = aws.String("SET " + pick(g, "owner", "status", "Name", "ttl", "value", "range", "id") + " = " + r.literal(text("x")))
		in.ExpressionAttributeValues = r.values
	case 9:
		in.ConditionExpression = aws.String("")
	case 10:
		in.ExpressionAttributeNames = map[string]string{}
	case 11:
		in.UpdateExpression, in.ConditionExpression = aws.String("SET a = :x"), nil
		in.ExpressionAttributeNames = nil
		in.ExpressionAttributeValues = attributeMap{":x": g.badValue()}
	case 12:
		in.UpdateExpression, in.ConditionExpression = aws.String(pick(g, badUpdates...)), nil
		in.ExpressionAttributeNames = nil
		in.ExpressionAttributeValues = attributeMap{":x": text("x"), ":one": &types.AttributeValueMemberN{Value: "1"}}
	case 13:
		return &dynamodb.PutItemInput{TableName: in.TableName, Item: r.key, ReturnValues: types.ReturnValueAllNew}
	case 14:
		return g.badQuery(r)
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

var badUpdates = []string{
	"", "SET", "SET a", "SET a = ", "SET a = :x SET b = :one", "SET a = :x, a = :one", "SET a = :x REMOVE a", "a = :x", "SET a = :x,",
	"SET a = :x + :one", "SET a = :one + :one + :one", "SET a = size(b)", "SET a = unknown(b)", "SET a = if_not_exists(:x, :one)",
	"SET a = if_not_exists(b)", "ADD a :x", "DELETE a :one", "ADD a b", "ADD a = :one", "REMOVE a b", "REMOVE :x", "SET :x = a",
	"SET a = list_append(:x, :one)", "SET a = attribute_exists(b)", "SET a = :x AND b = :one", "REMOVE", "SET a = b c", "SET a == :x",
}

func (g *generator) badQuery(r *request) *dynamodb.QueryInput {
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
		in.FilterExpression = aws.String("attribute_exists(id)")
	default:
		in.ExclusiveStartKey = attributeMap{"other": text("x")}
	}
	return in
}

// soup returns a condition of random tokens on an item that is there. Its only
// path is that of the key, for dynalite takes two missing attributes for equal.
func (g *generator) soup(r *request) *dynamodb.UpdateItemInput {
	in := &dynamodb.UpdateItemInput{TableName: &r.table.name, Key: r.key}
	if r.present == nil || typeName(r.key["id"]) == "N" { // which has no size
		return in
	}
	tokens := []string{
		"id", "id", ":v", ":v", "#id", "(", ")", "=", "<>", "<", ">=", "AND", "OR", "NOT", "BETWEEN", "IN", ",",
		"attribute_exists", "attribute_exists(id)", "begins_with", "contains", "size", "and", "+",
	}
	var words []string
	for range 2 + g.IntN(8) {
		word := pick(g, tokens...)
		// Two in a row are good English for dynalite only.
		if len(words) > 0 && word == "NOT" && words[len(words)-1] == "NOT" {
			continue
		}
		words = append(words, word)
	}
	expression := strings.Join(words, " ")
	in.ConditionExpression = &expression
	if slices.Contains(words, ":v") {
		in.ExpressionAttributeValues = attributeMap{":v": text("1")}
	}
	if slices.Contains(words, "#id") {
		in.ExpressionAttributeNames = map[string]string{"#id": "id"}
	}
	return in
}
