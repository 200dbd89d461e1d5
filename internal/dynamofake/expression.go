package dynamofake

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

// A node is a part of a parsed expression: one of the types below. Placeholders
// are resolved while parsing.
type node any

type (
	// attribute is a document path: the name of a top-level attribute, and that of an
	// entry of it, which is a map, or "".
	attribute struct{ name, entry string }
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

// expressions are the expressions of one request with what they refer to. The
// fields that the request does not have are nil.
type expressions struct {
	names                                    map[string]string
	values                                   item
	condition, filter, key, update           *string
	parsedCondition, parsedFilter, parsedKey node
	parsedUpdate                             []action
	filtered                                 []attribute // which the filter refers to
}

// parse parses them all; what parses is ready for evaluation.
func (e *expressions) parse() error {
	p, err := newPlaceholders(e.names, e.values)
	if err != nil {
		return err
	}
	if e.update != nil {
		if e.parsedUpdate, err = parseUpdate(*e.update, p); err != nil {
			return err
		}
	}
	for _, c := range []struct {
		source *string
		parsed *node
	}{{e.condition, &e.parsedCondition}, {e.key, &e.parsedKey}, {e.filter, &e.parsedFilter}} {
		if c.source == nil {
			continue
		}
		p.mentioned = nil
		if *c.parsed, err = parseCondition(*c.source, p); err != nil {
			return err
		}
	}
	if e.filter != nil {
		e.filtered = p.mentioned
	}
	return p.finish()
}

// A placeholders resolves #names and :values, and knows which were used: the API
// refuses a request with any that is not.
type placeholders struct {
	names     map[string]string
	values    item
	used      map[string]bool
	mentioned []attribute // by the expression that is being parsed
}

func newPlaceholders(names map[string]string, values item) (*placeholders, error) {
	p := &placeholders{names: names, values: make(item, len(values)), used: make(map[string]bool)}
	if names != nil && len(names) == 0 {
		return nil, invalid("ExpressionAttributeNames must not be empty")
	}
	if values != nil && len(values) == 0 {
		return nil, invalid("ExpressionAttributeValues must not be empty")
	}
	for name, attr := range names {
		if !isPlaceholder('#', name) || attr == "" {
			return nil, invalid("ExpressionAttributeNames contains invalid key or value: %q: %q", name, attr)
		}
	}
	for name, v := range values {
		c, err := canonical(v, 0)
		if err != nil || !isPlaceholder(':', name) {
			return nil, invalid("ExpressionAttributeValues contains invalid key or value: %q: %v", name, err)
		}
		p.values[name] = c
	}
	return p, nil
}

func isPlaceholder(sigil byte, s string) bool {
	return len(s) > 1 && s[0] == sigil && wordLen(s[1:]) == len(s)-1
}

func (a attribute) String() string {
	if a.entry == "" {
		return a.name
	}
	return a.name + "." + a.entry
}

func (p *placeholders) name(placeholder string) (string, error) {
	name, ok := p.names[placeholder]
	if !ok {
		return "", invalid("An expression attribute name used in the document path is not defined; attribute name: %s", placeholder)
	}
	p.used[placeholder] = true
	return name, nil
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
