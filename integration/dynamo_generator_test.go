package integration_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// A generator makes operations. It looks at the items in the fake, for
// conditions that hold, and for what dynalite is known to answer otherwise than
// DynamoDB does: where a comment says so, the fake follows the documentation of
// the API, and the input is left out.
type generator struct {
	*rand.Rand
	db                   *dynamofake.DB
	tables               []dynamoTable
	allOld, transactions bool
}

type dynamoTable struct {
	name string
	keys []dynamoserver.Key
}

// attributes are those that items have, besides their keys. The values of "wide"
// are beyond ASCII; it is kept out of the functions that look into values, for
// dynalite takes binary values for UTF-8 there, and counts UTF-16 in size.
var attributes = []string{"a", "b", "c", "d", "n", "wide"}

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// often is true in so many of ten cases.
func (g *generator) often(tenths int) bool { return g.IntN(10) < tenths }

// A request is what the inputs of several operations have in common while it is
// put together.
type request struct {
	table   dynamoTable
	key     attributeMap
	present attributeMap // the item that is there, nil if none is
	many    bool         // it is about other items, too
	names   map[string]string
	values  attributeMap
}

func (g *generator) request() *request {
	t := pick(g, g.tables...)
	key := g.key(t)
	return &request{table: t, key: key, present: g.db.Item(t.name, key)}
}

// path returns how an expression calls an attribute.
func (g *generator) path(r *request, attribute string) string {
	// "sort" is no reserved word, nor are the others.
	if g.often(5) {
		return attribute
	}
	if r.names == nil {
		r.names = make(map[string]string)
	}
	r.names["#"+attribute] = attribute
	return "#" + attribute
}

func (r *request) literal(v types.AttributeValue) string {
	if r.values == nil {
		r.values = make(attributeMap)
	}
	name := ":v" + strconv.Itoa(len(r.values))
	r.values[name] = v
	return name
}

// operation returns the next operation.
func (g *generator) operation() operation {
	r := g.request()
	touched := []itemRef{{r.table.name, r.key}}
	switch n := g.IntN(100); {
	case n < 45:
		return operation{g.update(r), touched}
	case n < 55:
		return operation{g.put(r), touched}
	case n < 61:
		return operation{g.delete(r), touched}
	case n < 68:
		return operation{input: g.get(r)}
	case n < 80:
		return operation{input: g.query(r)}
	case n < 83:
		return operation{input: g.scan(r)}
	case n < 88 && g.transactions:
		return g.transaction()
	}
	return operation{g.bad(r), touched}
}

func (g *generator) onFailure() types.ReturnValuesOnConditionCheckFailure {
	if g.allOld && g.often(5) {
		return types.ReturnValuesOnConditionCheckFailureAllOld
	}
	return ""
}

func (g *generator) units() types.ReturnConsumedCapacity {
	if g.often(2) {
		return types.ReturnConsumedCapacityTotal
	}
	return ""
}

// maybeCondition returns a condition in most cases.
func (g *generator) maybeCondition(r *request) *string {
	if g.often(3) {
		return nil
	}
	return aws.String(g.condition(r, 2))
}

func (g *generator) update(r *request) *dynamodb.UpdateItemInput {
	in := &dynamodb.UpdateItemInput{
		TableName: &r.table.name, Key: r.key,
		ReturnValues: pick(g, "", types.ReturnValueNone, types.ReturnValueAllOld, types.ReturnValueAllNew,
			types.ReturnValueUpdatedOld, types.ReturnValueUpdatedNew),
		ReturnValuesOnConditionCheckFailure: g.onFailure(),
		ReturnConsumedCapacity:              g.units(),
	}
	if g.often(9) {
		in.UpdateExpression = aws.String(g.updateExpression(r))
	}
	in.ConditionExpression = g.maybeCondition(r)
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = r.names, r.values
	return in
}

func (g *generator) put(r *request) *dynamodb.PutItemInput {
	return &dynamodb.PutItemInput{
		TableName: &r.table.name, Item: g.item(r),
		ReturnValues:                        pick(g, "", types.ReturnValueNone, types.ReturnValueAllOld),
		ConditionExpression:                 g.maybeCondition(r),
		ReturnValuesOnConditionCheckFailure: g.onFailure(),
		ReturnConsumedCapacity:              g.units(),
		ExpressionAttributeNames:            r.names,
		ExpressionAttributeValues:           r.values,
	}
}

func (g *generator) item(r *request) attributeMap {
	item := maps.Clone(r.key)
	for _, a := range attributes {
		if g.often(6) {
			item[a] = g.valueFor(a)
		}
	}
	return item
}

func (g *generator) delete(r *request) *dynamodb.DeleteItemInput {
	return &dynamodb.DeleteItemInput{
		TableName: &r.table.name, Key: r.key,
		ReturnValues:                        pick(g, "", types.ReturnValueNone, types.ReturnValueAllOld),
		ConditionExpression:                 g.maybeCondition(r),
		ReturnValuesOnConditionCheckFailure: g.onFailure(),
		ReturnConsumedCapacity:              g.units(),
		ExpressionAttributeNames:            r.names,
		ExpressionAttributeValues:           r.values,
	}
}

