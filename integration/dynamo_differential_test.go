package integration_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/internal/dynamostore"
	"github.com/holdfast-go/holdfast/internal/recordlock/memstore"
)

// TestDynamoDifferential carries out the same random operations on the store in memory, which the tests in virtual time use, and on a
// server through dynamolock's store. The records must agree. Of concurrent writes, exactly one must be carried out.
//
// HOLDFAST_SEED repeats a run; HOLDFAST_OPERATIONS makes it longer.
func TestDynamoDifferential(t *testing.T) {
	start(t)
	seed, target := seeded(t), dynamoserver.Find(t)
	operations := setting(t, "HOLDFAST_OPERATIONS", 1500, strconv.Atoi)
	id, number, bytes := dynamoserver.Key{Name: "id"}, types.ScalarAttributeTypeN, types.ScalarAttributeTypeB
	for _, c := range []struct {
		key, partition, sort string // the key, and its parts
		keys                 []dynamoserver.Key
	}{
		{"k", "k", "", []dynamoserver.Key{id}},
		{"17", "17", "", []dynamoserver.Key{{Name: "id", Type: number}}},
		{"\xffk", "\xffk", "", []dynamoserver.Key{{Name: "id", Type: bytes}}},
		{"p/s", "p", "s", []dynamoserver.Key{id, {Name: "sort"}}},
		{"p/7", "p", "7", []dynamoserver.Key{id, {Name: "sort", Type: number}}},
	} {
		for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosed, dynamolock.FailClosedFenced} {
			t.Run(fmt.Sprintf("%q/%v", c.key, mode), func(t *testing.T) {
				o := dynamolock.Options{Table: target.Table(t, c.keys...), Mode: mode, OpenTimeout: patience}
				o.Keys.Partition = dynamolock.KeyAttr{Name: "id", Type: c.keys[0].Type}
				item := attributeMap{"id": keyValue(c.keys[0].Type, c.partition)}
				if len(c.keys) > 1 {
					o.Keys.Sort = dynamolock.KeyAttr{Name: "sort", Type: c.keys[1].Type}
					item["sort"] = keyValue(c.keys[1].Type, c.sort)
				}
				client, err := dynamolock.New(t.Context(), target.Client(), &o)
				must(t, err)
				t.Cleanup(func() { _ = client.Close(context.Background()) })
				table := &itemTable{name: o.Table, item: item, api: target.Client(), mode: mode}
				d := &differential{
					Rand: rand.New(rand.NewPCG(seed, 1)), key: c.key, tokenless: mode == dynamolock.FailClosed, expires: mode == dynamolock.FailOpen,
					memory: &memstore.Store{Forgetful: mode == dynamolock.FailClosed}, table: dynamostore.Of(client),
					remove: table.remove, foreign: table.foreign,
				}
				d.run(t, operations/15)
			})
		}
	}
}

// An attributeMap is an item, or a part of one.
type attributeMap = map[string]types.AttributeValue

func keyValue(typ types.ScalarAttributeType, text string) types.AttributeValue {
	switch typ {
	case types.ScalarAttributeTypeN:
		return &types.AttributeValueMemberN{Value: text}
	case types.ScalarAttributeTypeB:
		return &types.AttributeValueMemberB{Value: []byte(text)}
	}
	return &types.AttributeValueMemberS{Value: text}
}

// An itemTable changes the item of a key as another program does.
type itemTable struct {
	name string
	item attributeMap // the key
	api  *dynamodb.Client
	mode dynamolock.Mode
}

// foreign writes the item as the npm client does.
func (i *itemTable) foreign(t *testing.T, d *differential) {
	item := attributeMap{
		"owner": text("node"), "guid": keyValue(types.ScalarAttributeTypeB, strings.Repeat(string(rune('a'+d.IntN(26))), 64)),
	}
	maps.Copy(item, i.item)
	if i.mode != dynamolock.FailClosed {
		item["fencingToken"] = keyValue(types.ScalarAttributeTypeN, strconv.Itoa(1+d.IntN(5)))
		item["leaseDurationMs"] = keyValue(types.ScalarAttributeTypeN, "5000")
	}
	_, err := i.api.PutItem(limited(t), &dynamodb.PutItemInput{TableName: &i.name, Item: item})
	must(t, err)
	now, err := d.table.Read(t.Context(), d.key, true)
	must(t, err)
	if len(now.Holders) != 1 || now.Holders[0].Owner != "node" || now.Holders[0].Grant[0] != '-' {
		t.Errorf("the npm client holds the key: %+v", now)
	}
	d.memory.Put(d.key, now)
}

// remove deletes the item.
func (i *itemTable) remove(t *testing.T) {
	_, err := i.api.DeleteItem(limited(t), &dynamodb.DeleteItemInput{TableName: &i.name, Key: i.item})
	must(t, err)
}
