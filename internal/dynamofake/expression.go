package dynamofake

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

// A node is a part of a parsed expression: one of the types below. Placeholders
// are resolved while parsing.
type node any

type (
	// attribute is the name of a top-level attribute.
	attribute string
	// literal is a value from ExpressionAttributeValues.
	literal struct{ value types.AttributeValue }
	// call is a function with its operands.
	call struct {
		function string
		args     []node
	}
	// comparison has an operator of = <> < <= > >=.
	comparison struct {
		op   kind
		x, y node
	}
	between struct{ x, low, high node }
	in      struct {
		x    node
		list []node
	}
	// logical is x AND y or x OR y.
	logical struct {
		or   bool
		x, y node
	}
	not struct{ x node }
	// arithmetic is x + y or x - y, in update expressions only.
	arithmetic struct {
		op   kind
		x, y node
	}
)

// A placeholders resolves #names and :values, and knows which were used: the API
// refuses a request with any that is not.
type placeholders struct {
	names  map[string]string
	values item
	used   map[string]bool
}

func newPlaceholders(names map[string]string, values item) (*placeholders, error) {
	p := &placeholders{names: names, used: make(map[string]bool)}
	if names != nil && len(names) == 0 {
		return nil, invalid("ExpressionAttributeNames must not be empty")
	}
	if values != nil && len(values) == 0 {
		return nil, invalid("ExpressionAttributeValues must not be empty")
	}
	for name, attr := range names {
		if !isPlaceholder('#', name) {
			return nil, invalid("ExpressionAttributeNames contains invalid key: Syntax error; key: %q", name)
		}
		if attr == "" {
			return nil, invalid("ExpressionAttributeNames contains invalid value: Empty attribute name for key %s", name)
		}
	}
	p.values = make(item, len(values))
	for name, v := range values {
		if !isPlaceholder(':', name) {
			return nil, invalid("ExpressionAttributeValues contains invalid key: Syntax error; key: %q", name)
		}
		c, err := canonical(v, 0)
		if err != nil {
			return nil, invalid("ExpressionAttributeValues contains invalid value for key %s: %v", name, err)
		}
		p.values[name] = c
	}
	return p, nil
}

func isPlaceholder(sigil byte, s string) bool {
	return len(s) > 1 && s[0] == sigil && wordLen(s[1:]) == len(s)-1
}

func (p *placeholders) name(placeholder string) (attribute, error) {
	name, ok := p.names[placeholder]
	if !ok {
		return "", invalid("An expression attribute name used in the document path is not defined; attribute name: %s", placeholder)
	}
	p.used[placeholder] = true
	return attribute(name), nil
}

func (p *placeholders) value(placeholder string) (literal, error) {
	v, ok := p.values[placeholder]
	if !ok {
		return literal{}, invalid("An expression attribute value used in expression is not defined; attribute value: %s", placeholder)
	}
	p.used[placeholder] = true
	return literal{v}, nil
}

// finish fails if anything was left unused.
func (p *placeholders) finish() error {
	for name := range p.names {
		if !p.used[name] {
			return invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}", name)
		}
	}
	for name := range p.values {
		if !p.used[name] {
			return invalid("Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}", name)
		}
	}
	return nil
}
