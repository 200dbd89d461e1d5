package dynamolock

import (
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// fuzzKeys makes the keys of a table: types by the bits of shape, with a separator for a sort key.
func fuzzKeys(shape byte, separator string) (Keys, bool) {
	all := []types.ScalarAttributeType{"", types.ScalarAttributeTypeS, types.ScalarAttributeTypeN, types.ScalarAttributeTypeB}
	k := Keys{Partition: KeyAttr{Name: "hash", Type: all[shape&3]}}
	if shape&4 != 0 {
		k.Sort, k.Separator = KeyAttr{Name: "range", Type: all[shape>>3&3]}, separator
	}
	return k, k.fill() == nil
}

// oneForm is the only form of a decimal number of at most 38 digits, by math/big; false for others.
func oneForm(text string) (string, bool) {
	if text == "" || strings.Trim(text, "-.0123456789") != "" || len(text) > 40 {
		return "", false
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return "", false
	}
	form := r.FloatString(40)
	form = strings.TrimRight(strings.TrimRight(form, "0"), ".")
	digits := len(strings.NewReplacer("-", "", ".", "").Replace(form))
	return form, digits <= 38
}

// sameAttribute compares as DynamoDB does: numbers by what they are.
func sameAttribute(v, w types.AttributeValue) bool {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		w, ok := w.(*types.AttributeValueMemberS)
		return ok && v.Value == w.Value
	case *types.AttributeValueMemberB:
		w, ok := w.(*types.AttributeValueMemberB)
		return ok && string(v.Value) == string(w.Value)
	case *types.AttributeValueMemberN:
		w, ok := w.(*types.AttributeValueMemberN)
		if !ok {
			return false
		}
		x, _ := new(big.Rat).SetString(v.Value)
		y, _ := new(big.Rat).SetString(w.Value)
		return x.Cmp(y) == 0
	}
	return false
}

func sameKey(x, y attributes) bool {
	for name, v := range x {
		if !sameAttribute(v, y[name]) {
			return false
		}
	}
	return len(x) == len(y)
}

// keyValue makes a key attribute of a type.
func keyValue(kind types.ScalarAttributeType, s string) types.AttributeValue {
	switch kind {
	case types.ScalarAttributeTypeB:
		return binary(s)
	case types.ScalarAttributeTypeN:
		if _, ok := oneForm(s); !ok {
			return number(1)
		}
		return &types.AttributeValueMemberN{Value: s}
	}
	return text(s)
}

// FuzzKeys tests the mapping from keys to items and back, for keys of each type, with and
// without sort keys: no two keys share an item, an item maps back to its key, a number
// has only one form, a refused key is ErrInvalid, and another program's item has a key only if that leads to it.
func FuzzKeys(f *testing.F) {
	for _, seed := range []struct {
		shape          byte
		separator      string
		key, other     string
		hash, sortPart string
	}{
		{1, "", "orders/42", "orders", "orders/42", ""},
		{2, "", "7", "07", "7.0", ""},
		{2, "", "-0.5", "-0", "-.5", ""},
		{2, "", "1e3", "+1", "0x1", ""},
		{2, "", strings.Repeat("9", 38), strings.Repeat("9", 39), "0." + strings.Repeat("0", 36) + "1", ""},
		{2, "", "10000000000000000000000000000000000000", "0.", ".0", ""},
		{3, "", "\u00e9", "a/b", "\xff", ""},
		{1 | 4 | 1<<3, "/", "a/b/c", "a/b", "a/b", "c"},
		{1 | 4 | 1<<3, "/", "a//", "/a", "", "c"},
		{1 | 4 | 2<<3, "#", "a/b#-2", "a#b#1", "a", "-2"},
		{2 | 4 | 3<<3, "::", "1::a::b", "1:::a", "1", ":a"},
		{1 | 4 | 1<<3, "..", "a...b", "a..b", "a.", "b"},
		{2 | 4 | 2<<3, "0", "1001", "10", "1", "1"},
		{4, "", "a/b", "", "\x01", "."},
		{4, "/", "\xff/a", "", "", ""},
		// Items of other programs.
		{3, "", "", "", "\xff", ""},
		{1, "", "", "", "a//b", ""},
		{5 | 1<<3, "/", "", "", "a", "b/c"},
		{5 | 1<<3, "/", "", "", "a/b", "c"},
		{5 | 1<<3, "ab", "", "", "a", "bc"},
		{5 | 1<<3, "..", "", "", "a.", "b"},
		{5 | 1<<3, "::", "", "", "a:", ":b"},
		{5 | 3<<3, "/", "", "", "a", "\x00"},
		{6 | 2<<3, "0", "", "", "1", "1"},
		{2, "", "", "", "7.0", ""}, // numbers in another form
		{2, "", "", "", "-.1", ""},
		{2, "", "", "", "00", ""},
	} {
		f.Add(seed.shape, seed.separator, seed.key, seed.other, seed.hash, seed.sortPart)
	}
	f.Fuzz(func(t *testing.T, shape byte, separator, key, other, hash, sortPart string) {
		k, ok := fuzzKeys(shape, separator)
		if !ok {
			return
		}
		for _, text := range []string{key, other, hash, sortPart} {
			if form, ok := oneForm(text); canonical(text) != (ok && form == text) {
				t.Fatalf("canonical(%q) = %v; its form is %q, %v", text, canonical(text), form, ok)
			}
		}
		item := attributes{"hash": keyValue(k.Partition.Type, hash)}
		if k.Sort.Name != "" {
			item["range"] = keyValue(k.Sort.Type, sortPart)
		}
		if key, ok := k.decode(item); ok {
			if again, err := k.encode(key); err != nil || !sameKey(again, item) {
				t.Fatalf("%+v: %v is said to have the key %q, which is %v, %v", k, item, key, again, err)
			}
		}
		var found []attributes
		for _, key := range []string{key, other} {
			attrs, err := k.encode(key)
			if err != nil {
				var invalid *holdfast.InvalidError
				if !errors.As(err, &invalid) || invalid.Field != "key" {
					t.Fatalf("%+v: %q: %v", k, key, err)
				}
				return
			}
			back, ok := k.decode(attrs)
			if !ok || back != key {
				t.Fatalf("%+v: %q is the item %v, whose key is %q, %v", k, key, attrs, back, ok)
			}
			found = append(found, attrs)
		}
		if (key == other) != sameKey(found[0], found[1]) {
			t.Fatalf("%+v: %q and %q are %v and %v", k, key, other, found[0], found[1])
		}
	})
}

const fuzzTable = "fuzz"

// fuzzEngine returns an engine with its own table.
func fuzzEngine(t *testing.T, o Options) (*engine, *dynamofake.DB) {
	o.Table = fuzzTable
	if err := o.fill(); err != nil {
		t.Fatal(err)
	}
	db := dynamofake.New()
	if err := CreateTable(t.Context(), db.Client(), &o); err != nil {
		t.Fatal(err)
	}
	var b *engine
	_, err := holdfast.New(driver.Config{}, nil, func(host driver.Host) (driver.Driver, error) {
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
		{0, "0", "˧", "\x01", "aa"},            // found by fuzzing: a prefix that ends within a character
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
				if errors.Is(err, holdfast.ErrInvalid) && !utf8.ValidString(prefix) {
					want = nil // refused where the attribute is a string, though keys may begin with it
					break
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
