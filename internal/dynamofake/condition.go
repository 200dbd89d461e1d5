package dynamofake

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// functions are those that the fake knows, with the number of their operands.
var functions = map[string]int{
	"attribute_exists": 1, "attribute_not_exists": 1, "attribute_type": 2, "begins_with": 2, // conditions
	"size":          1, // an operand of conditions
	"if_not_exists": 2, // an operand of SET
}

func isCondition(n node) bool {
	switch n.(type) {
	case logical, not, comparison, between:
		return true
	}
	return false
}

// checkCondition refuses what the API refuses before it looks at any item. Only
// literals have a type by then.
func checkCondition(n node) error {
	switch n := n.(type) {
	case logical:
		return firstOf(checkCondition(n.x), checkCondition(n.y))
	case not:
		return checkCondition(n.x)
	case comparison:
		if err := firstOf(checkOperand(n.x), checkOperand(n.y), checkDistinct(string(n.op), n.x, n.y)); err != nil {
			return err
		}
		if n.op == "=" || n.op == "<>" {
			return nil
		}
		return firstOf(checkOrdered(n.x), checkOrdered(n.y))
	case between:
		for _, x := range []node{n.x, n.low, n.high} {
			if err := firstOf(checkOperand(x), checkOrdered(x)); err != nil {
				return err
			}
		}
		return checkBounds(n)
	case call:
		if n.function != "size" && n.function != "if_not_exists" {
			return checkFunction(n)
		}
		return misused(n)
	}
	return invalid("Syntax error; a condition was expected")
}

// checkOperand lets pass what has a value.
func checkOperand(n node) error {
	switch n := n.(type) {
	case attribute, literal:
		return nil
	case call:
		if n.function == "size" {
			return checkFunction(n)
		}
		return misused(n)
	}
	return invalid("Syntax error; an operand was expected")
}

func misused(n call) error {
	return invalid("The function is not allowed to be used this way in an expression; function: %s", n.function)
}

// checkDistinct refuses to relate an attribute to itself.
func checkDistinct(operator string, x, y node) error {
	if a, ok := x.(attribute); ok && y == a {
		return invalid("The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: [%s]", operator, a)
	}
	return nil
}

func checkOrdered(n node) error {
	if typ := literalType(n); typ != "" && !ordered(typ) {
		return wrongType("a comparison", typ)
	}
	return nil
}

func checkBounds(n between) error {
	low, isLow := n.low.(literal)
	high, isHigh := n.high.(literal)
	if cmp, ok := order(low.value, high.value); isLow && isHigh && (!ok || cmp > 0) {
		return invalid("The BETWEEN operator requires same data type for lower and upper bounds, and an upper bound that is greater than or equal to the lower bound")
	}
	return nil
}

func checkFunction(n call) error {
	for _, x := range n.args {
		if err := checkOperand(x); err != nil {
			return err
		}
	}
	typ := staticType(n.args[len(n.args)-1])
	switch n.function {
	case "attribute_exists", "attribute_not_exists":
		return checkPath(n)
	case "attribute_type":
		name, ok := n.args[1].(literal)
		if !ok || typ != "S" {
			return wrongType(n.function, typ)
		}
		if t := name.value.(*types.AttributeValueMemberS).Value; !slices.Contains([]string{"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"}, t) {
			return invalid("Invalid attribute type name found; type: %s, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}", t)
		}
	case "begins_with":
		if first := staticType(n.args[0]); first != "" && first != "S" && first != "B" {
			return wrongType(n.function, first)
		}
		if typ != "" && typ != "S" && typ != "B" {
			return wrongType(n.function, typ)
		}
		return checkDistinct(n.function, n.args[0], n.args[1])
	case "size":
		if typ == "N" || typ == "BOOL" || typ == "NULL" {
			return wrongType(n.function, typ)
		}
	}
	return nil
}

func checkPath(n call) error {
	if _, ok := n.args[0].(attribute); !ok {
		return invalid("Operator or function requires a document path; operator or function: %s", n.function)
	}
	return nil
}

// literalType is the type of a literal; other nodes have none yet.
func literalType(n node) string {
	if l, ok := n.(literal); ok {
		return typeOf(l.value)
	}
	return ""
}

// staticType knows the result of size too.
func staticType(n node) string {
	if c, ok := n.(call); ok && c.function == "size" {
		return "N"
	}
	return literalType(n)
}

func wrongType(operator, typ string) error {
	return invalid("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", operator, typ)
}

// holds evaluates a condition that was checked; no condition (nil) holds.
func holds(n node, it item) bool {
	switch n := n.(type) {
	case logical:
		if n.or {
			return holds(n.x, it) || holds(n.y, it)
		}
		return holds(n.x, it) && holds(n.y, it)
	case not:
		return !holds(n.x, it)
	case comparison:
		return compare(n.op, valueOf(n.x, it), valueOf(n.y, it))
	case between:
		x := valueOf(n.x, it)
		return compare(">=", x, valueOf(n.low, it)) && compare("<=", x, valueOf(n.high, it))
	case call:
		return holdsFunction(n, it)
	}
	return true
}

// compare is false where one side is missing or of another type, but for <>,
// which is the opposite of = in every case.
func compare(op kind, x, y types.AttributeValue) bool {
	switch op {
	case "=":
		return equal(x, y)
	case "<>":
		return !equal(x, y)
	}
	cmp, ok := order(x, y)
	switch op {
	case "<":
		ok = ok && cmp < 0
	case "<=":
		ok = ok && cmp <= 0
	case ">":
		ok = ok && cmp > 0
	case ">=":
		ok = ok && cmp >= 0
	}
	return ok
}

func holdsFunction(n call, it item) bool {
	x := valueOf(n.args[0], it)
	switch n.function {
	case "attribute_exists":
		return x != nil
	case "attribute_not_exists":
		return x == nil
	}
	y := valueOf(n.args[1], it)
	if n.function == "attribute_type" {
		return typeOf(x) == y.(*types.AttributeValueMemberS).Value
	}
	return beginsWith(x, y)
}

// valueOf returns nil for what the item does not have.
func valueOf(n node, it item) types.AttributeValue {
	switch n := n.(type) {
	case attribute:
		return n.in(it)
	case literal:
		return n.value
	case call: // size, the only function with a value
		if size, ok := sizeFunction(valueOf(n.args[0], it)); ok {
			return &types.AttributeValueMemberN{Value: strconv.Itoa(size)}
		}
	}
	return nil
}

// in returns what an item has at a path; nil if nothing.
func (a attribute) in(it item) types.AttributeValue {
	v := it[a.name]
	if a.entry == "" {
		return v
	}
	if m, ok := v.(*types.AttributeValueMemberM); ok {
		return m.Value[a.entry]
	}
	return nil
}

// sizeFunction is size(v): other than the size that counts against limits, and
// none for a type that has no length.
func sizeFunction(v types.AttributeValue) (int, bool) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return utf8.RuneCountInString(v.Value), true // as dynalite and moto count
	case *types.AttributeValueMemberB:
		return len(v.Value), true
	case *types.AttributeValueMemberL:
		return len(v.Value), true
	case *types.AttributeValueMemberM:
		return len(v.Value), true
	}
	members := setMembers(v)
	return len(members), members != nil
}

func beginsWith(v, prefix types.AttributeValue) bool {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		p, ok := prefix.(*types.AttributeValueMemberS)
		return ok && strings.HasPrefix(v.Value, p.Value)
	case *types.AttributeValueMemberB:
		p, ok := prefix.(*types.AttributeValueMemberB)
		return ok && bytes.HasPrefix(v.Value, p.Value)
	}
	return false
}
