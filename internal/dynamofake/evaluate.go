package dynamofake

import (
	"bytes"
	"math/big"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

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
	case in:
		x := valueOf(n.x, it)
		return slices.ContainsFunc(n.list, func(y node) bool { return equal(x, valueOf(y, it)) })
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
	switch n.function {
	case "attribute_type":
		return typeOf(x) == y.(*types.AttributeValueMemberS).Value
	case "begins_with":
		return beginsWith(x, y)
	}
	return contains(x, y)
}

// valueOf returns nil for what the item does not have.
func valueOf(n node, it item) types.AttributeValue {
	switch n := n.(type) {
	case attribute:
		return it[string(n)]
	case literal:
		return n.value
	case call: // size, the only function with a value
		if size, ok := sizeFunction(valueOf(n.args[0], it)); ok {
			return number(decimalOf(size))
		}
	}
	return nil
}

func decimalOf(n int) decimal {
	d, _ := decimal{coef: big.NewInt(int64(n))}.add(decimal{coef: new(big.Int)})
	return d
}

// sizeFunction is size(v): other than the size that counts against limits, and
// none for a type that has no length.
func sizeFunction(v types.AttributeValue) (int, bool) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value), true
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

// contains looks for a part of a string or of a binary value, or for a member of
// a list or a set.
func contains(v, part types.AttributeValue) bool {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		p, ok := part.(*types.AttributeValueMemberS)
		return ok && strings.Contains(v.Value, p.Value)
	case *types.AttributeValueMemberB:
		p, ok := part.(*types.AttributeValueMemberB)
		return ok && bytes.Contains(v.Value, p.Value)
	case *types.AttributeValueMemberL:
		return slices.ContainsFunc(v.Value, func(e types.AttributeValue) bool { return equal(e, part) })
	case *types.AttributeValueMemberSS:
		p, ok := part.(*types.AttributeValueMemberS)
		return ok && slices.Contains(v.Value, p.Value)
	case *types.AttributeValueMemberNS:
		p, ok := part.(*types.AttributeValueMemberN)
		return ok && slices.Contains(v.Value, p.Value)
	case *types.AttributeValueMemberBS:
		p, ok := part.(*types.AttributeValueMemberB)
		return ok && slices.ContainsFunc(v.Value, func(e []byte) bool { return bytes.Equal(e, p.Value) })
	}
	return false
}
