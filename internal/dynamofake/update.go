package dynamofake

import (
	"maps"
	"math/big"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// An action is one part of an update expression.
type action struct {
	clause string // SET, REMOVE or ADD
	name   attribute
	value  node // of SET any expression, of ADD a literal
}

// parseUpdate parses an UpdateExpression.
func parseUpdate(s string, names *placeholders) ([]action, error) {
	actions, err := parse(s, names, (*parser).update)
	if err != nil {
		return nil, err
	}
	for i, a := range actions {
		for _, b := range actions[:i] {
			if a.name.overlaps(b.name) {
				return nil, invalid("Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [%s], path two: [%s]", b.name, a.name)
			}
		}
		if err := a.check(); err != nil {
			return nil, err
		}
	}
	return actions, nil
}

func (p *parser) update() ([]action, error) {
	var actions []action
	seen := make(map[string]bool)
	for len(actions) == 0 || p.peek().kind != kindEnd {
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
	return actions, nil
}

func (p *parser) clause() (string, error) {
	for _, clause := range []string{"SET", "REMOVE", "ADD"} {
		if p.acceptKeyword(clause) {
			return clause, nil
		}
	}
	if p.peek().is("DELETE") {
		return "", unsupported("the clause DELETE")
	}
	return "", syntaxError(p.peek().text)
}

func (p *parser) action(clause string) (action, error) {
	name, err := p.attribute()
	if err != nil {
		return action{}, err
	}
	a := action{clause: clause, name: name}
	switch clause {
	case "SET":
		if err := p.expect("="); err != nil {
			return action{}, err
		}
		a.value, err = p.setValue()
	case "ADD":
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
	x, err := p.operand()
	op := p.peek().kind
	if err != nil || op != "+" && op != "-" {
		return x, err
	}
	p.next()
	y, err := p.operand()
	return arithmetic{op: op, x: x, y: y}, err
}

func (a action) check() error {
	switch typ := literalType(a.value); {
	case a.clause == "SET":
		return checkSetValue(a.value)
	case a.clause == "ADD" && typ != "N" && typ != "SS" && typ != "NS" && typ != "BS":
		return wrongType("ADD", typ)
	}
	return nil
}

func checkSetValue(n node) error {
	switch n := n.(type) {
	case arithmetic:
		for _, x := range []node{n.x, n.y} {
			if typ := literalType(x); typ != "" && typ != "N" {
				return wrongType(string(n.op), typ)
			}
		}
		return firstOf(checkSetValue(n.x), checkSetValue(n.y))
	case call:
		if n.function != "if_not_exists" {
			return misused(n)
		}
		return firstOf(checkPath(n), checkSetValue(n.args[1]))
	}
	return nil
}

// overlaps reports whether one path is the other, or leads into it.
func (a attribute) overlaps(b attribute) bool {
	return a.name == b.name && (a.entry == b.entry || a.entry == "" || b.entry == "")
}

// copy copies what from has at a path, and nothing else of the map that it is in.
func (a attribute) copy(to, from item) {
	v := a.in(from)
	if v == nil {
		return
	}
	if a.entry == "" {
		to[a.name] = v
		return
	}
	m, ok := to[a.name].(*types.AttributeValueMemberM)
	if !ok {
		m = &types.AttributeValueMemberM{Value: make(item)}
		to[a.name] = m
	}
	m.Value[a.entry] = v
}

// parent returns the item, or the map in it, that a path leads to the inside of.
func (a attribute) parent(it item) (item, string, error) {
	if a.entry == "" {
		return it, a.name, nil
	}
	if m, ok := it[a.name].(*types.AttributeValueMemberM); ok {
		return m.Value, a.entry, nil
	}
	return nil, "", invalid("The document path provided in the update expression is invalid for update")
}

// apply returns the item as the actions leave it. All of them see the item as it
// was before.
func apply(actions []action, before item) (item, error) {
	after := maps.Clone(before)
	for _, a := range actions { // the maps of before stay as they are
		if m, ok := before[a.name.name].(*types.AttributeValueMemberM); ok && a.name.entry != "" && after[a.name.name] == before[a.name.name] {
			after[a.name.name] = &types.AttributeValueMemberM{Value: maps.Clone(m.Value)}
		}
	}
	for _, a := range actions {
		in, name, err := a.name.parent(after)
		if err != nil {
			return nil, err
		}
		var v types.AttributeValue
		switch a.clause {
		case "REMOVE":
			delete(in, name)
			continue
		case "SET":
			v, err = setValueOf(a.value, before)
		case "ADD":
			v, err = added(a.name.in(before), a.value.(literal).value)
		}
		if err != nil {
			return nil, err
		}
		in[name] = v
	}
	return after, nil
}

func wrongOperand() error {
	return invalid("An operand in the update expression has an incorrect data type")
}

func setValueOf(n node, it item) (types.AttributeValue, error) {
	switch n := n.(type) {
	case arithmetic:
		x, err := setValueOf(n.x, it)
		if err != nil {
			return nil, err
		}
		y, err := setValueOf(n.y, it)
		if err != nil {
			return nil, err
		}
		return sum(n.op, x, y)
	case call: // if_not_exists
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

func sum(op kind, x, y types.AttributeValue) (types.AttributeValue, error) {
	a, isNumber := x.(*types.AttributeValueMemberN)
	b, areNumbers := y.(*types.AttributeValueMemberN)
	if !isNumber || !areNumbers {
		return nil, wrongOperand()
	}
	right := rational(b.Value)
	if op == "-" {
		right.Neg(right)
	}
	n, err := formatNumber(new(big.Rat).Add(rational(a.Value), right))
	return &types.AttributeValueMemberN{Value: n}, err
}

// added is what ADD leaves of a value: a sum, or a union.
func added(old, v types.AttributeValue) (types.AttributeValue, error) {
	switch {
	case old == nil:
		return v, nil
	case typeOf(old) != typeOf(v):
		return nil, wrongOperand()
	case typeOf(v) == "N":
		return sum("+", old, v)
	}
	return newSet(typeOf(v), append(setMembers(old), setMembers(v)...)), nil
}
