package dynamofake

import "slices"

// A parser reads tokens by recursive descent. An expression is at most
// [maxExpression] long, which bounds the depth.
type parser struct {
	tokens  []token // what is left; never without the end
	grouped bool    // what was read last is one pair of parentheses
	*placeholders
}

// parse parses an expression to its end.
func parse[T any](s string, names *placeholders, read func(*parser) (T, error)) (T, error) {
	var none T
	tokens, err := lex(s)
	if err != nil {
		return none, err
	}
	p := &parser{tokens: tokens, placeholders: names}
	parsed, err := read(p)
	if err != nil {
		return none, err
	}
	return parsed, p.expect(kindEnd)
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

// attribute reads a document path: the name of an attribute, or of an entry of one.
func (p *parser) attribute() (a attribute, err error) {
	if a.name, err = p.pathPart(); err != nil {
		return attribute{}, err
	}
	if p.accept(".") {
		if a.entry, err = p.pathPart(); err != nil {
			return attribute{}, err
		}
	}
	if p.peek().kind == "." {
		return attribute{}, unsupported("a document path of more than two parts")
	}
	p.mentioned = append(p.mentioned, a)
	return a, nil
}

// pathPart reads one name. Only #placeholders are known: the API refuses many words, and
// the fake has no list of them.
func (p *parser) pathPart() (string, error) {
	switch t := p.next(); t.kind {
	case kindName:
		return p.name(t.text)
	case kindWord:
		return "", unsupported("an attribute without a #placeholder: " + t.text)
	default:
		return "", syntaxError(t.text)
	}
}

// operand reads a name, a value or a function call; what its operands may be is
// checked afterwards.
func (p *parser) operand() (node, error) {
	t := p.peek()
	switch {
	case t.kind == kindValue:
		p.next()
		return asNode(p.value(t.text))
	case t.kind != kindWord || p.tokens[1].kind != "(":
		return asNode(p.attribute())
	}
	p.tokens = p.tokens[2:]
	n := call{function: t.text}
	for {
		x, err := p.operand()
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, x)
		if !p.accept(",") {
			break
		}
	}
	if operands, known := functions[n.function]; !known {
		return nil, unsupported("the function " + n.function)
	} else if operands != len(n.args) {
		return nil, invalid("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", n.function, len(n.args))
	}
	return n, p.expect(")")
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
	c, err := parse(s, names, (*parser).or)
	if err != nil {
		return nil, err
	}
	return c, checkCondition(c)
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
	case t.is("IN"):
		return nil, unsupported("the operator IN")
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
