package dynamofake

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxOperands is how many operands IN takes, the first one included.
const maxOperands = 100

// functions are those of conditions, with the number of their operands.
var functions = map[string]int{
	"attribute_exists": 1, "attribute_not_exists": 1, "attribute_type": 2,
	"begins_with": 2, "contains": 2, "size": 1,
}

// updateFunctions are those of update expressions.
var updateFunctions = map[string]int{"if_not_exists": 2, "list_append": 2}

func isCondition(n node) bool {
	switch n.(type) {
	case logical, not, comparison, between, in:
		return true
	}
	return false
}

// checkCondition refuses what the API refuses before it looks at any item. Only
// literals have a type by then.
func checkCondition(n node) error {
	switch n := n.(type) {
	case logical:
		return checkAll(checkCondition, n.x, n.y)
	case not:
		return checkCondition(n.x)
	case comparison:
		if err := checkAll(checkOperand, n.x, n.y); err != nil {
			return err
		}
		if err := checkDistinct(string(n.op), n.x, n.y); err != nil {
			return err
		}
		if n.op == "=" || n.op == "<>" {
			return nil
		}
		return checkAll(checkOrdered, n.x, n.y)
	case between:
		if err := checkAll(checkOperand, n.x, n.low, n.high); err != nil {
			return err
		}
		if err := checkAll(checkOrdered, n.x, n.low, n.high); err != nil {
			return err
		}
		return checkBounds(n)
	case in:
		if 1+len(n.list) > maxOperands {
			return invalid("Invalid number of operands for operator IN: %d", 1+len(n.list))
		}
		return checkAll(checkOperand, append(slices.Clone(n.list), n.x)...)
	case call:
		if n.function == "size" {
			return misused(n)
		}
		return checkFunction(n)
	}
	return invalid("Syntax error; a condition was expected")
}

func checkAll(check func(node) error, nodes ...node) error {
	for _, n := range nodes {
		if err := check(n); err != nil {
			return err
		}
	}
	return nil
}

// checkOperand lets pass what has a value.
func checkOperand(n node) error {
	switch n := n.(type) {
	case attribute, literal:
		return nil
	case call:
		if n.function != "size" {
			return misused(n)
		}
		return checkFunction(n)
	}
	return invalid("Syntax error; an operand was expected")
}

func misused(n call) error {
	if _, ok := functions[n.function]; ok || updateFunctions[n.function] > 0 {
		return invalid("The function is not allowed to be used this way in an expression; function: %s", n.function)
	}
	return invalid("Invalid function name; function: %s", n.function)
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
	if !isLow || !isHigh {
		return nil
	}
	if cmp, ok := order(low.value, high.value); !ok || cmp > 0 {
		return invalid("The BETWEEN operator requires same data type for lower and upper bounds, and an upper bound that is greater than or equal to the lower bound")
	}
	return nil
}

func checkFunction(n call) error {
	operands, ok := functions[n.function]
	if !ok {
		return misused(n)
	}
	if len(n.args) != operands {
		return wrongCount(n)
	}
	if err := checkAll(checkOperand, n.args...); err != nil {
		return err
	}
	if len(n.args) == 2 {
		if err := checkDistinct(n.function, n.args[0], n.args[1]); err != nil {
			return err
		}
	}
	switch n.function {
	case "attribute_exists", "attribute_not_exists":
		return checkPath(n)
	case "attribute_type":
		return checkTypeName(n.args[1])
	case "begins_with":
		for _, arg := range n.args {
			if typ := staticType(arg); typ != "" && typ != "S" && typ != "B" {
				return wrongType(n.function, typ)
			}
		}
	case "size":
		if typ := staticType(n.args[0]); typ == "N" || typ == "BOOL" || typ == "NULL" {
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

func checkTypeName(n node) error {
	name, ok := n.(literal)
	if !ok {
		return wrongType("attribute_type", "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}")
	}
	s, ok := name.value.(*types.AttributeValueMemberS)
	if !ok {
		return wrongType("attribute_type", typeOf(name.value))
	}
	if !slices.Contains([]string{"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"}, s.Value) {
		return invalid("Invalid attribute type name found; type: %s, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}", s.Value)
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

func wrongCount(n call) error {
	return invalid("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", n.function, len(n.args))
}
