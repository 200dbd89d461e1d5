package dynamofake

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A keyAttribute is one part of the primary key.
type keyAttribute struct{ name, typ string }

// A schema is the primary key of a table: the partition key, and the sort key if
// there is one.
type schema struct{ keys []keyAttribute }

func (s *schema) has(name string) bool { return s.index(name) >= 0 }

func (s *schema) index(name string) int {
	return slices.IndexFunc(s.keys, func(k keyAttribute) bool { return k.name == name })
}

// checkKey checks the key of a request, which must have the key attributes and
// no others.
func (s *schema) checkKey(key item) error {
	if len(key) != len(s.keys) {
		return invalid("The provided key element does not match the schema")
	}
	return s.checkItem(key)
}

// checkItem checks the key attributes of a whole item.
func (s *schema) checkItem(it item) error {
	for i, k := range s.keys {
		v := it[k.name]
		if typeOf(v) != k.typ {
			return invalid("One or more parameter values were invalid: Missing the key %s in the item, or type mismatch; expected: %s actual: %s", k.name, k.typ, typeOf(v))
		}
		if err := checkKeyValue(k.name, v, i == 0); err != nil {
			return err
		}
	}
	return nil
}

func checkKeyValue(name string, v types.AttributeValue, hash bool) error {
	if typeOf(v) == "N" {
		return nil
	}
	switch size := valueSize(v); {
	case size == 0:
		return invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty value. Key: %s", name)
	case hash && size > maxHashKey:
		return invalid("One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of 2048 bytes")
	case !hash && size > maxRangeKey:
		return invalid("One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
	}
	return nil
}

// keyOf returns the key attributes of an item.
func (s *schema) keyOf(it item) item {
	key := make(item, len(s.keys))
	for _, k := range s.keys {
		key[k.name] = it[k.name]
	}
	return key
}

// encode returns the key of an item in a form that no other key has.
func (s *schema) encode(it item) string {
	encoded := keyString(it[s.keys[0].name]) + "\x00"
	if len(s.keys) == 2 {
		encoded += keyString(it[s.keys[1].name])
	}
	return encoded
}

// escaped keeps the separator of encode out of keys.
var escaped = strings.NewReplacer("\x00", "\x01\x00", "\x01", "\x01\x01")

func keyString(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return escaped.Replace(v.Value)
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberB:
		return escaped.Replace(string(v.Value))
	}
	return ""
}