func (g *generator) get(r *request) *dynamodb.GetItemInput {
	return &dynamodb.GetItemInput{
		TableName: &r.table.name, Key: r.key,
		ConsistentRead:           aws.Bool(true),
		ProjectionExpression:     g.projection(r),
		ReturnConsumedCapacity:   g.units(),
		ExpressionAttributeNames: r.names,
	}
}

func (g *generator) projection(r *request) *string {
	if g.often(5) {
		return nil
	}
	from := append(slices.Clone(attributes), "id")
	g.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
	var paths []string
	for _, a := range from[:1+g.IntN(3)] {
		paths = append(paths, g.path(r, a))
	}
	return aws.String(strings.Join(paths, pick(g, ",", ", ", " , ")))
}

func (g *generator) query(r *request) *dynamodb.QueryInput {
	r.many = true
	in := &dynamodb.QueryInput{
		TableName: &r.table.name, ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String(g.keyCondition(r)),
		ProjectionExpression:   g.projection(r),
	}
	if g.often(4) {
		// A query's filter is not about its key.
		in.FilterExpression = aws.String(g.simple(r, attributes))
	}
	if g.often(3) {
		in.Limit = aws.Int32(1 + g.Int32N(3))
	}
	if g.often(5) {
		in.ScanIndexForward = aws.Bool(g.often(5))
	}
	if g.often(3) {
		in.ExclusiveStartKey = g.key(r.table)
		in.ExclusiveStartKey["id"] = r.key["id"]
	}
	if in.ProjectionExpression == nil && g.often(1) {
		in.Select = types.SelectCount
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = r.names, r.values
	return in
}

func (g *generator) keyCondition(r *request) string {
	id, v := g.path(r, "id"), r.literal(r.key["id"])
	parts := []string{id + " = " + v}
	if g.often(1) {
		parts[0] = v + "=" + id
	}
	if len(r.table.keys) == 2 && g.often(7) {
		sort, low := g.path(r, "sort"), r.literal(r.key["sort"])
		switch g.IntN(8) {
		case 0:
			parts = append(parts, sort+" BETWEEN "+low+" AND "+r.literal(g.key(r.table)["sort"]))
		case 1:
			parts = append(parts, "begins_with("+sort+", "+low+")")
		case 2:
			parts = append(parts, low+" "+pick(g, "=", "<", "<=", ">", ">=")+" "+sort)
		default:
			parts = append(parts, sort+" "+pick(g, "=", "<", "<=", ">", ">=", "<>")+" "+low)
		}
	}
	if g.often(3) {
		slices.Reverse(parts)
	}
	return strings.Join(parts, pick(g, " AND ", " and "))
}

func (g *generator) scan(r *request) *dynamodb.ScanInput {
	r.many = true
	in := &dynamodb.ScanInput{TableName: &r.table.name, ConsistentRead: aws.Bool(true), ProjectionExpression: g.projection(r)}
	if g.often(6) {
		in.FilterExpression = aws.String(g.simple(r, attributes))
	}
	if g.often(6) {
		in.Limit = aws.Int32(1 + g.Int32N(4))
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = r.names, r.values
	return in
}

// transaction returns a transaction of few changes, two of which may meet on one
// item.
func (g *generator) transaction() operation {
	in := new(dynamodb.TransactWriteItemsInput)
	op := operation{input: in}
	for range 1 + g.IntN(3) {
		r := g.request()
		op.touched = append(op.touched, itemRef{r.table.name, r.key})
		var w types.TransactWriteItem
		switch g.IntN(4) {
		case 0:
			u := g.update(r)
			if u.UpdateExpression == nil {
				u.UpdateExpression = aws.String("REMOVE ghost")
			}
			w.Update = &types.Update{
				TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression, ConditionExpression: u.ConditionExpression,
				ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
				ReturnValuesOnConditionCheckFailure: u.ReturnValuesOnConditionCheckFailure,
			}
		case 1:
			p := g.put(r)
			w.Put = &types.Put{
				TableName: p.TableName, Item: p.Item, ConditionExpression: p.ConditionExpression,
				ExpressionAttributeNames: p.ExpressionAttributeNames, ExpressionAttributeValues: p.ExpressionAttributeValues,
				ReturnValuesOnConditionCheckFailure: p.ReturnValuesOnConditionCheckFailure,
			}
		case 2:
			d := g.delete(r)
			w.Delete = &types.Delete{
				TableName: d.TableName, Key: d.Key, ConditionExpression: d.ConditionExpression,
				ExpressionAttributeNames: d.ExpressionAttributeNames, ExpressionAttributeValues: d.ExpressionAttributeValues,
				ReturnValuesOnConditionCheckFailure: d.ReturnValuesOnConditionCheckFailure,
			}
		default:
			condition := g.condition(r, 1)
			w.ConditionCheck = &types.ConditionCheck{
				TableName: &r.table.name, Key: r.key, ConditionExpression: &condition,
				ExpressionAttributeNames: r.names, ExpressionAttributeValues: r.values,
				ReturnValuesOnConditionCheckFailure: g.onFailure(),
			}
		}
		in.TransactItems = append(in.TransactItems, w)
	}
	return op
}
