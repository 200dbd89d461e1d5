package dynamolock

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

const fuzzTable = "fuzz"

// fuzzEngine returns an engine with its own table.
func fuzzEngine(t *testing.T, o Options) (*engine, *dynamofake.DB) {
	o.Table = fuzzTable
	if err := o.fill(); err != nil {
		t.Fatal(err)
	}
	db := dynamofake.New()
	in := &dynamodb.CreateTableInput{TableName: aws.String(fuzzTable), BillingMode: types.BillingModePayPerRequest}
	for i, key := range []KeyAttr{o.Keys.Partition, o.Keys.Sort} {
		if key.Name == "" {
			continue
		}
		role := []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String(key.Name), KeyType: role})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(key.Name), AttributeType: key.Type})
	}
	if _, err := db.Client().CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	var b *engine
	_, err := holdfast.New(driver.Config{}, holdfast.Hooks{}, func(host driver.Host) (driver.Driver, error) {
		b = newEngine(host, db.Client(), o)
		return nil, errors.New("the engine is all that is wanted")
	})
	if b == nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.tasks.Close(t.Context()) })
	return b, db
}

// FuzzList tests List: it yields exactly the keys that begin with a prefix, wherever the
// prefix ends (in the partition key, the separator or the sort key) and whatever else is
// in the table.
func FuzzList(f *testing.F) {
	for _, seed := range []struct {
		shape                           byte
		separator, key, prefix, foreign string
	}{
		{1, "", "orders/42", "orders/", "order"},
		{5 | 1<<3, "::", "a::b", "a:", "a:"},   // found by fuzzing: a prefix that ends within the separator
		{5 | 1<<3, "..", "a...b", "a..", "a."}, // found by fuzzing: a partition key that ends as the separator begins
		{5 | 1<<3, "::", ":a::b", ":", ":"},
		{5 | 1<<3, "/", "a/b/c", "a/b/", "a/b"},
		{5 | 2<<3, "#", "a/b#-2", "a/b#", "a/b"},
		{5 | 2<<3, "#", "a/b#-2", "a/b#-", "a/b"},
		{6 | 3<<3, "::", "1::a::b", "1::a:", "1"},
		{2, "", "7", "", "8"},
		{2, "", "7", "7", "8"},
		{3, "", "\u00e9", "\u00e9", "\xff"},
		{4, "#", "a#b", "a", "\xff"}, // another program's key is not UTF-8
		{1, "", "a", "\xff", "\x00\x01"},
		{6 | 1<<3, "/", "1/a", "a/", "1"}, // the prefix is no number
		{2, "", "-", "", ""},              // no keys of such a table
		{6 | 2<<3, ":", "1:a", "", ""},
		{6 | 3<<3, "", "7", "", ""},
	} {
		f.Add(seed.shape, seed.separator, seed.key, seed.prefix, seed.foreign)
	}
	f.Fuzz(func(t *testing.T, shape byte, separator, key, prefix, foreign string) {
		k, ok := fuzzKeys(shape, separator)
		if !ok || max(len(key), len(prefix), len(foreign)) > maxSort {
			return
		}
		b, db := fuzzEngine(t, Options{Keys: k})
		held := func(attrs attributes) {
			attrs[attrGUID], attrs[attrToken], attrs[attrLease] = binary("guid"), number(7), number(20_000)
			db.SetItem(fuzzTable, attrs)
		}
		attrs, err := b.opts.Keys.encode(key)
		if err != nil {
			return
		}
		if _, ok := attrs[k.Partition.Name].(*types.AttributeValueMemberS); ok && foreign != "" { // of another program, with the same sort key
			stranger := attributes{k.Partition.Name: text(foreign)}
			if k.Sort.Name != "" {
				stranger[k.Sort.Name] = attrs[k.Sort.Name]
			}
			held(stranger)
		}
		held(attrs)

		for _, prefix := range []string{prefix, key[:min(len(prefix), len(key))]} {
			var want, got []string
			for _, item := range db.Items(fuzzTable) {
				if key, ok := b.opts.Keys.decode(item); ok && strings.HasPrefix(key, prefix) {
					want = append(want, key)
				}
			}
			if strings.HasPrefix(key, prefix) && !slices.Contains(want, key) {
				t.Fatalf("%+v: %q is not the key of its item", k, key)
			}
			for info, err := range b.List(t.Context(), prefix) {
				if errors.Is(err, holdfast.ErrInvalid) && (k.Partition.Type == types.ScalarAttributeTypeN || k.Sort.Type == types.ScalarAttributeTypeN) {
					return // numbers have no prefixes
				}
				if errors.Is(err, holdfast.ErrInvalid) && !utf8.ValidString(prefix) && len(want) == 0 {
					break // no string has such a prefix
				}
				if err != nil {
					t.Fatalf("%+v: List(%q): %v", k, prefix, err)
				}
				got = append(got, info.Key)
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("%+v: List(%q) yields %q, want %q", k, prefix, got, want)
			}
		}
	})
}
