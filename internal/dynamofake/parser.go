package dynamofake

import "slices"

// A parser reads tokens by recursive descent. An expression is at most
// [maxExpression] long, which bounds the depth.
type parser struct {
	tokens  []token // what is left; never without the end
	grouped bool    // what was read last is one pair of parentheses
	*placeholders
}

func newParser(s string, p *placeholders) (*parser, error) {
	tokens, err := lex(s)
	if err != nil {
		return nil, err
	}
	return &parser{tokens: tokens, placeholders: p}, nil
}

func (p *parser) peek() token { return p.tokens[0] }

func (p *parser) next() token {
	t := p.tokens[0]
	if t.kind != kindEnd {
		p.tokens = p.tokens[1:]
	}
	return t
}

// accept takes the next token if it is of that kind.
func (p *parser) accept(k kind) bool {
	if p.peek().kind != k {
		return false
	}
	p.next()
	return true
}

func (p *parser) acceptKeyword(keyword string) bool {
	if !p.peek().is(keyword) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(k kind) error {
	if !p.accept(k) {
		return syntaxError(p.peek().text)
	}
	return nil
}

// attribute reads the path of an attribute.
func (p *parser) attribute() (attribute, error) {
	var name attribute
	switch t := p.next(); t.kind {
	case kindName:
		var err error
		if name, err = p.name(t.text); err != nil {
			return "", err
		}
	case kindWord:
		if isReserved(t.text) {
			return "", invalid("Attribute name is a reserved keyword; reserved keyword: %s", t.text)
		}
		name = attribute(t.text)
	default:
		return "", syntaxError(t.text)
	}
	if k := p.peek().kind; k == "." || k == "[" {
		return "", unsupported("a document path")
	}
	return name, nil
}

// operand reads a path, a value or a function call; what its operands may be is
// checked by those who know which functions there are.
func (p *parser) operand() (node, error) {
	switch t := p.peek(); {
	case t.kind == kindValue:
		p.next()
		return asNode(p.value(t.text))
	case t.kind == kindWord && p.tokens[1].kind == "(":
		p.tokens = p.tokens[2:]
		args, err := p.list(p.operand)
		return call{function: t.text, args: args}, err
	}
	return asNode(p.attribute())
}

// list reads operands up to the closing parenthesis.
func (p *parser) list(operand func() (node, error)) ([]node, error) {
	var list []node
	for {
		x, err := operand()
		if err != nil {
			return nil, err
		}
		list = append(list, x)
		if !p.accept(",") {
			return list, p.expect(")")
		}
	}
}

// asNode keeps a failure from becoming a node that is not nil.
func asNode[N node](n N, err error) (node, error) {
	if err != nil {
		return nil, err
	}
	return n, nil
}

// parseCondition parses a ConditionExpression, a FilterExpression or a
// KeyConditionExpression.
func parseCondition(s string, names *placeholders) (node, error) {
	p, err := newParser(s, names)
	if err != nil {
		return nil, err
	}
	c, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.peek().kind != kindEnd {
		return nil, syntaxError(p.peek().text)
	}
	if err := checkCondition(c); err != nil {
		return nil, err
	}
	return c, nil
}

func (p *parser) or() (node, error) {
	return p.logical("OR", func() (node, error) { return p.logical("AND", p.not) })
}

// logical reads operands with AND or OR between them. What comes out is an
// operand, not a condition, if there was nothing else: the opening parenthesis
// does not tell which it will be.
func (p *parser) logical(keyword string, operand func() (node, error)) (node, error) {
	x, err := operand()
	if err != nil {
		return nil, err
	}
	for p.acceptKeyword(keyword) {
		y, err := operand()
		if err != nil {
			return nil, err
		}
		x = logical{or: keyword == "OR", x: x, y: y}
		p.grouped = false
	}
	return x, nil
}

func (p *parser) not() (node, error) {
	if p.acceptKeyword("NOT") {
		x, err := p.not()
		p.grouped = false
		return not{x}, err
	}
	return p.comparison()
}

var comparators = []kind{"=", "<>", "<", "<=", ">", ">="}

func (p *parser) comparison() (node, error) {
	x, err := p.atom()
	if err != nil || isCondition(x) {
		return x, err
	}
	switch t := p.peek(); {
	case slices.Contains(comparators, t.kind):
		p.next()
		y, err := p.atom()
		p.grouped = false
		return comparison{op: t.kind, x: x, y: y}, err
	case p.acceptKeyword("BETWEEN"):
		low, err := p.atom()
		if err != nil {
			return nil, err
		}
		if !p.acceptKeyword("AND") {
			return nil, syntaxError(p.peek().text)
		}
		high, err := p.atom()
		p.grouped = false
		return between{x: x, low: low, high: high}, err
	case p.acceptKeyword("IN"):
		if err := p.expect("("); err != nil {
			return nil, err
		}
		list, err := p.list(p.operand)
		p.grouped = false
		return in{x: x, list: list}, err
	}
	return x, nil
}

// atom reads an operand, or a condition in parentheses.
func (p *parser) atom() (node, error) {
	if !p.accept("(") {
		p.grouped = false
		return p.operand()
	}
	x, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.grouped {
		return nil, invalid("The expression has redundant parentheses;")
	}
	p.grouped = true
	return x, p.expect(")")
}
