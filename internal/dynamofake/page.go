package dynamofake

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// A page is what Query and Scan have in common.
type page struct {
	expressions
	limit *int32
	start item
}

// A pageResult is the answer of one page.
type pageResult struct {
	items          []item
	count, scanned int32
	last           item
	size           int
}

// prepare checks what needs no table.
func (p *page) prepare(table *string) error {
	if p.limit != nil && *p.limit < 1 {
		return invalid("Value '%d' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1", *p.limit)
	}
	if p.start != nil {
		start, err := canonicalItem(p.start)
		if err != nil {
			return err
		}
		p.start = start
	}
	return firstOf(checkTableName(table), p.parse())
}

// read takes entries that are in order, from behind the start key, which need
// not exist, until the page is full. The filter comes after: what it drops counts
// against the limits all the same.
func (p *page) read(t *table, entries []entry) pageResult {
	if p.start != nil {
		start := t.entryOf(p.start)
		entries = slices.DeleteFunc(entries, func(e entry) bool { return e.compare(start) <= 0 })
	}
	out := pageResult{items: []item{}}
	for _, e := range entries {
		out.scanned++
		out.size += sizeOf(e.item)
		if holds(p.parsedFilter, e.item) {
			out.count++
			out.items = append(out.items, e.item)
		}
		if p.limit != nil && out.scanned >= *p.limit || out.size >= maxPageSize {
			out.last = t.keyOf(e.item)
			break
		}
	}
	return out
}

func (p *page) checkStart(t *table) error {
	if p.start == nil {
		return nil
	}
	if err := t.checkKey(p.start); err != nil {
		return invalid("The provided starting key is invalid: %v", err)
	}
	return nil
}

func (db *DB) query(in *dynamodb.QueryInput, used *usage) (*dynamodb.QueryOutput, error) {
	p := &page{
		expressions: expressions{
			names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
			filter: in.FilterExpression, key: in.KeyConditionExpression,
		},
		limit: in.Limit, start: in.ExclusiveStartKey,
	}
	if err := firstOf(only(in, append(paged, "KeyConditionExpression")...), p.prepare(in.TableName)); err != nil {
		return nil, err
	}
	if p.key == nil {
		return nil, invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	t, err := db.table(*in.TableName)
	if err != nil {
		return nil, err
	}
	if err := firstOf(t.checkKeyCondition(p.parsedKey), p.checkFilter(t), p.checkStart(t)); err != nil {
		return nil, err
	}
	if p.start != nil && !holds(p.parsedKey, p.start) {
		return nil, invalid("The provided starting key is outside query boundaries based on provided conditions")
	}
	entries := slices.DeleteFunc(t.entries(db.horizon(in.ConsistentRead)), func(e entry) bool { return !holds(p.parsedKey, e.item) })
	found := p.read(t, entries)
	used.read = readUnits(found.size, in.ConsistentRead)
	return &dynamodb.QueryOutput{Items: found.items, Count: found.count, ScannedCount: found.scanned, LastEvaluatedKey: found.last}, nil
}

// checkKeyCondition lets pass one partition, and perhaps a value or a beginning of
// the sort key. The API knows more.
func (s *schema) checkKeyCondition(n node) error {
	seen := make(map[string]bool)
	for _, part := range conjuncts(n) {
		var x, y node
		switch part := part.(type) {
		case comparison:
			if part.op != "=" {
				return unsupported("a key condition with " + string(part.op))
			}
			x, y = part.x, part.y
		case call:
			if part.function != "begins_with" {
				return invalid("Invalid operator used in KeyConditionExpression: %s", part.function)
			}
			x, y = part.args[0], part.args[1]
		default:
			return unsupported("a key condition with OR, NOT or BETWEEN")
		}
		name, isName := x.(attribute)
		value, isValue := y.(literal)
		if !isName || !isValue {
			return unsupported("a key condition that is not about a name and a value, in this order")
		}
		i := s.index(name.String())
		_, beginning := part.(call)
		switch {
		case i < 0 || seen[name.name]:
			return invalid("KeyConditionExpressions must contain one condition per key, and none of others: %s", name)
		case typeOf(value.value) != s.keys[i].typ || beginning && s.keys[i].typ == "N":
			return invalid("One or more parameter values were invalid: Condition parameter type does not match schema type")
		case beginning && i == 0:
			return invalid("Query key condition not supported")
		}
		if err := checkKeyValue(name.name, value.value, i == 0); err != nil {
			return err
		}
		seen[name.name] = true
	}
	if !seen[s.keys[0].name] {
		return invalid("Query condition missed key schema element: %s", s.keys[0].name)
	}
	return nil
}

func conjuncts(n node) []node {
	if l, ok := n.(logical); ok && !l.or {
		return append(conjuncts(l.x), conjuncts(l.y)...)
	}
	return []node{n}
}

// checkFilter refuses to filter a query by its key.
func (p *page) checkFilter(t *table) error {
	for _, a := range p.filtered {
		if t.has(a.name) {
			return invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", a)
		}
	}
	return nil
}

func (db *DB) scan(in *dynamodb.ScanInput, used *usage) (*dynamodb.ScanOutput, error) {
	p := &page{
		expressions: expressions{names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues, filter: in.FilterExpression},
		limit:       in.Limit, start: in.ExclusiveStartKey,
	}
	if err := firstOf(only(in, paged...), p.prepare(in.TableName)); err != nil {
		return nil, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	t, err := db.table(*in.TableName)
	if err != nil {
		return nil, err
	}
	if err := p.checkStart(t); err != nil {
		return nil, err
	}
	found := p.read(t, t.entries(db.horizon(in.ConsistentRead)))
	used.read = readUnits(found.size, in.ConsistentRead)
	return &dynamodb.ScanOutput{Items: found.items, Count: found.count, ScannedCount: found.scanned, LastEvaluatedKey: found.last}, nil
}

func (db *DB) getItem(in *dynamodb.GetItemInput, used *usage) (*dynamodb.GetItemOutput, error) {
	if err := firstOf(
		only(in, "TableName", "Key", "ConsistentRead", "ReturnConsumedCapacity"),
		checkLevel(in.ReturnConsumedCapacity), checkTableName(in.TableName),
	); err != nil {
		return nil, err
	}
	key, err := canonicalItem(in.Key)
	if err != nil {
		return nil, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	t, err := db.table(*in.TableName)
	if err != nil {
		return nil, err
	}
	if err := t.checkKey(key); err != nil {
		return nil, err
	}
	it := t.at(t.encode(key), db.horizon(in.ConsistentRead))
	used.read = readUnits(sizeOf(it), in.ConsistentRead)
	return &dynamodb.GetItemOutput{Item: it, ConsumedCapacity: consumed(in.ReturnConsumedCapacity, *in.TableName, used.read)}, nil
}
