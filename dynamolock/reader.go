package dynamolock

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/internal/recordlock"
)

// Why a table or an item cannot be used.
var (
	// ErrTable: the table does not exist, is not active in time, or has another key schema than [Options.Keys].
	ErrTable = errors.New("table cannot be used")
	// ErrItem: the item of the key is not a lock's, or is corrupt; an [*ItemError] names the attribute.
	ErrItem = recordlock.ErrCorrupt
)

// An ItemError says which attribute keeps an item from being a lock's: some other program has written it. Holdfast does not write to such
// an item, as far as the conditions of a write can tell, which check types and ranges: it may write to an item that looks released except
// for a token of 1.5 or a time before 1970. An ItemError matches [ErrItem].
type ItemError struct {
	Table     string
	Attribute string
	Reason    string
}

// Error implements error.
func (e *ItemError) Error() string {
	return fmt.Sprintf("table %q: %v: attribute %q %s", e.Table, ErrItem, e.Attribute, e.Reason)
}

// Unwrap makes errors.Is match ErrItem.
func (e *ItemError) Unwrap() error { return ErrItem }

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

func (r *reader) fail(name, reason string) {
	if r.err == nil {
		r.err = &ItemError{Table: r.table, Attribute: name, Reason: reason}
	}
}

// typed returns an attribute of a type, or nil if there is none.
func typed[T any](r *reader, name, want string) *T {
	v, ok := any(r.attrs[name]).(*T)
	if !ok && r.attrs[name] != nil {
		r.fail(name, "is not of type "+want)
	}
	return v
}

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

// text reads an optional string.
func (r *reader) text(name string) string {
	if v := typed[types.AttributeValueMemberS](r, name, "S"); v != nil {
		return v.Value
	}
	return ""
}

// bytes reads an optional binary value.
func (r *reader) bytes(name string) []byte {
	if v := typed[types.AttributeValueMemberB](r, name, "B"); v != nil {
		return v.Value
	}
	return nil
}

// entries reads a map that has to be there.
func (r *reader) entries(name string) attributes {
	if v := typed[types.AttributeValueMemberM](r, name, "M"); v != nil {
		return v.Value
	}
	r.fail(name, "is missing")
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
	v := typed[types.AttributeValueMemberN](r, name, "N")
	if v == nil {
		r.fail(name, "is missing")
		return 0
	}
	n, err := strconv.ParseUint(v.Value, 10, 64)
	if err != nil || n > maxWhole {
		r.fail(name, "is "+strconv.Quote(v.Value)+", not a whole number from 0 to 2^62")
		return 0
	}
	return n
}
