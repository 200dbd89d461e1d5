package dynamolock

import (
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
)

// The attributes of an item, besides its key. The first five are those of the
// npm client dynamodb-lock-client 0.7.3, which replaces whole items, so
// nothing that matters may rest on the others.
const (
	attrToken   = "fencingToken"           // N; rises by 1 at each grant, never falls
	attrLease   = "leaseDurationMs"        // N; 1: released; closedLease: never expires
	attrOwner   = "owner"                  // S
	attrGUID    = "guid"                   // B (S is read, too): see identity.go
	attrTouched = "lockAcquiredTimeUnixMs" // N; the last touch, by the holder's wall clock
	attrData    = "holdfastData"           // B; from WithData
	attrSince   = "holdfastSinceUnixMs"    // N; the grant, by the holder's wall clock
	attrBroken  = "holdfastBrokenToken"    // N; of the grant that was broken last
	attrMarked  = "holdfastBrokenGUID"     // B; the guid that Break has replaced
	attrAsked   = "holdfastAskedToken"     // N; of the grant that somebody asks for; 0 if it has none
	attrTurn    = "holdfastTurnMs"         // N; somebody who looks that often asks for a turn
)

const (
	releasedLease = 1 // ms
	// closedLease is the longest that the npm client can wait for: setTimeout
	// takes a longer one for 1 ms.
	closedLease = 1<<31 - 1 // ms
)

// maxWhole is the greatest token or lease that is accepted, when reading and in
// conditions. The npm client counts exactly up to 2^53.
const maxWhole = 1 << 62

func ownAttribute(name string) bool {
	switch name {
	case attrToken, attrLease, attrOwner, attrGUID, attrTouched, attrData, attrSince, attrBroken, attrMarked, attrAsked, attrTurn:
		return true
	}
	return slices.Contains(sharedAttributes, name)
}

// form says what kind of lock an item is.
type form int

const (
	absent   form = iota // there is no item
	released             // there is one, which keeps the token
	leased               // held, as long as the holder renews it
	closed               // held, and never expires; has a token
	tokenless
)

// An item is what the table has for a key.
type item struct {
	form    form
	guid    string
	guidVal types.AttributeValue // as it stands, for conditions
	token   driver.Token
	lease   time.Duration // of leased
	owner   string
	touched time.Time // zero if unknown
	since   time.Time // zero if unknown
	data    []byte
	broken  driver.Token  // token of the grant that somebody broke; 0 if none is known
	marked  string        // the guid that it had; "" if none is known
	asked   bool          // somebody asks for the grant
	turn    time.Duration // somebody who looks that often asks for a turn; 0: nobody does

	sharing *sharing // nil if the item is not shared
	intent  string   // of somebody who waits for a shared key alone; see intent.go
}

func (i *item) held() bool { return i.form >= leased }

// same reports whether nothing was written between two reads of a key.
func (i *item) same(j *item) bool {
	return i.form == j.form && i.guid == j.guid && i.token == j.token && i.lease == j.lease && i.intent == j.intent
}

// isBroken reports whether the grant that the item is of was broken.
func (i *item) isBroken() bool { return i.broken != 0 && i.broken == i.token }

// justBroken reports whether nothing was written between two reads of a key but that it was broken.
func (i *item) justBroken(j *item) bool {
	return j.isBroken() && j.token == i.token && j.held() && i.held() && j.marked != "" && j.marked == i.guid && i.intent == j.intent
}

// older reports whether an item shows an earlier touch of a grant than another one does.
func (i *item) older(than *item) bool {
	if i.sharing != nil {
		return slices.ContainsFunc(i.sharing.holders, func(h holder) bool {
			later := than.holder(h.grant)
			return later != nil && later.token == h.token && h.touch < later.touch
		})
	}
	grant, ok := grantOf(than.guid)
	return ok && i.form == leased && than.form == leased && than.sharing == nil && i.token == than.token &&
		i.belongs(grant) && i.guid < than.guid
}

// ofGrant is the guid that the grant had which the item is of: also if it was broken since.
func (i *item) ofGrant() string {
	if i.isBroken() && i.marked != "" {
		return i.marked
	}
	return i.guid
}

// sameGrant reports whether an item is of the grant with a token, whoever has changed it
// since. Items without tokens never are.
func (i *item) sameGrant(token driver.Token) bool {
	return i.form != absent && i.form != tokenless && i.token == token
}

