package dynamolock

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/recordlock"
)

// The attributes of an item, besides its key. The first five are those of the
// npm client dynamodb-lock-client 0.7.3, which replaces whole items, so
// nothing that matters may rest on the others.
const (
	attrToken   = "fencingToken"           // N; rises by 1 at each grant, never falls
	attrLease   = "leaseDurationMs"        // N; 1: released; closedLease: never expires
	attrOwner   = "owner"                  // S
	attrGUID    = "guid"                   // B (S is read, too): the grant and its beat; see guidOf
	attrTouched = "lockAcquiredTimeUnixMs" // N; the last beat, by the holder's wall clock
	attrData    = "holdfastData"           // B; from WithData
	attrSince   = "holdfastSinceUnixMs"    // N; the grant, by the holder's wall clock
	attrBroken  = "holdfastBrokenToken"    // N; of the grant that was broken last
	attrMarked  = "holdfastBrokenGUID"     // B; the guid that Break replaced
	attrAsked   = "holdfastAskedToken"     // N; of the grant that a client asks for; 0 if it has none
	attrIntent  = "holdfastIntent"         // B; of a waiter: see intent
)

// The attributes that an item has in addition while holders share it. Other programs see a held lock of sharedOwner, whose guid is new
// with every write of any holder.
const (
	attrHolders = "holdfastHolders"     // M; the holders by their grants: see entry
	attrAsks    = "holdfastAsked"       // M; the grants that clients ask for
	attrShared  = "holdfastShared"      // B; the guid: another program that took the item left its own
	attrOpened  = "holdfastOpenedToken" // N; of the first holder, whose entry has no token until the item is replaced
	attrLimit   = "holdfastLimit"       // N; of a semaphore
)

// sharedOwner is the owner of a shared item.
const sharedOwner = "holdfast:shared"

var sharedAttributes = []string{attrHolders, attrAsks, attrShared, attrOpened, attrLimit}

const (
	releasedLease = 1         // ms
	closedLease   = 1<<31 - 1 // ms; the longest that the npm client can wait for: setTimeout takes a longer one for 1 ms
	maxWhole      = 1 << 62   // the greatest token or lease that is accepted; the npm client counts exactly up to 2^53
)

func ownAttribute(name string) bool {
	own := []string{attrToken, attrLease, attrOwner, attrGUID, attrTouched, attrData, attrSince, attrBroken, attrMarked, attrAsked, attrIntent}
	return slices.Contains(own, name) || slices.Contains(sharedAttributes, name)
}

// To other programs a guid is 64 random bytes, such as the npm client writes. The guid of an exclusive grant of holdfast is its name
// (32 letters and digits) and its beat (32 more). Guids are letters and digits, because not every server compares the beginnings of
// binary values byte by byte.
const (
	guidLen  = 64
	grantLen = recordlock.GrantLen
)

// stranger returns a guid that belongs to no grant.
func stranger() []byte { return []byte((rand.Text() + rand.Text() + rand.Text())[:guidLen]) }

// grantOf splits the guid of an exclusive item. The name of another program's grant begins with "-", and stays the same for as long as
// the grant: it has the token, or the guid where there is none.
func grantOf(guid string, token driver.Token) (grant, beat string) {
	switch {
	case len(guid) == guidLen && strings.Trim(guid, recordlock.Letters) == "":
		return guid[:grantLen], guid[grantLen:]
	case token != 0:
		return "-" + token.String(), guid
	}
	return "-" + base64.RawStdEncoding.EncodeToString([]byte(guid)), guid
}

// A version is what a Swap compares: of any two states of an item, one of these differs.
type version struct {
	guid                        string
	text                        bool   // the guid is of type S
	token, lease, asked, intent string // "": the item does not have it
	tokenless                   bool
}

// record reads an item. It fails, with an ItemError, if the item is not a lock's or is ambiguous.
func (s *store) record(attrs attributes) (recordlock.Record, error) {
	if len(attrs) == 0 {
		return recordlock.Record{}, nil
	}
	r := &reader{table: s.opts.Table, attrs: attrs}
	v := version{token: r.raw(attrToken), lease: r.raw(attrLease), asked: r.raw(attrAsked), intent: r.raw(attrIntent)}
	switch g := attrs[attrGUID].(type) {
	case *types.AttributeValueMemberB:
		v.guid = string(g.Value)
	case *types.AttributeValueMemberS:
		v.guid, v.text = g.Value, true
	case nil:
		r.fail(attrGUID, "is missing")
	default:
		r.fail(attrGUID, "is not of type B or S")
	}
	guid := v.guid
	if _, isNumber := attrs[attrAsked].(*types.AttributeValueMemberN); !isNumber {
		v.asked = ""
	}
	rec := recordlock.Record{Intent: r.intent()}
	h := recordlock.Holder{
		Owner: r.text(attrOwner), Touched: r.time(attrTouched), Since: r.time(attrSince), Data: r.bytes(attrData), Lease: recordlock.Forever,
	}
	if v.tokenless = hasNoToken(attrs); v.tokenless {
		if attrs[attrGUID] != nil && !isTokenless(attrs) {
			r.fail(attrGUID, "is all that it has of a lock's: one without a token has 64 bytes of type B, and an owner of type S")
		}
		h.Asked = v.asked == "0"
		h.Grant, h.Beat = grantOf(guid, 0)
		rec.Holders = []recordlock.Holder{h}
	} else {
		rec.Token = driver.Token(r.whole(attrToken))
		if n, isNumber := attrs[attrBroken].(*types.AttributeValueMemberN); isNumber { // the item is as good without it
			broken, _ := strconv.ParseUint(n.Value, 10, 64)
			rec.Broken = driver.Token(broken)
		}
		switch ms := r.whole(attrLease); {
		case ms <= releasedLease: // a lease of 0 ms is none
		case ms < closedLease && r.raw(attrShared) == guid:
			rec.Mode, rec.Holders = r.sharing(rec.Token)
		default:
			if ms < closedLease {
				h.Lease = time.Duration(ms) * time.Millisecond
			}
			h.Token, h.Asked = rec.Token, v.asked == rec.Token.String()
			if h.Broken = rec.Broken != 0 && rec.Broken == rec.Token; h.Broken && r.raw(attrMarked) != "" {
				guid = r.raw(attrMarked)
			}
			h.Grant, h.Beat = grantOf(guid, rec.Token)
			rec.Holders = []recordlock.Holder{h}
		}
	}
	rec.Version = v
	rec.Rewrite = s.expirable(attrs)
	if r.err == nil && s.opts.Mode == FailClosed && !v.tokenless {
		r.fail(attrLease, "is there: the key is used with another mode than FailClosed")
	}
	return rec, r.err
}

