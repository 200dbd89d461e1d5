package dynamolock

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
)

// reader reads the attributes of an item; the first corrupt one becomes its error.
type reader struct {
	table string
	attrs attributes
	err   error
}

// hasNoToken reports whether an item has nothing that locks with a token have.
func hasNoToken(attrs attributes) bool {
	return attrs[attrToken] == nil && attrs[attrLease] == nil && attrs[attrTouched] == nil
}

// isTokenless reports whether an item without a token is a lock's: it has an owner, and the guid of a lock. Rows of other
// programs may have an attribute of that name.
func isTokenless(attrs attributes) bool {
	_, owner := attrs[attrOwner].(*types.AttributeValueMemberS)
	guid, ok := attrs[attrGUID].(*types.AttributeValueMemberB)
	return owner && ok && len(guid.Value) == guidLen
}

// hint reads a token that says something about the item, and without which the item is as
// good; false if it cannot be read.
func hint(v types.AttributeValue) (token driver.Token, ok bool) {
	if n, isNumber := v.(*types.AttributeValueMemberN); isNumber {
		token, err := strconv.ParseUint(n.Value, 10, 64)
		return driver.Token(token), err == nil
	}
	return 0, false
}

func (r *reader) fail(name, reason string) {
	if r.err == nil {
		r.err = &ItemError{Table: r.table, Attribute: name, Reason: reason}
	}
}

func (r *reader) wrong(name, want string) { r.fail(name, "is not of type "+want) }

// raw returns a number or bytes as they stand; "" if there is neither.
func (r *reader) raw(name string) string {
	switch v := r.attrs[name].(type) {
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberB:
		return string(v.Value)
	}
	return ""
}

func (r *reader) guid() string {
	switch v := r.attrs[attrGUID].(type) {
	case *types.AttributeValueMemberB:
		return string(v.Value)
	case *types.AttributeValueMemberS:
		return v.Value
	case nil:
		r.fail(attrGUID, "is missing")
	default:
		r.wrong(attrGUID, "B or S")
	}
	return ""
}

// text reads an optional string.
func (r *reader) text(name string) string {
	switch v := r.attrs[name].(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case nil:
	default:
		r.wrong(name, "S")
	}
	return ""
}

// bytes reads an optional binary value.
func (r *reader) bytes(name string) []byte {
	switch v := r.attrs[name].(type) {
	case *types.AttributeValueMemberB:
		return v.Value
	case nil:
	default:
		r.wrong(name, "B")
	}
	return nil
}

// entries reads a map that has to be there.
func (r *reader) entries(name string) attributes {
	if m, ok := r.attrs[name].(*types.AttributeValueMemberM); ok {
		return m.Value
	}
	r.wrong(name, "M")
	return nil
}

// time reads an optional time, in milliseconds since 1970.
func (r *reader) time(name string) time.Time {
	if r.attrs[name] == nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(min(r.whole(name), 1<<53)))
}

// whole reads a number that has to be there.
func (r *reader) whole(name string) uint64 {
	switch v := r.attrs[name].(type) {
	case *types.AttributeValueMemberN:
		if n, err := strconv.ParseUint(v.Value, 10, 64); err == nil && n <= maxWhole {
			return n
		}
		r.fail(name, "is "+strconv.Quote(v.Value)+", not a whole number from 0 to 2^62")
	case nil:
		r.fail(name, "is missing")
	default:
		r.wrong(name, "N")
	}
	return 0
}
