package integration_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
)

// TestDynamoDifferentialLocks is TestDynamoDifferential with requests of the kinds
// that dynamolock sends, and transactions beside them: fewer kinds of values and
// expressions, but all of what a lock depends on, so that servers which know less of
// the rest can be asked, too. Guards: the fake of the unit tests says what a server
// says of conditions, of the item that was in the way, of updates, and of
// transactions.
func TestDynamoDifferentialLocks(t *testing.T) {
	start(t)
	d := newDifferential(t)
	d.free = true
	g := &lockGenerator{d.generator}
	for range operations(t, 1500) {
		d.step(t, g.operation())
	}
	d.scans(t)
	want := []string{"UpdateItem ", "UpdateItem ConditionalCheckFailedException", "DeleteItem ", "DeleteItem ConditionalCheckFailedException", "GetItem "}
	if d.transactions {
		want = append(want, "TransactWriteItems ", "TransactWriteItems TransactionCanceledException", "TransactWriteItems ValidationException")
	}
	d.saw(t, want)
}

// A lockGenerator makes operations on items like those of locks.
type lockGenerator struct{ *generator }

// The attributes of such an item, besides its key, and their types.
var lockAttributes = map[string]string{"guid": "B", "leaseDurationMs": "N", "fencingToken": "N", "owner": "S", "holdfastData": "B", "expires": "N"}

var lockNames = []string{"guid", "leaseDurationMs", "fencingToken", "owner", "holdfastData", "expires"}

func (g *lockGenerator) operation() operation {
	r := g.request()
	touched := []itemRef{{r.table.name, r.key}}
	switch n := g.IntN(100); {
	case n < 55:
		return operation{g.lockUpdate(r), touched}
	case n < 65:
		return operation{&dynamodb.DeleteItemInput{
			TableName: &r.table.name, Key: r.key,
			ReturnValues:                        pick(g.generator, "", types.ReturnValueAllOld),
			ConditionExpression:                 aws.String(g.lockCondition(r, 2)),
			ReturnValuesOnConditionCheckFailure: g.onFailure(),
			ExpressionAttributeNames:            r.names, ExpressionAttributeValues: r.values,
		}, touched}
	case n < 72:
		return operation{&dynamodb.PutItemInput{
			TableName: &r.table.name, Item: g.lockItem(r),
			ReturnValues:                        pick(g.generator, "", types.ReturnValueAllOld),
			ConditionExpression:                 aws.String(g.lockCondition(r, 1)),
			ReturnValuesOnConditionCheckFailure: g.onFailure(),
			ExpressionAttributeNames:            r.names, ExpressionAttributeValues: r.values,
		}, touched}
	case n < 80 || !g.transactions:
		return operation{input: &dynamodb.GetItemInput{TableName: &r.table.name, Key: r.key, ConsistentRead: aws.Bool(true)}}
	}
	return g.lockTransaction()
}

// lockValue returns a value of an attribute: its type is wrong now and then.
func (g *lockGenerator) lockValue(attribute string) types.AttributeValue {
	typ := lockAttributes[attribute]
	if g.often(1) && attribute != "fencingToken" { // which is added to
		typ = pick(g.generator, "S", "N", "B")
	}
	switch typ {
	case "N":
		return &types.AttributeValueMemberN{Value: pick(g.generator, "0", "1", "2", "3000", "9007199254740990")}
	case "B":
		return &types.AttributeValueMemberB{Value: []byte(pick(g.generator, "ab", "abc", "abcd", "b", "\xff\x00", "\xff\x01"))}
	}
	return text(pick(g.generator, "ab", "abc", "b", "zoë"))
}

func (g *lockGenerator) lockItem(r *request) attributeMap {
	item := make(attributeMap)
	for _, k := range r.table.keys {
		item[k.Name] = r.key[k.Name]
	}
	for _, a := range lockNames {
		if g.often(8) {
			item[a] = g.lockValue(a)
		}
	}
	return item
}

// lockName returns the alias of an attribute.
func (g *lockGenerator) lockName(r *request, attribute string) string {
	if r.names == nil {
		r.names = make(map[string]string)
	}
	r.names["#"+attribute] = attribute
	return "#" + attribute
}

// lockCondition returns a condition of the forms that dynamolock has.
func (g *lockGenerator) lockCondition(r *request, depth int) string {
	if depth > 0 && g.often(6) {
		x, y := g.lockCondition(r, depth-1), g.lockCondition(r, depth-1)
		return pick(g.generator, "NOT ("+x+" AND "+y+")", "("+x+" OR "+y+") AND NOT ("+x+")", x+" AND "+y, x+" OR "+y)
	}
	return g.lockSimple(r)
}

