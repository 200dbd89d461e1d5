package dynamolock

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// An expression is the condition and the update of one request, with the names and values
// that they use. Every name is an alias: "owner" is a reserved word, and so may be the
// names of the user's keys.
type expression struct {
	sets, removes []string
	cond          string
	returns       types.ReturnValue
	names         map[string]string
	values        map[string]types.AttributeValue
}

// The aliases of attributes that users name.
const (
	aliasKey = "#partition"
	aliasTTL = "#ttl"

	aliasForeignTTL = "#foreignTTL"
)

// alias returns an alias, and records what it stands for.
func (x *expression) alias(alias, attr string) string {
	if x.names == nil {
		x.names = make(map[string]string)
	}
	x.names[alias] = attr
	return alias
}

// name returns the alias of one of the lock's own attributes.
func (x *expression) name(attr string) string { return x.alias("#"+attr, attr) }

// value returns the alias of a new value.
func (x *expression) value(v types.AttributeValue) string {
	if x.values == nil {
		x.values = make(map[string]types.AttributeValue)
	}
	alias := ":" + strconv.Itoa(len(x.values))
	x.values[alias] = v
	return alias
}

func (x *expression) number(n int64) string { return x.value(number(n)) }

func (x *expression) set(attr string, v types.AttributeValue) {
	x.sets = append(x.sets, x.name(attr)+" = "+x.value(v))
}

func (x *expression) remove(attr string) { x.removes = append(x.removes, x.name(attr)) }

// begins is a condition: the item was last written by a client, or for a grant.
func (x *expression) begins(prefix string) string {
	return "begins_with(" + x.name(attrGUID) + ", " + x.value(binary(prefix)) + ")"
}

// live is a condition: the item is not released.
func (x *expression) live() string { return x.name(attrLease) + " > " + x.number(releasedLease) }

// is is a condition: an attribute has a value.
func (x *expression) is(attr string, v types.AttributeValue) string {
	return x.name(attr) + " = " + x.value(v)
}

// atMost is a condition: an attribute has the type of a value and is not greater.
func (x *expression) atMost(attr string, v types.AttributeValue) string {
	return x.name(attr) + " <= " + x.value(v)
}

// isType is a condition: an attribute exists and has a type.
func (x *expression) isType(attr, t string) string {
	return "attribute_type(" + x.name(attr) + ", " + x.value(text(t)) + ")"
}

// counts is a condition: an attribute is a number from 0 to most.
func (x *expression) counts(attr string, most int64) string {
	return x.name(attr) + " BETWEEN " + x.number(0) + " AND " + x.number(most)
}

// optional is a condition: an attribute has a type or does not exist.
func (x *expression) optional(attr, t string) string {
	return "(attribute_not_exists(" + x.name(attr) + ") OR " + x.isType(attr, t) + ")"
}

// update is the update expression, or nil if there is none.
func (x *expression) update() *string {
	var parts []string
	if len(x.sets) > 0 {
		parts = append(parts, "SET "+strings.Join(x.sets, ", "))
	}
	if len(x.removes) > 0 {
		parts = append(parts, "REMOVE "+strings.Join(x.removes, ", "))
	}
	if len(parts) == 0 {
		return nil
	}
	text := strings.Join(parts, " ")
	return &text
}

func all(conds ...string) string { return strings.Join(conds, " AND ") }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func token(t uint64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(t, 10)}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func binary(s string) types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte(s)} }

func millis(t time.Time) types.AttributeValue { return number(t.UnixMilli()) }

func seconds(t time.Time) types.AttributeValue { return number(t.Unix()) }
