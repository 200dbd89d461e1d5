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

// A generator makes operations on items like those of locks. It reads the items in the
// fake, to make conditions that hold and to avoid inputs on which servers are known to
// deviate from DynamoDB. Comments name those inputs; there the fake follows the
// documentation of the API.
type generator struct {
	*rand.Rand
	db                   *dynamofake.DB
	tables               []dynamoTable
	allOld, transactions bool
	strict               bool // the server's checks, costs and number formats are DynamoDB's; see TestMotoDeviates
}

type dynamoTable struct {
	name string
	keys []dynamoserver.Key
}

// attributeTypes are the types of the attributes of items, besides their keys. Items of
// shared locks may have the last two.
var attributeTypes = map[string]string{
	"guid": "B", "leaseDurationMs": "N", "fencingToken": "N", "owner": "S", "holdfastData": "B", "expires": "N",
	"holders": "SS", "waiting": "M",
}

var attributeNames = slices.Sorted(maps.Keys(attributeTypes))

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// often is true in n of ten cases.
func (g *generator) often(tenths int) bool { return g.IntN(10) < tenths }

// A request is the common part of the inputs of several operations, while it is built.
type request struct {
	table   dynamoTable
	key     attributeMap
	present attributeMap // the item that is there, nil if none is
	names   map[string]string
	values  attributeMap
}

func (g *generator) request() *request {
	t := pick(g, g.tables...)
	key := g.key(t)
	return &request{table: t, key: key, present: g.db.Item(t.name, key), names: make(map[string]string)}
}

// name returns the alias of an attribute.
func (r *request) name(attribute string) string {
	r.names["#"+attribute] = attribute
	return "#" + attribute
}

// literal returns the alias of a value.
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
	case n < 50:
		return operation{g.update(r), touched}
	case n < 60:
		return operation{&dynamodb.DeleteItemInput{
			TableName: &r.table.name, Key: r.key,
			ConditionExpression:                 aws.String(g.condition(r, 2)),
			ReturnValues:                        g.deleted(),
			ReturnValuesOnConditionCheckFailure: g.onFailure(),
			ReturnConsumedCapacity:              g.units(),
			ExpressionAttributeNames:            r.names, ExpressionAttributeValues: r.values,
		}, touched}
	case n < 68:
		return operation{input: &dynamodb.GetItemInput{TableName: &r.table.name, Key: r.key, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: g.units()}}
	case n < 78 && g.transactions:
		return g.transaction()
	case !g.strict: // moto ends pages elsewhere, and fails on invalid requests
		return operation{g.update(r), touched}
	case n < 84:
		return operation{input: g.query(r)}
	case n < 88:
		return operation{input: g.scan(r)}
	}
	return operation{g.bad(r), touched}
}