func (g *lockGenerator) lockSimple(r *request) string {
	attribute := pick(g.generator, lockNames...)
	name := g.lockName(r, attribute)
	// Often what is there, or else nothing would ever be equal.
	value := func() string {
		if v := r.present[attribute]; v != nil && g.often(6) {
			return r.literal(v)
		}
		return r.literal(g.lockValue(attribute))
	}
	switch g.IntN(9) {
	case 0:
		return "attribute_exists(" + name + ")"
	case 1:
		return "attribute_not_exists(" + pick(g.generator, name, g.lockName(r, "id")) + ")"
	case 2:
		return "attribute_type(" + name + ", " + r.literal(text(pick(g.generator, "S", "N", "B"))) + ")"
	case 3:
		guid := g.lockName(r, "guid")
		return pick(g.generator, "", "NOT ") + "begins_with(" + guid + ", " + r.literal(&types.AttributeValueMemberB{Value: []byte(pick(g.generator, "a", "ab", "\xff"))}) + ")"
	case 4:
		number := pick(g.generator, "leaseDurationMs", "fencingToken", "expires")
		return g.lockName(r, number) + " BETWEEN " + r.literal(keyValue("N", "0")) + " AND " + r.literal(keyValue("N", pick(g.generator, "1", "9007199254740990")))
	}
	return name + " " + pick(g.generator, "=", "=", "<>", "<", "<=", ">", ">=") + " " + value()
}

// lockUpdate returns an update as for a grant, a heartbeat or a release.
func (g *lockGenerator) lockUpdate(r *request) *dynamodb.UpdateItemInput {
	in := &dynamodb.UpdateItemInput{
		TableName: &r.table.name, Key: r.key,
		// No UPDATED_OLD: moto leaves out what has the same value afterwards.
		ReturnValues:                        pick(g.generator, "", types.ReturnValueNone, types.ReturnValueAllOld, types.ReturnValueAllNew, types.ReturnValueUpdatedNew),
		ReturnValuesOnConditionCheckFailure: g.onFailure(),
		ConditionExpression:                 aws.String(g.lockCondition(r, 2)),
		UpdateExpression:                    aws.String(g.lockChange(r)),
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = r.names, r.values
	return in
}

func (g *lockGenerator) lockChange(r *request) string {
	var sets, removes []string
	for _, attribute := range lockNames {
		switch name := g.lockName(r, attribute); {
		case attribute == "fencingToken":
			sets = append(sets, name+" = if_not_exists("+name+", "+r.literal(keyValue("N", "41"))+") + "+r.literal(keyValue("N", "1")))
		case g.often(3):
			removes = append(removes, name)
		default:
			sets = append(sets, name+" = "+r.literal(g.lockValue(attribute)))
		}
	}
	change := "SET " + strings.Join(sets, ", ")
	if len(removes) > 0 {
		change += " REMOVE " + strings.Join(removes, ", ")
	}
	return change
}

// lockTransaction returns a transaction of which one part is a guard, in most
// cases. Two parts may be of one item.
func (g *lockGenerator) lockTransaction() operation {
	in := new(dynamodb.TransactWriteItemsInput)
	op := operation{input: in}
	for range 1 + g.IntN(3) {
		r := g.request()
		op.touched = append(op.touched, itemRef{r.table.name, r.key})
		var w types.TransactWriteItem
		switch g.IntN(5) {
		case 0:
			u := g.lockUpdate(r)
			w.Update = &types.Update{
				TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression, ConditionExpression: u.ConditionExpression,
				ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
				ReturnValuesOnConditionCheckFailure: u.ReturnValuesOnConditionCheckFailure,
			}
		case 1:
			w.Put = &types.Put{TableName: &r.table.name, Item: g.lockItem(r)}
		case 2:
			w.Delete = &types.Delete{TableName: &r.table.name, Key: r.key}
		default:
			w.ConditionCheck = &types.ConditionCheck{
				TableName: &r.table.name, Key: r.key, ConditionExpression: aws.String(g.lockCondition(r, 1)),
				ExpressionAttributeNames: r.names, ExpressionAttributeValues: r.values,
				ReturnValuesOnConditionCheckFailure: g.onFailure(),
			}
		}
		in.TransactItems = append(in.TransactItems, w)
	}
	return op
}

// TestDynamoTimeToLive asks for Time to Live as CreateTable and doctor do. Guards:
// what the fake says of it is what a server says that has it.
func TestDynamoTimeToLive(t *testing.T) {
	start(t)
	d := newDifferential(t)
	if !d.target.TimeToLive() {
		return // newDifferential has said so
	}
	table := d.tables[0].name
	describe := operation{input: &dynamodb.DescribeTimeToLiveInput{TableName: &table}}
	change := func(attribute string, on bool) operation {
		return operation{input: &dynamodb.UpdateTimeToLiveInput{
			TableName:               &table,
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: &on},
		}}
	}
	for _, op := range []operation{describe, change("expires", true), describe} {
		d.step(t, op)
	}
	if d.target.Source() == dynamoserver.Moto {
		return // it takes any change; see TestMotoDeviates
	}
	for _, op := range []operation{change("expires", true), change("other", true), change("other", false), describe} {
		d.step(t, op)
	}
}

// saw fails the test if an outcome was never seen, a slip of the generator.
func (d *differential) saw(t *testing.T, want []string) {
	t.Helper()
	var missing []string
	for _, what := range want {
		if d.seen[what] == 0 {
			missing = append(missing, what)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		t.Errorf("never seen: %q of %v", missing, d.seen)
	}
}
