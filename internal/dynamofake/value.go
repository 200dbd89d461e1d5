package dynamofake

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// item is what a table stores. Its values are canonical.
type item = map[string]types.AttributeValue

// maxDepth is how deep lists and maps may nest.
const maxDepth = 32

// typeOf names the type of a value as the API does; it is empty for no value.
func typeOf(v types.AttributeValue) string {
	_, name, _ := strings.Cut(fmt.Sprintf("%T", v), "AttributeValueMember")
	return name
}

// canonicalItem checks and copies what a request brings.
func canonicalItem(in item) (item, error) {
	if _, ok := in[""]; ok {
		return nil, invalid("Attribute name must not be empty")
	}
	return canonicalMap(in, 0)
}

func canonicalMap(in item, depth int) (item, error) {
	out := make(item, len(in))
	for name, v := range in {
		c, err := canonical(v, depth)
		if err != nil {
			return nil, err
		}
		out[name] = c
	}
	return out, nil
}

// canonical returns a copy of a value in the one form in which equal values are
// equal: numbers normalised, sets sorted.
func canonical(v types.AttributeValue, depth int) (types.AttributeValue, error) {
	if depth > maxDepth {
		return nil, invalid("Nesting Levels have exceeded supported limits")
	}
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return &types.AttributeValueMemberS{Value: v.Value}, nil
	case *types.AttributeValueMemberN:
		n, err := canonicalNumber(v.Value)
		return &types.AttributeValueMemberN{Value: n}, err
	case *types.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: append([]byte{}, v.Value...)}, nil
	case *types.AttributeValueMemberBOOL:
		return &types.AttributeValueMemberBOOL{Value: v.Value}, nil
	case *types.AttributeValueMemberNULL:
		if !v.Value {
			return nil, invalid("One or more parameter values were invalid: Null attribute value types must have the value of true")
		}
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS:
		return canonicalSet(v)
	case *types.AttributeValueMemberL:
		list := make([]types.AttributeValue, 0, len(v.Value))
		for _, e := range v.Value {
			c, err := canonical(e, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, c)
		}
		return &types.AttributeValueMemberL{Value: list}, nil
	case *types.AttributeValueMemberM:
		m, err := canonicalMap(v.Value, depth+1)
		return &types.AttributeValueMemberM{Value: m}, err
	}
	return nil, invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
}

func canonicalSet(v types.AttributeValue) (types.AttributeValue, error) {
	typ, members := typeOf(v), setMembers(v)
	if len(members) == 0 {
		return nil, invalid("One or more parameter values were invalid: An %s may not be empty", typ)
	}
	for i, m := range members {
		if m == "" {
			return nil, invalid("One or more parameter values were invalid: An %s may not have an empty member", typ)
		}
		if typ == "NS" {
			var err error
			if members[i], err = canonicalNumber(m); err != nil {
				return nil, err
			}
		}
	}
	set := newSet(typ, members)
	if len(setMembers(set)) != len(members) {
		return nil, invalid("One or more parameter values were invalid: Input collection contains duplicates.")
	}
	return set, nil
}

// setMembers returns a copy of the members of a set, those of a binary set as
// strings; nil for what is no set.
func setMembers(v types.AttributeValue) []string {
	switch v := v.(type) {
	case *types.AttributeValueMemberSS:
		return slices.Clone(v.Value)
	case *types.AttributeValueMemberNS:
		return slices.Clone(v.Value)
	case *types.AttributeValueMemberBS:
		members := make([]string, 0, len(v.Value))
		for _, b := range v.Value {
			members = append(members, string(b))
		}
		return members
	}
	return nil
}

// newSet makes a set; it sorts members and drops duplicates.
func newSet(typ string, members []string) types.AttributeValue {
	slices.Sort(members)
	members = slices.Compact(members)
	switch typ {
	case "SS":
		return &types.AttributeValueMemberSS{Value: members}
	case "NS":
		return &types.AttributeValueMemberNS{Value: members}
	}
	set := make([][]byte, 0, len(members))
	for _, m := range members {
		set = append(set, []byte(m))
	}
	return &types.AttributeValueMemberBS{Value: set}
}

// equal compares canonical values. A missing value (nil) equals nothing, not
// even another one.
func equal(a, b types.AttributeValue) bool { return a != nil && reflect.DeepEqual(a, b) }

// order compares two values of one type that has an order; ok is false for all
// others.
func order(a, b types.AttributeValue) (cmp int, ok bool) {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		if b, ok := b.(*types.AttributeValueMemberS); ok {
			return strings.Compare(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberN:
		if b, ok := b.(*types.AttributeValueMemberN); ok {
			return rational(a.Value).Cmp(rational(b.Value)), true
		}
	case *types.AttributeValueMemberB:
		if b, ok := b.(*types.AttributeValueMemberB); ok {
			return bytes.Compare(a.Value, b.Value), true
		}
	}
	return 0, false
}

// ordered reports whether values of a type can be compared by size.
func ordered(typ string) bool { return typ == "S" || typ == "N" || typ == "B" }