// belongs reports whether the item was last written by a client, or for a
// grant: prefix is the beginning of their guids.
func (i *item) belongs(prefix string) bool {
	return len(i.guid) == guidLen && i.guid[:len(prefix)] == prefix
}

// grantsOf returns the grants of a client that hold the key, or are broken.
func (i *item) grantsOf(client string) (grants []string) {
	switch {
	case !i.held():
	case i.sharing != nil:
		for _, h := range i.sharing.holders {
			if h.grant[:clientLen] == client {
				grants = append(grants, h.grant)
			}
		}
	default:
		if guid := i.ofGrant(); len(guid) == guidLen && guid[:clientLen] == client {
			grants = []string{guid[:grantLen]}
		}
	}
	return grants
}

// info describes the item for a user.
func (i *item) info(key string) driver.Info {
	info := driver.Info{Key: key, Held: i.held()}
	if !info.Held {
		return info
	}
	if i.sharing != nil {
		return i.sharedInfo(key, i.sharing.holders)
	}
	info.Owner, info.Token, info.Since, info.Data = i.owner, i.token, i.since, i.data
	if i.form == leased {
		info.Lease, info.LastHeard = i.lease, i.touched
	}
	id := i.grant()
	info.Grant = id.String()
	// Another program may go on after a lease of silence, and counts from 1 again if the
	// item was deleted.
	info.Unfenced = id.grant == ""
	return info
}

// reader reads the attributes of an item; the first corrupt one becomes its error.
type reader struct {
	table string
	attrs map[string]types.AttributeValue
	err   error
}

// decode reads an item. It fails, with an ItemError, if the item is not a lock's or is
// ambiguous.
func decode(table string, attrs map[string]types.AttributeValue) (*item, error) {
	if len(attrs) == 0 {
		return &item{}, nil
	}
	r := &reader{table: table, attrs: attrs}
	i := &item{owner: r.text(attrOwner), touched: r.time(attrTouched), since: r.time(attrSince), data: r.bytes(attrData)}
	i.guid, i.guidVal = r.guid()
	asked, some := hint(attrs[attrAsked])
	if ms, some := hint(attrs[attrTurn]); some {
		i.turn = time.Duration(min(ms, closedLease)) * time.Millisecond
	}
	if hasNoToken(attrs) {
		i.form = tokenless
		i.asked = some && asked == 0
		if attrs[attrGUID] != nil && !isTokenless(attrs) {
			r.fail(attrGUID, "is all that it has of a lock's: one without a token has 64 bytes of type B, and an owner of type S")
		}
		return i, r.err
	}
	i.token = driver.Token(r.whole(attrToken))
	i.broken, _ = hint(attrs[attrBroken])
	if v, ok := attrs[attrMarked].(*types.AttributeValueMemberB); ok {
		i.marked = string(v.Value)
	}
	i.asked = some && asked == i.token
	switch ms := r.whole(attrLease); {
	case ms <= releasedLease: // a lease of 0 ms is none
		i.form = released
	case ms >= closedLease:
		i.form = closed
	default:
		i.form = leased
		i.lease = time.Duration(ms) * time.Millisecond
		i.sharing = r.sharing(i.guid)
	}
	i.intent = string(r.bytes(attrIntent))
	return i, r.err
}

// hasNoToken reports whether an item has nothing that locks with a token have.
func hasNoToken(attrs map[string]types.AttributeValue) bool {
	return attrs[attrToken] == nil && attrs[attrLease] == nil && attrs[attrTouched] == nil
}

// isTokenless reports whether an item without a token is a lock's: it has an owner, and the guid of a lock. Rows of other
// programs may have an attribute of that name.
func isTokenless(attrs map[string]types.AttributeValue) bool {
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

func (r *reader) wrong(name, want string) {
	r.fail(name, "is not of type "+want)
}

func (r *reader) guid() (string, types.AttributeValue) {
	switch v := r.attrs[attrGUID].(type) {
	case *types.AttributeValueMemberB:
		return string(v.Value), v
	case *types.AttributeValueMemberS:
		return v.Value, v
	case nil:
		r.fail(attrGUID, "is missing")
	default:
		r.wrong(attrGUID, "B or S")
	}
	return "", nil
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