func (g *generator) deleted() types.ReturnValue {
	if g.often(2) {
		return types.ReturnValueAllOld
	}
	return ""
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

// condition returns a condition with many parentheses.
func (g *generator) condition(r *request, depth int) string {
	if depth > 0 && g.often(6) {
		x, y := g.condition(r, depth-1), g.condition(r, depth-1)
		return pick(g, "NOT ("+x+" AND "+y+")", "("+x+" OR "+y+") AND NOT ("+x+")", x+" AND "+y, x+" or "+y)
	}
	return g.simple(r, append(slices.Clone(attributeNames), "id"))
}

// simple returns a condition without AND and OR.
func (g *generator) simple(r *request, from []string) string {
	if g.often(2) {
		return g.entryCondition(r)
	}
	attribute := pick(g, from...)
	switch g.IntN(10) {
	case 0:
		return "attribute_exists(" + r.name(attribute) + ")"
	case 1:
		return "attribute_not_exists(" + r.name(attribute) + ")"
	case 2:
		return "attribute_type(" + r.name(attribute) + ", " + r.literal(text(pick(g, "S", "N", "B", "SS", "M"))) + ")"
	case 3:
		prefix := &types.AttributeValueMemberB{Value: []byte(pick(g, "a", "ab", "\xff"))}
		return pick(g, "", "NOT ") + "begins_with(" + r.name("guid") + ", " + r.literal(prefix) + ")"
	case 4:
		number := pick(g, "leaseDurationMs", "fencingToken", "expires")
		return r.name(number) + " BETWEEN " + r.literal(keyValue("N", "0")) + " AND " + r.literal(keyValue("N", pick(g, "1", "9007199254740990")))
	case 5:
		// For other types dynalite counts UTF-16, and moto fails if the attribute is
		// missing.
		if g.strict {
			return "size(" + r.name(pick(g, "holders", "waiting")) + ") " + pick(g, "=", "<>", "<", "<=", ">", ">=") + " " + r.literal(keyValue("N", pick(g, "0", "1", "2", "3")))
		}
	}
	v := r.present[attribute]
	if v == nil || g.often(4) {
		v = g.value(attribute) // otherwise the present value, or nothing would ever be equal
	}
	operators := []string{"=", "=", "<>", "<", "<=", ">", ">="}
	// dynalite compares types that have no order, and never finds maps equal.
	switch v.(type) {
	case *types.AttributeValueMemberM:
		return "attribute_exists(" + r.name(attribute) + ")"
	case *types.AttributeValueMemberSS:
		operators = []string{"=", "<>"}
	}
	return r.name(attribute) + " " + pick(g, operators...) + " " + r.literal(v)
}

// entryCondition returns a condition on an entry of a map, which may be missing, or the map.
func (g *generator) entryCondition(r *request) string {
	entry := g.entry(r)
	switch g.IntN(4) {
	case 0:
		return "attribute_exists(" + entry + ")"
	case 1:
		return "attribute_not_exists(" + entry + ")"
	case 2:
		return "attribute_type(" + entry + ", " + r.literal(text(pick(g, "B", "N", "L"))) + ")"
	}
	return entry + " " + pick(g, "=", "<", "<=", ">") + " " + r.literal(pick(g, g.value("guid"), g.number()))
}

// entry returns the path of an entry of a map.
func (g *generator) entry(r *request) string {
	return r.name("waiting") + "." + r.name(pick(g, "x", "y", "z"))
}

// value returns a value of an attribute, sometimes of the wrong type.
func (g *generator) value(attribute string) types.AttributeValue {
	typ := attributeTypes[attribute]
	if g.often(1) && attribute != "fencingToken" && attribute != "holders" { // the attributes that ADD uses
		typ = pick(g, "S", "N", "B")
	}
	switch typ {
	case "N":
		return g.number()
	case "B":
		return &types.AttributeValueMemberB{Value: []byte(pick(g, "ab", "abc", "abcd", "b", "\xff\x00", "\xff\x01", strings.Repeat("ab", 700)))} // the last costs a unit more
	case "SS":
		return g.holders()
	case "M":
		m := make(attributeMap)
		for _, name := range []string{"x", "y", "z"}[:g.IntN(4)] {
			m[name] = &types.AttributeValueMemberL{Value: []types.AttributeValue{g.number(), text(name), &types.AttributeValueMemberNULL{Value: true}}}
		}
		return &types.AttributeValueMemberM{Value: m}
	}
	return text(pick(g, "ab", "abc", "b", "zo\u00eb"))
}

func (g *generator) holders() types.AttributeValue {
	holders := []string{"a", "b", "ab", "c"}
	g.Shuffle(len(holders), func(i, j int) { holders[i], holders[j] = holders[j], holders[i] })
	return &types.AttributeValueMemberSS{Value: holders[:1+g.IntN(3)]}
}

func (g *generator) number() types.AttributeValue {
	if g.strict && g.often(2) {
		return keyValue("N", pick(g, "007", "1.10", "1e3", "5E-3", "-1.5", "12345678901234567890123456789012345678", "1e-20"))
	}
	return keyValue("N", pick(g, "0", "1", "2", "3000", "9007199254740990"))
}

// key returns one of the few keys of a table, so that operations meet.
func (g *generator) key(t dynamoTable) attributeMap {
	key := make(attributeMap)
	for i, k := range t.keys {
		text := []string{"1", "2"}
		if i == 1 {
			text = []string{"1", "10", "100", "2", "-1", "1.5"}
		}
		key[k.Name] = keyValue(k.Type, pick(g, text...))
	}
	return key
}

func keyValue(typ types.ScalarAttributeType, text string) types.AttributeValue {
	switch typ {
	case types.ScalarAttributeTypeN:
		return &types.AttributeValueMemberN{Value: text}
	case types.ScalarAttributeTypeB:
		return &types.AttributeValueMemberB{Value: append([]byte{0xff}, text...)}
	}
	return &types.AttributeValueMemberS{Value: text}
}

// update returns an update as for a grant, a heartbeat or a release.
func (g *generator) update(r *request) *dynamodb.UpdateItemInput {
	in := &dynamodb.UpdateItemInput{
		TableName: &r.table.name, Key: r.key,
		ReturnValues:                        pick(g, "", types.ReturnValueNone, types.ReturnValueAllNew, types.ReturnValueUpdatedNew),
		ReturnValuesOnConditionCheckFailure: g.onFailure(),
		ReturnConsumedCapacity:              g.units(),
		UpdateExpression:                    aws.String(g.change(r)),
	}
	if !g.strict && strings.Contains(*in.UpdateExpression, "#holders :") {
		in.ReturnValues = "" // moto omits a set that ADD changed from UPDATED_NEW
	}
	if g.often(8) {
		in.ConditionExpression = aws.String(g.condition(r, 2))
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = r.names, r.values
	return in
}

// change returns an update expression. It always sets something: DynamoDB creates no item
// for a REMOVE alone, but dynalite does.
func (g *generator) change(r *request) string {
	var sets, removes, adds []string
	for _, attribute := range attributeNames {
		if g.often(2) {
			continue
		}
		switch name := r.name(attribute); {
		case attribute == "fencingToken" && g.often(3):
			adds = append(adds, name+" "+r.literal(keyValue("N", pick(g, "1", "-1", "10"))))
		case attribute == "fencingToken":
			sets = append(sets, name+" = if_not_exists("+name+", "+r.literal(keyValue("N", "41"))+") "+pick(g, "+", "-")+" "+r.literal(keyValue("N", "1")))
		case attribute == "holders" && g.often(6):
			adds = append(adds, name+" "+r.literal(g.holders()))
		case attribute == "owner" && r.present["expires"] != nil && g.often(1):
			sets = append(sets, name+" = "+r.name("expires"))
		case attribute == "waiting" && g.often(6) && g.strict: // moto passes over what it has no map for, and returns what it removed as an empty map
			s, r := g.entryChanges(r)
			sets, removes = append(sets, s...), append(removes, r...)
		case g.often(3):
			removes = append(removes, name)
		default:
			sets = append(sets, name+" = "+r.literal(g.value(attribute)))
		}
	}
	sets = append(sets, r.name("last")+"="+r.literal(g.number()))
	clauses := []string{"SET " + strings.Join(sets, ", ")}
	if len(removes) > 0 {
		clauses = append(clauses, "remove "+strings.Join(removes, ","))
	}
	if len(adds) > 0 {
		clauses = append(clauses, "ADD "+strings.Join(adds, ", "))
	}
	g.Shuffle(len(clauses), func(i, j int) { clauses[i], clauses[j] = clauses[j], clauses[i] })
	return strings.Join(clauses, " ")
}

// entryChanges returns changes of single entries of a map, as when a holder joins, renews or
// leaves. They are refused where there is no map.
func (g *generator) entryChanges(r *request) (sets, removes []string) {
	for _, entry := range []string{"x", "y", "z"} {
		path := r.name("waiting") + "." + r.name(entry)
		switch g.IntN(4) {
		case 0:
			sets = append(sets, path+" = "+r.literal(pick(g, g.value("guid"), g.number())))
		case 1:
			removes = append(removes, path)
		case 2:
			sets = append(sets, path+" = if_not_exists("+path+", "+r.literal(g.number())+")")
		}
	}
	return sets, removes
}

func (g *generator) query(r *request) *dynamodb.QueryInput {
	condition := r.name("id") + " = " + r.literal(r.key["id"])
	if len(r.table.keys) == 2 && g.often(5) {
		sort, value := r.name("sort"), r.literal(r.key["sort"])
		if r.table.keys[1].Type != types.ScalarAttributeTypeN && g.often(6) {
			condition += " AND begins_with(" + sort + ", " + value + ")"
		} else {
			condition += " and " + sort + " = " + value
		}
	}
	in := &dynamodb.QueryInput{TableName: &r.table.name, ConsistentRead: aws.Bool(true), KeyConditionExpression: &condition}
	if g.often(4) {
		// A query's filter must not use its key.
		in.FilterExpression = aws.String(g.simple(r, attributeNames))
	}
	if g.often(3) {
		in.Limit = aws.Int32(1 + g.Int32N(3))
	}
	if g.often(3) {
		in.ExclusiveStartKey = g.key(r.table)
		in.ExclusiveStartKey["id"] = r.key["id"]
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = r.names, r.values
	return in
}

func (g *generator) scan(r *request) *dynamodb.ScanInput {
	in := &dynamodb.ScanInput{TableName: &r.table.name, ConsistentRead: aws.Bool(true)}
	if g.often(6) {
		in.FilterExpression = aws.String(g.simple(r, attributeNames))
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = r.names, r.values
	}
	if g.often(6) {
		in.Limit = aws.Int32(1 + g.Int32N(4))
	}
	return in
}

// transaction returns a transaction of guards and writes. Two parts may use the same
// item.
func (g *generator) transaction() operation {
	in := new(dynamodb.TransactWriteItemsInput)
	op := operation{input: in}
	for range 1 + g.IntN(3) {
		r := g.request()
		op.touched = append(op.touched, itemRef{r.table.name, r.key})
		w := types.TransactWriteItem{Put: &types.Put{TableName: &r.table.name, Item: g.item(r)}}
		if g.often(6) {
			w = types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
				TableName: &r.table.name, Key: r.key, ConditionExpression: aws.String(g.condition(r, 1)),
				ExpressionAttributeNames: r.names, ExpressionAttributeValues: r.values,
				ReturnValuesOnConditionCheckFailure: g.onFailure(),
			}}
		}
		in.TransactItems = append(in.TransactItems, w)
	}
	return op
}

func (g *generator) item(r *request) attributeMap {
	item := maps.Clone(r.key)
	for _, a := range attributeNames {
		if g.often(8) {
			item[a] = g.value(a)
		}
	}
	return item
}
