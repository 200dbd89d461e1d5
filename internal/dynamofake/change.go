package dynamofake

import (
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A change is a write of one item, alone or in a transaction, that was checked as
// far as it can be without its table.
type change struct {
	tableName string
	kind      changeKind
	key       item // of a put, the whole item
	expressions
	oldOnFailure types.ReturnValuesOnConditionCheckFailure
}

type changeKind int

const (
	update changeKind = iota
	put
	remove
	check // of a transaction
)

// prepare checks what needs no table.
func (c *change) prepare(tableName *string) error {
	if err := checkTableName(tableName); err != nil {
		return err
	}
	c.tableName = *tableName
	if err := oneOf("returnValuesOnConditionCheckFailure", c.oldOnFailure, c.oldOnFailure.Values()...); err != nil {
		return err
	}
	key, err := canonicalItem(c.key)
	if err != nil {
		return err
	}
	c.key = key
	if c.kind == put && sizeOf(key) > maxItemSize {
		return invalid("Item size has exceeded the maximum allowed size")
	}
	return c.parse()
}

// bind checks what needs the table, but not the item.
func (c *change) bind(t *table) error {
	if c.kind == put {
		return t.checkItem(c.key)
	}
	if err := t.checkKey(c.key); err != nil {
		return err
	}
	for _, a := range c.parsedUpdate {
		if t.has(string(a.path)) {
			return invalid("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", a.path)
		}
	}
	return nil
}

// run returns what becomes of an item; nil is no item.
func (c *change) run(before item) (item, error) {
	if !holds(c.parsedCondition, before) {
		failed := &types.ConditionalCheckFailedException{Message: aws.String("The conditional request failed")}
		if c.oldOnFailure == types.ReturnValuesOnConditionCheckFailureAllOld {
			failed.Item = clone(before)
		}
		return nil, failed
	}
	switch c.kind {
	case check:
		return before, nil
	case put:
		return c.key, nil
	case remove:
		return nil, nil
	}
	if before == nil && c.onlyTakesAway() {
		return nil, nil
	}
	base := before
	if base == nil {
		base = maps.Clone(c.key)
	}
	after, err := apply(c.parsedUpdate, base)
	if err != nil {
		return nil, err
	}
	if sizeOf(after) > maxItemSize {
		return nil, invalid("Item size to update has exceeded the maximum allowed size")
	}
	return after, nil
}

// onlyTakesAway reports whether an update has actions, but none that writes: it
// does not create an item.
func (c *change) onlyTakesAway() bool {
	for _, a := range c.parsedUpdate {
		if a.clause == "SET" || a.clause == "ADD" {
			return false
		}
	}
	return len(c.parsedUpdate) > 0
}
