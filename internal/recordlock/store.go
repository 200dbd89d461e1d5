// Package recordlock is a lock engine for stores with conditional writes. It keeps the leases of a key in one record, and knows no
// store in particular: see [Store].
//
// docs/design/dynamodb.md says why it is safe. A late copy of a request must change nothing, or be undone:
//
//   - Swap names the whole record that it replaces.
//   - Renew names the grant and its token, and is refused unless its beat is later than the grant's in the record.
//   - Take takes a vacant key without a read before. A late copy takes the key for a grant that no lock has: see debt.go.
package recordlock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Record is the state of a key in a store. Without Holders the key is vacant.
type Record struct {
	// Version is the store's own name for this state. Two versions are compared by ==. They differ whenever any other field of the
	// record but Rewrite differs. It is nil if the store has no record.
	Version any

	Token   driver.Token // of the latest grant
	Mode    driver.Mode  // of all holders
	Holders []Holder     // the oldest grant first
	Broken  driver.Token // of the grant that was broken last: its holder learns it from a record that others hold by now
	Intent  Intent
	// Rewrite asks the holder for a Renew in place of a check: the record has an attribute that lets the store delete it.
	Rewrite bool
}

// A Holder is one grant of a key.
type Holder struct {
	Grant          string // 32 letters and digits, the client first; a grant of another program begins with "-"
	Beat           string // 32 letters and digits, which rise with each beat
	Token          driver.Token
	Lease          time.Duration // Forever: the grant never expires
	Owner          string
	Data           []byte
	Since, Touched time.Time // of the grant and of the latest beat, by the holder's wall clock
	Asked          bool      // a client asks the holder to release the key
	Broken         bool      // the grant cannot be renewed, and ends with its lease
}

// An Intent is a request of a waiter. It keeps new holders of other modes from the key, and asks a client that releases the key to
// let others look first. It ends when its waiter does not renew it within its lease.
type Intent struct {
	Grant, Beat string // "": there is no intent
	Mode        driver.Mode
	Lease, Poll time.Duration
}

// Forever is the lease of a grant that never expires.
const Forever = time.Duration(1<<63 - 1)

// GrantLen and ClientLen are the lengths of the name of a grant and of its beginning, which names the client. Names consist of Letters.
const (
	GrantLen  = 32
	ClientLen = 16
	Letters   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

// A Store keeps records. Its methods may be called concurrently. Each sends at most one request that changes anything, and returns
// soon after the end of ctx.
//
// An error is an [*Error] if another try may succeed, and otherwise permanent. An error that matches [ErrCorrupt] says that the store
// has something else than a record.
//
// A write that is refused returns the record that refused it, false and no error.
type Store interface {
	// CheckKey returns a [*driver.InvalidError] for a key that the store cannot keep.
	CheckKey(key string) error

	// Read returns the record of a key. It may be an earlier one if fresh is false.
	Read(ctx context.Context, key string, fresh bool) (Record, error)

	// Take makes h the only holder of a key that is vacant and has no intent, without a read before. The token of the grant is one
	// more than that of the record; without a record, it is above all tokens that the key may have had. A store may refuse a Take of
	// the grant that held the key last.
	Take(ctx context.Context, key string, h Holder, m driver.Mode) (now Record, done bool, err error)

	// Swap replaces the record old by next if the store still has old, which is never absent. A store may forget a record
	// without a holder.
	Swap(ctx context.Context, key string, old, next Record) (now Record, done bool, err error)

	// Renew replaces the holder that has the grant and the token of h in a record of mode m. It is refused if that holder is broken, or
	// does not have an earlier beat. It keeps Asked.
	Renew(ctx context.Context, key string, h Holder, m driver.Mode) (now Record, done bool, err error)

	// List yields the records of the held keys that begin with prefix.
	List(ctx context.Context, prefix string) iter.Seq2[Keyed, error]
}

// Keyed is a record with its key.
type Keyed struct {
	Key string
	Record
}

// ErrCorrupt is matched by the errors of a store that has something else than a record.
var ErrCorrupt = errors.New("not the record of a lock")

// A Class says what is known of a request that failed.
type Class int

const (
	NotDone Class = iota // the store has not carried it out, and will not
	Busy                 // the same, because of another write at that moment: the store is well
	Unknown              // the store may have carried it out, or may still do so
)

// An Error is a failure after which another try may succeed. It matches [driver.ErrDisconnected].
type Error struct {
	Class Class
	Err   error
}

func (e *Error) Error() string   { return e.Err.Error() }
func (e *Error) Unwrap() []error { return []error{driver.ErrDisconnected, e.Err} }

func transient(err error) bool { return errors.As(err, new(*Error)) }

func classIs(err error, class Class) bool {
	var e *Error
	return errors.As(err, &e) && e.Class == class
}

var (
	errNoAnswer = fmt.Errorf("no answer from the store: %w", driver.ErrDisconnected)
	errAbsent   = errors.New("recordlock: a Swap of a record that is absent")
)

// Holder returns the holder with a grant, or nil.
func (r *Record) Holder(grant string) *Holder {
	if i := slices.IndexFunc(r.Holders, func(h Holder) bool { return h.Grant == grant }); i >= 0 {
		return &r.Holders[i]
	}
	return nil
}

// Vacant reports whether the key has neither a holder nor an intent.
func (r *Record) Vacant() bool { return len(r.Holders) == 0 && r.Intent.Grant == "" }

// changed returns the record with one holder changed.
func (r Record) changed(grant string, change func(*Holder)) Record {
	r.Holders = slices.Clone(r.Holders)
	if h := r.Holder(grant); h != nil {
		change(h)
	}
	return r
}

// without returns the record without some holders.
func (r Record) without(gone func(*Holder) bool) Record {
	r.Holders = slices.DeleteFunc(slices.Clone(r.Holders), func(h Holder) bool { return gone(&h) })
	return r
}

// info describes the record with some of its holders for a user.
func (r *Record) info(key string, holders []Holder) driver.Info {
	if len(holders) == 0 {
		return driver.Info{Key: key}
	}
	all := make([]driver.Holder, len(holders))
	for i, h := range holders {
		all[i] = driver.Holder{
			Owner: h.Owner, Token: h.Token, Since: h.Since, Data: h.Data, Lease: h.Lease, LastHeard: h.Touched, Grant: h.Grant,
		}
		if h.Lease == Forever {
			all[i].Lease, all[i].LastHeard = 0, time.Time{}
		}
	}
	info := driver.Together(key, r.Mode.Limit, all)
	if info.Shared = r.Mode.Shared; !info.Shared {
		info.Holders = nil
	}
	info.Unfenced = foreign(info.Grant) // its program may count from 1 again, and may return after a lease of silence
	return info
}

// foreign reports whether a grant belongs to another program.
func foreign(grant string) bool { return grant[:1] == "-" }

// clientOf returns the part of a grant that names its client; of a foreign grant it is none that a client has.
func clientOf(grant string) string { return grant[:min(ClientLen, len(grant))] }
