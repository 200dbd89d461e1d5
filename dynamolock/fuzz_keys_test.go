package dynamolock

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
)

// fuzzKeys makes the keys of a table: types by the bits of shape, with a
// separator for a sort key.
func fuzzKeys(shape byte, separator string) (Keys, bool) {
	all := []types.ScalarAttributeType{"", types.ScalarAttributeTypeS, types.ScalarAttributeTypeN, types.ScalarAttributeTypeB}
	k := Keys{Partition: KeyAttr{Name: "hash", Type: all[shape&3]}}
	if shape&4 != 0 {
		k.Sort, k.Separator = KeyAttr{Name: "range", Type: all[shape>>3&3]}, separator
	}
	return k, k.fill() == nil
}

// oneForm is the one way to write a decimal number of at most 38 digits, by
// math/big; false for what is none.
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

// FuzzKeys tests the mapping from keys to items and back, for keys of each type, with and
// without sort keys: no two keys share an item, an item maps back to its key, a number
// has only one form, and a refused key is ErrInvalid.
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

// FuzzItemKeys tests List with other programs' items: an item has a key only if that key
// leads to it.
func FuzzItemKeys(f *testing.F) {
	for _, seed := range []struct {
		shape, types   byte
		separator      string
		hash, sortPart string
	}{
		{1, 0, "", "orders/42", ""},
		{2, 1, "", "7", ""},
		{2, 1, "", "7.0", ""},
		{3, 2, "", "\xff", ""},
		{1, 0, "", "a//b", ""},
		{5 | 1<<3, 0, "/", "a", "b/c"},
		{5 | 1<<3, 0, "/", "a/b", "c"},
		{5 | 1<<3, 0, "ab", "a", "bc"},
		{5 | 1<<3, 0, "..", "a.", "b"},
		{5 | 1<<3, 0, "::", "a:", ":b"},
		{5 | 3<<3, 2 << 2, "/", "a", "\x00"},
		{5 | 1<<3, 0, "/", "a", ""},
		{6 | 2<<3, 1 | 1<<2, "0", "1", "1"},
		{4, 0, "", "a", "\xff"},
		{1, 0, "", "", ""},
		{1, 1, "", "7", ""}, // another type, or no key at all
		{2, 3, "", "", ""},
		{2, 1, "", ".", ""},
		{2, 1, "", "-.1", ""}, // numbers in another form
		{2, 1, "", "-0", ""},
		{2, 1, "", "00", ""},
	} {
		f.Add(seed.shape, seed.types, seed.separator, seed.hash, seed.sortPart)
	}
	f.Fuzz(func(t *testing.T, shape, kinds byte, separator, hash, sortPart string) {
		k, ok := fuzzKeys(shape, separator)
		if !ok {
			return
		}
		value := func(kind byte, s string) types.AttributeValue {
			switch kind & 3 {
			case 1:
				if _, ok := oneForm(s); !ok {
					return number(1)
				}
				return &types.AttributeValueMemberN{Value: s}
			case 2:
				return binary(s)
			case 3:
				return nil
			}
			return text(s)
		}
		attrs := attributes{"hash": value(kinds, hash)}
		if k.Sort.Name != "" {
			attrs["range"] = value(kinds>>2, sortPart)
		}
		key, ok := k.decode(attrs)
		if !ok {
			return
		}
		if again, err := k.encode(key); err != nil || !sameKey(again, attrs) {
			t.Fatalf("%+v: %v is said to have the key %q, which is %v, %v", k, attrs, key, again, err)
		}
	})
}