// An entry of a shared item has the parts of a holder. It rises with each beat, above which is a broken one:
//
//	token (16)  [~ if it is broken]  beat (32)  lease, since, touched in ms  owner  data
//
// with a NUL between the last five.
func entry(h *recordlock.Holder) []byte {
	mark := ""
	if h.Broken {
		mark = "~"
	}
	ms := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []byte(recordlock.Ordered(uint64(h.Token)) + mark + h.Beat + strings.Join([]string{
		ms(h.Lease.Milliseconds()), ms(h.Since.UnixMilli()), ms(h.Touched.UnixMilli()), h.Owner, string(h.Data),
	}, "\x00"))
}

// numbers reads whole numbers from -1 to 2^53.
func numbers(texts ...string) (all []int64, ok bool) {
	for _, text := range texts {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < -1 || n > 1<<53 {
			return nil, false
		}
		all = append(all, n)
	}
	return all, true
}

// readEntry reads an entry; false if it is none.
func readEntry(grant string, v types.AttributeValue) (h recordlock.Holder, ok bool) {
	b, _ := v.(*types.AttributeValueMemberB)
	if b == nil || len(b.Value) < 16 || len(grant) != grantLen {
		return h, false
	}
	for _, c := range b.Value[:16] {
		h.Token = h.Token<<4 | driver.Token(c-'A')
	}
	text, broken := strings.CutPrefix(string(b.Value[16:]), "~")
	if len(text) < 32 {
		return h, false
	}
	parts := strings.SplitN(text[32:], "\x00", 5)
	if len(parts) != 5 {
		return h, false
	}
	ms, ok := numbers(parts[:3]...)
	if !ok {
		return h, false
	}
	h.Grant, h.Beat, h.Broken, h.Owner = grant, text[:32], broken, parts[3]
	h.Lease = time.Duration(min(ms[0], closedLease)) * time.Millisecond
	h.Since, h.Touched = time.UnixMilli(ms[1]), time.UnixMilli(ms[2])
	if parts[4] != "" {
		h.Data = []byte(parts[4])
	}
	return h, true
}

// sharing reads the holders of a shared item, the oldest grant first.
func (r *reader) sharing(latest driver.Token) (m driver.Mode, holders []recordlock.Holder) {
	m.Shared = true
	if r.attrs[attrLimit] != nil {
		m.Limit = int(r.whole(attrLimit))
	}
	asks := r.entries(attrAsks)
	for grant, v := range r.entries(attrHolders) {
		h, ok := readEntry(grant, v)
		if !ok {
			r.fail(attrHolders, "has an entry that cannot be read")
			return m, nil
		}
		if h.Token == 0 { // of the first holder, and the item was not replaced since
			h.Token = latest
		}
		h.Asked = asks[grant] != nil
		holders = append(holders, h)
	}
	if len(holders) == 0 {
		r.fail(attrHolders, "is empty")
	}
	slices.SortFunc(holders, func(a, b recordlock.Holder) int {
		return cmp.Or(cmp.Compare(a.Token, b.Token), cmp.Compare(a.Grant, b.Grant))
	})
	return m, holders
}

// An intent is grant (32), beat (32), and lease, poll, limit in ms or permits; the limit is -1 for an exclusive waiter.
func intent(i *recordlock.Intent) []byte {
	limit := -1
	if i.Mode.Shared {
		limit = i.Mode.Limit
	}
	return []byte(i.Grant + i.Beat + strings.Join([]string{
		strconv.FormatInt(i.Lease.Milliseconds(), 10), strconv.FormatInt(i.Poll.Milliseconds(), 10), strconv.Itoa(limit),
	}, " "))
}

// intent reads an intent. One that cannot be read has a lease of 0: the next write replaces it.
func (r *reader) intent() (i recordlock.Intent) {
	b := r.bytes(attrIntent)
	switch {
	case r.attrs[attrIntent] == nil:
		return i
	case len(b) == 0:
		r.fail(attrIntent, "is empty")
	}
	i.Grant = "-"
	if len(b) < 64 {
		return i
	}
	if n, ok := numbers(strings.Split(string(b[64:]), " ")...); ok && len(n) == 3 && slices.Max(n) <= closedLease {
		i.Lease, i.Poll = time.Duration(n[0])*time.Millisecond, time.Duration(n[1])*time.Millisecond
		i.Mode = driver.Mode{Shared: n[2] >= 0, Limit: int(max(n[2], 0))}
		i.Grant, i.Beat = string(b[:32]), string(b[32:64])
	}
	return i
}
