package dynamolock

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// An expression is the condition and the update of one request, with the names
// and values that they refer to. Every name is an alias: "owner", and who knows
// what the user's keys are called, are reserved words.
type expression struct {
	sets, removes []string
	cond          string
	returns       types.ReturnValue
	names         map[string]string
	values        map[string]types.AttributeValue
}

// The aliases of attributes that are the user's to name.
const (
	aliasKey = "#partition"
	aliasTTL = "#ttl"

	aliasForeignTTL = "#foreignTTL"
)

// alias returns an alias, and notes what it stands for.
func (e *expression) alias(alias, attr string) string {
	if e.names == nil {
		e.names = make(map[string]string)
	}
	e.names[alias] = attr
	return alias
}

// name returns the alias of one of the lock's own attributes.
func (e *expression) name(attr string) string { return e.alias("#"+attr, attr) }

// value returns the alias of a new value.
func (e *expression) value(v types.AttributeValue) string {
	if e.values == nil {
		e.values = make(map[string]types.AttributeValue)
	}
	alias := ":" + strconv.Itoa(len(e.values))
	e.values[alias] = v
	return alias
}

func (e *expression) number(n int64) string { return e.value(number(n)) }

func (e *expression) set(attr string, v types.AttributeValue) {
	e.sets = append(e.sets, e.name(attr)+" = "+e.value(v))
}

func (e *expression) remove(attr string) { e.removes = append(e.removes, e.name(attr)) }

// begins is a condition: the item was last written by a client, or for a grant.
func (e *expression) begins(prefix string) string {
	return "begins_with(" + e.name(attrGUID) + ", " + e.value(binary(prefix)) + ")"
}

// live is a condition: the item is not released.
func (e *expression) live() string { return e.name(attrLease) + " > " + e.number(releasedLease) }

// is is a condition: an attribute has a value.
func (e *expression) is(attr string, v types.AttributeValue) string {
	return e.name(attr) + " = " + e.value(v)
}

// atMost is a condition: an attribute is not greater than a value, and of its type.
func (e *expression) atMost(attr string, v types.AttributeValue) string {
	return e.name(attr) + " <= " + e.value(v)
}

// isType is a condition: an attribute is there, and of a type.
func (e *expression) isType(attr, t string) string {
	return "attribute_type(" + e.name(attr) + ", " + e.value(text(t)) + ")"
}

// counts is a condition: an attribute is a number, neither negative nor too large.
func (e *expression) counts(attr string, most int64) string {
	return e.name(attr) + " BETWEEN " + e.number(0) + " AND " + e.number(most)
}

// optional is a condition: an attribute is of a type, or is not there.
func (e *expression) optional(attr, t string) string {
	return "(attribute_not_exists(" + e.name(attr) + ") OR " + e.isType(attr, t) + ")"
}

// update is the update expression, or nil if there is none.
func (e *expression) update() *string {
	var parts []string
	if len(e.sets) > 0 {
		parts = append(parts, "SET "+strings.Join(e.sets, ", "))
	}
	if len(e.removes) > 0 {
		parts = append(parts, "REMOVE "+strings.Join(e.removes, ", "))
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
