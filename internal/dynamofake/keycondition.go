package dynamofake

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A keyCondition is what a KeyConditionExpression comes down to: one partition,
// and perhaps a condition on the sort key.
type keyCondition struct {
	hash types.AttributeValue
	sort node // nil for the whole partition
}

// newKeyCondition takes the parsed expression apart; only AND may connect its
// conditions, one for each key attribute.
func newKeyCondition(n node, s *schema) (keyCondition, error) {
	var kc keyCondition
	seen := make(map[attribute]bool)
	for _, part := range conjuncts(n) {
		name, values, normal, err := keyPart(part)
		if err != nil {
			return kc, err
		}
		if seen[name] {
			return kc, invalid("KeyConditionExpressions must only contain one condition per key")
		}
		seen[name] = true
		i := keyIndex(s, name)
		if i < 0 {
			return kc, invalid("Query condition missed key schema element")
		}
		for _, v := range values {
			if typeOf(v) != s.keys[i].typ {
				return kc, invalid("One or more parameter values were invalid: Condition parameter type does not match schema type")
			}
			if err := checkKeyValue(string(name), v, i == 0); err != nil {
				return kc, err
			}
		}
		if i == 1 {
			kc.sort = normal
			continue
		}
		equality, ok := normal.(comparison)
		if !ok || equality.op != "=" {
			return kc, invalid("Query key condition not supported")
		}
		kc.hash = values[0]
	}
	if kc.hash == nil {
		return kc, invalid("Query condition missed key schema element: %s", s.keys[0].name)
	}
	return kc, nil
}

func conjuncts(n node) []node {
	if l, ok := n.(logical); ok && !l.or {
		return append(conjuncts(l.x), conjuncts(l.y)...)
	}
	return []node{n}
}

func keyIndex(s *schema, name attribute) int {
	for i, k := range s.keys {
		if k.name == string(name) {
			return i
		}
	}
	return -1
}

var mirrored = map[kind]kind{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// keyPart checks one condition. It returns the attribute, the values it is
// compared with, and the condition with the attribute on the left.
func keyPart(n node) (attribute, []types.AttributeValue, node, error) {
	var x node
	var operands []node
	switch n := n.(type) {
	case comparison:
		mirror, ok := mirrored[n.op]
		if !ok {
			return "", nil, nil, invalid("Invalid operator used in KeyConditionExpression: %s", n.op)
		}
		x, operands = n.x, []node{n.y}
		if _, ok := n.x.(literal); ok {
			x, operands = n.y, []node{n.x}
			return keyOperands(x, operands, comparison{op: mirror, x: n.y, y: n.x})
		}
	case between:
		x, operands = n.x, []node{n.low, n.high}
	case call:
		if n.function != "begins_with" {
			return "", nil, nil, invalid("Invalid operator used in KeyConditionExpression: %s", n.function)
		}
		x, operands = n.args[0], n.args[1:]
	default:
		return "", nil, nil, invalid("Invalid operator used in KeyConditionExpression")
	}
	return keyOperands(x, operands, n)
}

func keyOperands(x node, operands []node, n node) (attribute, []types.AttributeValue, node, error) {
	name, ok := x.(attribute)
	if !ok {
		return "", nil, nil, invalid("Invalid condition in KeyConditionExpression: No key attribute specified")
	}
	var values []types.AttributeValue
	for _, o := range operands {
		l, ok := o.(literal)
		if !ok {
			return "", nil, nil, invalid("Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition")
		}
		values = append(values, l.value)
	}
	return name, values, n, nil
}
