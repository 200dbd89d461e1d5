package dynamofake

import (
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// An action is one part of an update expression.
type action struct {
	clause string // SET, REMOVE, ADD or DELETE
	path   attribute
	value  node // of SET any expression, of ADD and DELETE a literal
}

// parseUpdate parses an UpdateExpression.
func parseUpdate(s string, names *placeholders) ([]action, error) {
	p, err := newParser(s, names)
	if err != nil {
		return nil, err
	}
	var actions []action
	seen := make(map[string]bool)
	for p.peek().kind != kindEnd {
		clause, err := p.clause()
		if err != nil {
			return nil, err
		}
		if seen[clause] {
			return nil, invalid("The %q section can only be used once in an update expression;", clause)
		}
		seen[clause] = true
		for {
			a, err := p.action(clause)
			if err != nil {
				return nil, err
			}
			actions = append(actions, a)
			if !p.accept(",") {
				break
			}
		}
	}
	if len(actions) == 0 {
		return nil, syntaxError(p.peek().text)
	}
	return actions, checkActions(actions)
}

func (p *parser) clause() (string, error) {
	for _, clause := range []string{"SET", "REMOVE", "ADD", "DELETE"} {
		if p.acceptKeyword(clause) {
			return clause, nil
		}
	}
	return "", syntaxError(p.peek().text)
}

func (p *parser) action(clause string) (action, error) {
	path, err := p.attribute()
	if err != nil {
		return action{}, err
	}
	a := action{clause: clause, path: path}
	switch clause {
	case "SET":
		if err := p.expect("="); err != nil {
			return action{}, err
		}
		a.value, err = p.setValue()
	case "ADD", "DELETE":
		t := p.peek()
		if err := p.expect(kindValue); err != nil {
			return action{}, err
		}
		a.value, err = asNode(p.value(t.text))
	}
	return a, err
}

// setValue reads one operand, or two with + or - between them.
func (p *parser) setValue() (node, error) {
	x, err := p.setOperand()
	if err != nil {
		return nil, err
	}
	op := p.peek().kind
	if op != "+" && op != "-" {
		return x, nil
	}
	p.next()
	y, err := p.setOperand()
	return arithmetic{op: op, x: x, y: y}, err
}

func (p *parser) setOperand() (node, error) {
	t := p.peek()
	switch {
	case p.accept("("):
		x, err := p.setValue()
		if err != nil {
			return nil, err
		}
		return x, p.expect(")")
	case t.kind == kindWord && p.tokens[1].kind == "(":
		p.tokens = p.tokens[2:]
		args, err := p.list(p.setOperand)
		return call{function: t.text, args: args}, err
	}
	return p.operand()
}

func checkActions(actions []action) error {
	paths := make(map[attribute]bool)
	for _, a := range actions {
		if paths[a.path] {
			return invalid("Two document paths overlap with each other; must remove or rewrite one of these paths; path: [%s]", a.path)
		}
		paths[a.path] = true
		switch typ := literalType(a.value); a.clause {
		case "SET":
			if err := checkSetValue(a.value); err != nil {
				return err
			}
		case "ADD":
			if !isSet(typ) && typ != "N" {
				return wrongType("ADD", typ)
			}
		case "DELETE":
			if !isSet(typ) {
				return wrongType("DELETE", typ)
			}
		}
	}
	return nil
}

func isSet(typ string) bool { return typ == "SS" || typ == "NS" || typ == "BS" }

func checkSetValue(n node) error {
	switch n := n.(type) {
	case arithmetic:
		for _, x := range []node{n.x, n.y} {
			if typ := literalType(x); typ != "" && typ != "N" {
				return wrongType(string(n.op), typ)
			}
		}
		return checkAll(checkSetValue, n.x, n.y)
	case call:
		operands, ok := updateFunctions[n.function]
		if !ok {
			return misused(n)
		}
		if len(n.args) != operands {
			return wrongCount(n)
		}
		if n.function == "if_not_exists" {
			if err := checkPath(n); err != nil {
				return err
			}
		}
		for _, x := range n.args {
			if typ := literalType(x); n.function == "list_append" && typ != "" && typ != "L" {
				return wrongType(n.function, typ)
			}
		}
		return checkAll(checkSetValue, n.args...)
	}
	return nil
}

// apply returns the item as the actions leave it. All of them see the item as it
// was before.
func apply(actions []action, before item) (item, error) {
	after := maps.Clone(before)
	for _, a := range actions {
		name := string(a.path)
		var v types.AttributeValue
		var err error
		switch a.clause {
		case "SET":
			v, err = setValueOf(a.value, before)
		case "ADD":
			v, err = added(before[name], a.value.(literal).value)
		case "DELETE":
			v, err = deleted(before[name], a.value.(literal).value)
		}
		if err != nil {
			return nil, err
		}
		if v == nil {
			delete(after, name)
		} else {
			after[name] = v
		}
	}
	return after, nil
}

func wrongOperand() error {
	return invalid("An operand in the update expression has an incorrect data type")
}

func setValueOf(n node, it item) (types.AttributeValue, error) {
	switch n := n.(type) {
	case arithmetic:
		return sum(n, it)
	case call:
		if n.function == "list_append" {
			return appended(n, it)
		}
		if v := valueOf(n.args[0], it); v != nil {
			return v, nil
		}
		return setValueOf(n.args[1], it)
	}
	v := valueOf(n, it)
	if v == nil {
		return nil, invalid("The provided expression refers to an attribute that does not exist in the item")
	}
	return v, nil
}

func sum(n arithmetic, it item) (types.AttributeValue, error) {
	var operands [2]decimal
	for i, x := range []node{n.x, n.y} {
		v, err := setValueOf(x, it)
		if err != nil {
			return nil, err
		}
		num, ok := v.(*types.AttributeValueMemberN)
		if !ok {
			return nil, wrongOperand()
		}
		operands[i] = mustDecimal(num.Value)
	}
	if n.op == "-" {
		operands[1] = operands[1].negate()
	}
	d, err := operands[0].add(operands[1])
	if err != nil {
		return nil, err
	}
	return number(d), nil
}

func appended(n call, it item) (types.AttributeValue, error) {
	list := []types.AttributeValue{}
	for _, x := range n.args {
		v, err := setValueOf(x, it)
		if err != nil {
			return nil, err
		}
		l, ok := v.(*types.AttributeValueMemberL)
		if !ok {
			return nil, wrongOperand()
		}
		list = append(list, l.Value...)
	}
	return &types.AttributeValueMemberL{Value: list}, nil
}

// added is what ADD leaves of a value: a sum, or a union.
func added(old, v types.AttributeValue) (types.AttributeValue, error) {
	switch {
	case old == nil:
		return v, nil
	case typeOf(old) != typeOf(v):
		return nil, wrongOperand()
	case typeOf(v) == "N":
		return sum(arithmetic{op: "+", x: literal{old}, y: literal{v}}, nil)
	}
	return newSet(typeOf(v), append(setMembers(old), setMembers(v)...)), nil
}

// deleted is what DELETE leaves of a set: nothing (nil) rather than an empty one.
func deleted(old, v types.AttributeValue) (types.AttributeValue, error) {
	if old == nil {
		return nil, nil
	}
	if typeOf(old) != typeOf(v) {
		return nil, wrongOperand()
	}
	gone := make(map[string]bool)
	for _, m := range setMembers(v) {
		gone[m] = true
	}
	var left []string
	for _, m := range setMembers(old) {
		if !gone[m] {
			left = append(left, m)
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	return newSet(typeOf(v), left), nil
}
