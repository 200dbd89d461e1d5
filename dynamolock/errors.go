package dynamolock

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/recordlock"
)

// Why a table or an item cannot be used.
var (
	// ErrTable: the table does not exist, is not active in time, or has another
	// key schema than [Options.Keys].
	ErrTable = errors.New("table cannot be used")
	// ErrItem: the item of the key is not a lock's, or is corrupt; an [*ItemError] names
	// the attribute.
	ErrItem = recordlock.ErrCorrupt
)

// An ItemError says which attribute keeps an item from being a lock's: some other program
// has written it. Holdfast does not write to such an item, as far as the conditions of a
// write can tell, which check types and ranges: it may write to an item that looks
// released except for a token of 1.5 or a time before 1970. An ItemError matches
// [ErrItem].
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
