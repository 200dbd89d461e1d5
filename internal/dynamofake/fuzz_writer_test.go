package dynamofake

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A writer writes parsed expressions down. Attributes and values get
// placeholders, in the order in which they come; white space and the case of
// keywords are taken from a salt.
type writer struct {
	salt   []byte
	tokens []string
	names  map[string]string
	values item
}

// emit adds tokens; those of capital letters are keywords, which have no case.
func (w *writer) emit(tokens ...string) { w.tokens = append(w.tokens, tokens...) }

func (w *writer) pepper(i int) byte {
	if len(w.salt) == 0 {
		return 0
	}
	return w.salt[i%len(w.salt)]
}

func (w *writer) String() string {
	var b strings.Builder
	for i, token := range w.tokens {
		salt := w.pepper(i)
		if strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" && salt&1 != 0 {
			token = strings.ToLower(token)
		}
		space := []string{"", " ", "\t", "\r\n ", ""}[int(salt>>1)%5]
		// Between what would run together, or become another operator.
		if last := b.String(); space == "" && last != "" {
			end := last[len(last)-1:]
			if wordLen(end) > 0 && wordLen(token) > 0 || strings.Contains("<>", end) && strings.Contains("<>=", token[:1]) {
				space = " "
			}
		}
		b.WriteString(space + token)
	}
	return b.String()
}

func (w *writer) attribute(a attribute) {
	for placeholder, name := range w.names {
		if name == string(a) {
			w.emit(placeholder)
			return
		}
	}
	placeholder := "#" + strconv.Itoa(len(w.names)) + "_"
	w.names[placeholder] = string(a)
	w.emit(placeholder)
}

func (w *writer) value(v types.AttributeValue) {
	placeholder := ":" + strconv.Itoa(len(w.values))
	w.values[placeholder] = v
	w.emit(placeholder)
}

// operand writes what has a value.
func (w *writer) operand(n node) {
	switch n := n.(type) {
	case attribute:
		w.attribute(n)
	case literal:
		w.value(n.value)
	case call:
		w.emit(n.function, "(")
		w.list(n.args, w.operand)
		w.emit(")")
	case arithmetic:
		w.term(n.x)
		w.emit(string(n.op))
		w.term(n.y)
	}
}

// term writes an operand of an arithmetic, in parentheses if it is one itself.
func (w *writer) term(n node) { w.grouped(n, isArithmetic(n), w.operand) }

func isArithmetic(n node) bool { _, ok := n.(arithmetic); return ok }

func (w *writer) grouped(n node, group bool, write func(node)) {
	if group {
		w.emit("(")
		defer w.emit(")")
	}
	write(n)
}

func (w *writer) list(nodes []node, write func(node)) {
	for i, n := range nodes {
		if i > 0 {
			w.emit(",")
		}
		write(n)
	}
}

func (w *writer) condition(n node) {
	switch n := n.(type) {
	case logical:
		keyword := "AND"
		if n.or {
			keyword = "OR"
		}
		x, isLogical := n.x.(logical)
		w.grouped(n.x, isLogical && x.or && !n.or, w.condition)
		w.emit(keyword)
		y, isLogical := n.y.(logical)
		w.grouped(n.y, isLogical && (y.or || !n.or), w.condition)
	case not:
		w.emit("NOT")
		_, isLogical := n.x.(logical)
		w.grouped(n.x, isLogical, w.condition)
	case comparison:
		w.operand(n.x)
		w.emit(string(n.op))
		w.operand(n.y)
	case between:
		w.operand(n.x)
		w.emit("BETWEEN")
		w.operand(n.low)
		w.emit("AND")
		w.operand(n.high)
	case in:
		w.operand(n.x)
		w.emit("IN", "(")
		w.list(n.list, w.operand)
		w.emit(")")
	default:
		w.operand(n)
	}
}

// update writes actions, one clause after the other.
func (w *writer) update(actions []action) {
	clause := ""
	for _, a := range actions {
		if a.clause == clause {
			w.emit(",")
		} else {
			clause = a.clause
			w.emit(clause)
		}
		w.attribute(a.path)
		switch clause {
		case "SET":
			w.emit("=")
			w.operand(a.value)
		case "ADD", "DELETE":
			w.operand(a.value)
		}
	}
}

func (w *writer) projection(paths []attribute) {
	for i, path := range paths {
		if i > 0 {
			w.emit(",")
		}
		w.attribute(path)
	}
}

// takeCondition makes a condition of a script. It need not be one that the API
// takes.
func takeCondition(script *[]byte, depth int) node {
	op := take(script)
	if depth == 0 {
		op = 5 + op%10
	}
	switch op % 15 {
	case 0, 1, 2, 3:
		return logical{or: op&1 != 0, x: takeCondition(script, depth-1), y: takeCondition(script, depth-1)}
	case 4:
		return not{takeCondition(script, depth-1)}
	case 5, 6, 7, 8:
		return comparison{comparators[int(take(script))%len(comparators)], takeOperand(script), takeOperand(script)}
	case 9:
		return between{takeOperand(script), takeOperand(script), takeOperand(script)}
	case 10:
		x, list := takeOperand(script), []node{takeOperand(script)}
		for range take(script) & 3 {
			list = append(list, takeOperand(script))
		}
		return in{x, list}
	case 11:
		function := []string{"attribute_exists", "attribute_not_exists"}[take(script)&1]
		return call{function, []node{takeOperand(script)}}
	default:
		function := []string{"begins_with", "contains", "attribute_type"}[take(script)%3]
		return call{function, []node{takeOperand(script), takeOperand(script)}}
	}
}

var literals = []string{":b", ":l", ":m", ":n", ":null", ":ns", ":s", ":set", ":x"}

func takeOperand(script *[]byte) node {
	op := take(script)
	switch n := int(op >> 3); op & 7 {
	case 0, 1, 2, 3:
		return fuzzAttributes[n%len(fuzzAttributes)]
	case 7:
		return call{"size", []node{fuzzAttributes[n%len(fuzzAttributes)]}}
	default:
		return literal{fuzzValues[literals[n%len(literals)]]}
	}
}
