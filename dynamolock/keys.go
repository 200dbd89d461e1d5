package dynamolock

import (
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
)

// Keys are the key attributes of a table.
type Keys struct {
	// Partition is the partition key. Default: "id" of type S.
	Partition KeyAttr

	// Sort is the sort key. Default: the table has none. With one, a key string
	// is split at the first Separator: what comes before is the partition key,
	// what comes after the sort key; neither may be empty.
	Sort KeyAttr

	// Separator parts partition and sort key in a key string. Default "/". It is
	// of no use without Sort.
	Separator string
}

// A KeyAttr is one key attribute.
type KeyAttr struct {
	Name string // 1 to 255 bytes; not one of the lock's own attributes

	// Type is types.ScalarAttributeTypeS (default), ...N or ...B. In a key of
	// type N only canonical decimal numbers of at most 38 digits can be locked
	// (7, -0.5, but not 07, 7.0 or 1e3); in one of type S, valid UTF-8; one of
	// type B has the bytes of the key string, whatever they are.
	Type types.ScalarAttributeType
}

const maxAttrName = 255 // bytes; DynamoDB's limit for the names of keys

// The most bytes that DynamoDB takes in a key.
const (
	maxPartition = 2048
	maxSort      = 1024
)

func (k *Keys) fill() error {
	if k.Partition.Name == "" {
		if k.Partition.Type != "" {
			return driver.Invalid("Options.Keys.Partition.Name", "it is empty, and there is a type")
		}
		k.Partition.Name = "id"
	}
	if err := k.Partition.fill("Options.Keys.Partition"); err != nil {
		return err
	}
	if k.Sort.Name == "" {
		if k.Sort.Type != "" || k.Separator != "" {
			return driver.Invalid("Options.Keys.Sort.Name", "it is empty, and there is a type or a separator")
		}
		return nil
	}
	if err := k.Sort.fill("Options.Keys.Sort"); err != nil {
		return err
	}
	if k.Sort.Name == k.Partition.Name {
		return driver.Invalid("Options.Keys.Sort.Name", "%q is the partition key", k.Sort.Name)
	}
	if k.Separator == "" {
		k.Separator = "/"
	}
	return nil
}

func (a *KeyAttr) fill(field string) error {
	if len(a.Name) > maxAttrName {
		return driver.Invalid(field+".Name", "%d bytes, at most %d are allowed", len(a.Name), maxAttrName)
	}
	if ownAttribute(a.Name) {
		return driver.Invalid(field+".Name", "%q is an attribute of the lock itself", a.Name)
	}
	switch a.Type {
	case "":
		a.Type = types.ScalarAttributeTypeS
	case types.ScalarAttributeTypeS, types.ScalarAttributeTypeN, types.ScalarAttributeTypeB:
	default:
		return driver.Invalid(field+".Type", "%q is none of S, N, B", a.Type)
	}
	return nil
}

// checkFree refuses the name of an attribute that is in use already.
func (k *Keys) checkFree(field, name string) error {
	switch {
	case len(name) > maxAttrName:
		return driver.Invalid(field, "%d bytes, at most %d are allowed", len(name), maxAttrName)
	case name == k.Partition.Name || name == k.Sort.Name:
		return driver.Invalid(field, "%q is a key of the table", name)
	case ownAttribute(name):
		return driver.Invalid(field, "%q is an attribute of the lock itself", name)
	}
	return nil
}

// encode returns the key attributes of a key string.
func (k *Keys) encode(key string) (map[string]types.AttributeValue, error) {
	if k.Sort.Name == "" {
		v, err := k.Partition.encode("key", key, maxPartition)
		if err != nil {
			return nil, err
		}
		return map[string]types.AttributeValue{k.Partition.Name: v}, nil
	}
	partition, sort, found := strings.Cut(key, k.Separator)
	if !found || partition == "" || sort == "" {
		return nil, driver.Invalid("key", "it needs a part for %q and one for %q, with %q between them",
			k.Partition.Name, k.Sort.Name, k.Separator)
	}
	p, err := k.Partition.encode("key", partition, maxPartition)
	if err != nil {
		return nil, err
	}
	s, err := k.Sort.encode("key", sort, maxSort)
	if err != nil {
		return nil, err
	}
	return map[string]types.AttributeValue{k.Partition.Name: p, k.Sort.Name: s}, nil
}

// beforeSeparator returns as much of the beginning of a key string as is part of
// the partition key in any case: the end may be where the separator begins.
func (k *Keys) beforeSeparator(prefix string) string {
	for n := len(k.Separator) - 1; n > 0; n-- {
		if before, found := strings.CutSuffix(prefix, k.Separator[:n]); found {
			return before
		}
	}
	return prefix
}

func (a *KeyAttr) encode(field, text string, most int) (types.AttributeValue, error) {
	switch {
	case text == "":
		return nil, driver.Invalid(field, "it is empty")
	case len(text) > most:
		return nil, driver.Invalid(field, "%d bytes for %q, at most %d are allowed", len(text), a.Name, most)
	}
	switch a.Type {
	case types.ScalarAttributeTypeN:
		if !canonical(text) {
			return nil, driver.Invalid(field, "%q is of type N, which takes canonical decimal numbers of at most %d digits",
				a.Name, maxDigits)
		}
		return &types.AttributeValueMemberN{Value: text}, nil
	case types.ScalarAttributeTypeB:
		return &types.AttributeValueMemberB{Value: []byte(text)}, nil
	}
	if !utf8.ValidString(text) {
		return nil, driver.Invalid(field, "it is not valid UTF-8, and %q is of type S", a.Name)
	}
	return &types.AttributeValueMemberS{Value: text}, nil
}

// decode returns the key string of an item, or false if it has none: another
// program's item, which cannot be named here.
func (k *Keys) decode(item map[string]types.AttributeValue) (string, bool) {
	key, ok := k.Partition.decode(item)
	if !ok {
		return "", false
	}
	if k.Sort.Name != "" {
		sort, ok := k.Sort.decode(item)
		whole := key + k.Separator + sort
		// The first separator may begin in the partition key: "a." and "..".
		if first, _, _ := strings.Cut(whole, k.Separator); !ok || sort == "" || key == "" || first != key {
			return "", false
		}
		key = whole
	}
	_, err := k.encode(key)
	return key, err == nil
}

// name returns the key string of key attributes, for logs; "" if they have none.
func (k *Keys) name(key map[string]types.AttributeValue) string {
	name, _ := k.decode(key)
	return name
}

func (a *KeyAttr) decode(item map[string]types.AttributeValue) (string, bool) {
	switch v := item[a.Name].(type) {
	case *types.AttributeValueMemberS:
		return v.Value, a.Type == types.ScalarAttributeTypeS
	case *types.AttributeValueMemberN:
		return v.Value, a.Type == types.ScalarAttributeTypeN && canonical(v.Value)
	case *types.AttributeValueMemberB:
		return string(v.Value), a.Type == types.ScalarAttributeTypeB
	}
	return "", false
}

const maxDigits = 38 // of DynamoDB's numbers

// canonical reports whether text is the one way to write a decimal number
// that DynamoDB would give back as it is.
func canonical(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	switch {
	case whole == "" || len(whole)+len(fraction) > maxDigits:
		return false
	case len(whole) > 1 && whole[0] == '0':
		return false
	case point && (fraction == "" || fraction[len(fraction)-1] == '0'):
		return false
	case digits == "0" && text != "0":
		return false
	}
	return strings.Trim(whole+fraction, "0123456789") == ""
}
