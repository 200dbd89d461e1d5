package dynamofake

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A page is what Query and Scan have in common.
type page struct {
	expressions
	limit     *int32
	start     item
	selection types.Select
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
	if err := checkTableName(table); err != nil {
		return err
	}
	if p.limit != nil && *p.limit < 1 {
		return invalid("Value '%d' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1", *p.limit)
	}
	if err := oneOf("select", p.selection, p.selection.Values()...); err != nil {
		return err
	}
	switch p.selection {
	case types.SelectAllProjectedAttributes:
		return invalid("One or more parameter values were invalid: Select type ALL_PROJECTED_ATTRIBUTES is only for indexes")
	case types.SelectSpecificAttributes:
		if p.projection == nil {
			return invalid("One or more parameter values were invalid: Must specify the attributes to get when choosing to get SPECIFIC_ATTRIBUTES")
		}
	case types.SelectAllAttributes, types.SelectCount:
		if p.projection != nil {
			return invalid("Cannot specify the ProjectionExpression when choosing to get %s", p.selection)
		}
	}
	if p.start != nil {
		start, err := canonicalItem(p.start)
		if err != nil {
			return err
		}
		p.start = start
	}
	return p.parse()
}

// read takes entries that are in order until the page is full. The filter comes
// after: what it drops counts against the limits all the same.
func (p *page) read(t *table, entries []entry) pageResult {
	var out pageResult
	for _, e := range entries {
		out.scanned++
		out.size += sizeOf(e.item)
		if holds(p.parsedFilter, e.item) {
			out.count++
			out.items = append(out.items, project(e.item, p.parsedProjection))
		}
		if p.limit != nil && out.scanned >= *p.limit || out.size >= maxPageSize {
			out.last = t.keyOf(e.item)
			break
		}
	}
	if p.selection == types.SelectCount {
		out.items = nil
	} else if out.items == nil {
		out.items = []item{}
	}
	return out
}

// after drops the entries up to the start key, whether or not it still exists.
func (p *page) after(t *table, entries []entry, compare func(a, b entry) int) []entry {
	if p.start == nil {
		return entries
	}
	start := t.entryOf(p.start)
	return slices.DeleteFunc(entries, func(e entry) bool { return compare(e, start) <= 0 })
}

func (db *DB) query(in *dynamodb.QueryInput, used *usage) (*dynamodb.QueryOutput, error) {
	p := &page{
		expressions: expressions{
			names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
			filter: in.FilterExpression, key: in.KeyConditionExpression, projection: in.ProjectionExpression,
		},
		limit: in.Limit, start: in.ExclusiveStartKey, selection: in.Select,
	}
	if err := firstOf(
		refuse(in, "AttributesToGet", "ConditionalOperator", "IndexName", "KeyConditions", "QueryFilter"),
		checkLevel(in.ReturnConsumedCapacity),
		p.prepare(in.TableName),
	); err != nil {
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
	kc, err := newKeyCondition(p.parsedKey, &t.schema)
	if err != nil {
		return nil, err
	}
	if err := firstOf(p.checkFilter(t), p.checkQueryStart(t, kc)); err != nil {
		return nil, err
	}
	entries := slices.DeleteFunc(t.entries(db.horizon(in.ConsistentRead)), func(e entry) bool {
		return !equal(e.item[t.keys[0].name], kc.hash) || !holds(kc.sort, e.item)
	})
	compare := entry.compare
	if in.ScanIndexForward != nil && !*in.ScanIndexForward {
		compare = func(a, b entry) int { return b.compare(a) }
		slices.Reverse(entries)
	}
	found := p.read(t, p.after(t, entries, compare))
	used.read = readUnits(found.size, in.ConsistentRead)
	return &dynamodb.QueryOutput{
		Items: found.items, Count: found.count, ScannedCount: found.scanned, LastEvaluatedKey: found.last,
		ConsumedCapacity: consumed(in.ReturnConsumedCapacity, *in.TableName, used.read),
	}, nil
}

// checkFilter refuses to filter a query by its key.
func (p *page) checkFilter(t *table) error {
	var err error
	attributesIn(p.parsedFilter, func(a attribute) {
		if t.has(string(a)) {
			err = invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", a)
		}
	})
	return err
}

func (p *page) checkQueryStart(t *table, kc keyCondition) error {
	if p.start == nil {
		return nil
	}
	if err := t.checkKey(p.start); err != nil {
		return invalid("The provided starting key is invalid: %v", err)
	}
	if !equal(p.start[t.keys[0].name], kc.hash) || !holds(kc.sort, p.start) {
		return invalid("The provided starting key is outside query boundaries based on provided conditions")
	}
	return nil
}

func (db *DB) scan(in *dynamodb.ScanInput, used *usage) (*dynamodb.ScanOutput, error) {
	p := &page{
		expressions: expressions{
			names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
			filter: in.FilterExpression, projection: in.ProjectionExpression,
		},
		limit: in.Limit, start: in.ExclusiveStartKey, selection: in.Select,
	}
	if err := firstOf(
		refuse(in, "AttributesToGet", "ConditionalOperator", "IndexName", "ScanFilter"),
		checkLevel(in.ReturnConsumedCapacity),
		checkSegment(in),
		p.prepare(in.TableName),
	); err != nil {
		return nil, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	t, err := db.table(*in.TableName)
	if err != nil {
		return nil, err
	}
	if p.start != nil {
		if err := t.checkKey(p.start); err != nil {
			return nil, invalid("The provided starting key is invalid: %v", err)
		}
	}
	entries := t.entries(db.horizon(in.ConsistentRead))
	if in.TotalSegments != nil {
		segments := uint64(*in.TotalSegments)
		if p.start != nil && t.entryOf(p.start).hash%segments != uint64(*in.Segment) {
			return nil, invalid("The provided starting key is invalid: Please use ExclusiveStartKey with correct Segment.")
		}
		entries = slices.DeleteFunc(entries, func(e entry) bool { return e.hash%segments != uint64(*in.Segment) })
	}
	found := p.read(t, p.after(t, entries, entry.compare))
	used.read = readUnits(found.size, in.ConsistentRead)
	return &dynamodb.ScanOutput{
		Items: found.items, Count: found.count, ScannedCount: found.scanned, LastEvaluatedKey: found.last,
		ConsumedCapacity: consumed(in.ReturnConsumedCapacity, *in.TableName, used.read),
	}, nil
}

func checkSegment(in *dynamodb.ScanInput) error {
	switch {
	case (in.Segment == nil) != (in.TotalSegments == nil):
		return invalid("Segment and TotalSegments must be given together")
	case in.Segment == nil:
		return nil
	case *in.Segment < 0 || *in.TotalSegments < 1 || *in.Segment >= *in.TotalSegments:
		return invalid("The Segment parameter is zero-based and must be less than parameter TotalSegments")
	}
	return nil
}

func (db *DB) getItem(in *dynamodb.GetItemInput, used *usage) (*dynamodb.GetItemOutput, error) {
	e := expressions{names: in.ExpressionAttributeNames, projection: in.ProjectionExpression}
	if err := firstOf(refuse(in, "AttributesToGet"), checkLevel(in.ReturnConsumedCapacity), checkTableName(in.TableName)); err != nil {
		return nil, err
	}
	key, err := canonicalItem(in.Key)
	if err != nil {
		return nil, err
	}
	if err := e.parse(); err != nil {
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
	return &dynamodb.GetItemOutput{
		Item:             project(it, e.parsedProjection),
		ConsumedCapacity: consumed(in.ReturnConsumedCapacity, *in.TableName, used.read),
	}, nil
}
