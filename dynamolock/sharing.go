package dynamolock

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
)

// The attributes that an item has in addition while it is shared. Other programs see a held
// lock of sharedOwner, whose guid is new with every write of any holder.
const (
	attrHolders = "holdfastHolders"     // M; one entry per holder, by its grant: see holder
	attrTokens  = "holdfastTokens"      // M; the tokens of those that joined, by their grants
	attrAsks    = "holdfastAsked"       // M; the grants that somebody asks for
	attrShared  = "holdfastShared"      // B; the guid: what has another one was taken by who knows of no maps
	attrOpened  = "holdfastOpenedToken" // N; the token of the grant that opened the key for others
	attrFreed   = "holdfastFreedToken"  // N; fencingToken when a grant was last removed
	attrLimit   = "holdfastLimit"       // N; of a semaphore
	attrIntent  = "holdfastIntent"      // B; somebody waits for the key alone: see intent.go. It outlasts the sharing
)

// sharedOwner is the owner of a shared item, whoever its holders are.
const sharedOwner = "holdfast:shared"

// sharedAttributes are what an exclusive grant removes.
var sharedAttributes = []string{attrHolders, attrTokens, attrAsks, attrShared, attrOpened, attrFreed, attrLimit, attrIntent}

// A sharing is what an item says of those who share it.
type sharing struct {
	limit   int
	opened  driver.Token
	freed   driver.Token
	holders []holder // the oldest grant first
}

// A holder is one entry of a shared item:
//
//	touch (16)  lease, since, touched in ms  owner  data
//
// with a NUL between the parts that have no fixed length. The touch is a number that rises,
// so that the entry does, or a mark that is above all of them.
type holder struct {
	grant, touch   string
	token          driver.Token
	lease          time.Duration
	since, touched time.Time
	owner          string
	data           []byte
	asked          bool
}

// brokenMark begins the touch of an entry that somebody broke.
const brokenMark = "~"

func (h *holder) broken() bool { return strings.HasPrefix(h.touch, brokenMark) }

// mark is the touch that breaks an entry. The rest of it is of the touch before, for those who
// have watched that: touches begin alike.
func (h *holder) mark() string { return brokenMark + h.touch[len(brokenMark):] }

// unchanged reports whether nothing was written between two reads of an entry, in either order,
// but that it was broken; before may be nil.
func (h *holder) unchanged(before *holder) bool {
	return before != nil && (h.touch == before.touch || h.touch == before.mark() || h.mark() == before.touch)
}

func (h *holder) value() types.AttributeValue {
	ms := func(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
	return binary(h.touch + strings.Join([]string{
		strconv.FormatInt(h.lease.Milliseconds(), 10), ms(h.since), ms(h.touched), h.owner, string(h.data),
	}, "\x00"))
}

// decodeHolder reads an entry; false if it is none.
func decodeHolder(grant string, v types.AttributeValue) (holder, bool) {
	b, ok := v.(*types.AttributeValueMemberB)
	if !ok || len(b.Value) < numberLen || len(grant) != grantLen {
		return holder{}, false
	}
	parts := strings.SplitN(string(b.Value[numberLen:]), "\x00", 5)
	if len(parts) != 5 {
		return holder{}, false
	}
	var ms [3]int64
	for i := range ms {
		n, err := strconv.ParseInt(parts[i], 10, 64)
		if err != nil || n < 0 || n > 1<<53 {
			return holder{}, false
		}
		ms[i] = n
	}
	h := holder{
		grant: grant, touch: string(b.Value[:numberLen]), lease: time.Duration(min(ms[0], closedLease)) * time.Millisecond,
		since: time.UnixMilli(ms[1]), touched: time.UnixMilli(ms[2]), owner: parts[3],
	}
	if parts[4] != "" {
		h.data = []byte(parts[4])
	}
	return h, true
}

// sharing reads what an item with that guid says of those who share it; nil if it is not
// shared.
func (r *reader) sharing(guid string) *sharing {
	mark, ok := r.attrs[attrShared].(*types.AttributeValueMemberB)
	if !ok || string(mark.Value) != guid {
		return nil
	}
	s := &sharing{opened: driver.Token(r.whole(attrOpened)), freed: driver.Token(r.whole(attrFreed))}
	if r.attrs[attrLimit] != nil {
		s.limit = int(r.whole(attrLimit))
	}
	tokens, asks := r.entries(attrTokens), r.entries(attrAsks)
	for grant, v := range r.entries(attrHolders) {
		h, ok := decodeHolder(grant, v)
		if !ok {
			r.fail(attrHolders, "has an entry that cannot be read")
			return s
		}
		h.token, h.asked = s.opened, asks[grant] != nil
		if t := tokens[grant]; t != nil {
			if h.token, ok = hint(t); !ok {
				r.fail(attrTokens, "has an entry that is no token")
			}
		}
		s.holders = append(s.holders, h)
	}
	if len(s.holders) == 0 {
		r.fail(attrHolders, "is empty")
	}
	slices.SortFunc(s.holders, func(a, b holder) int { return cmp.Or(cmp.Compare(a.token, b.token), cmp.Compare(a.grant, b.grant)) })
	return s
}

func (r *reader) entries(name string) map[string]types.AttributeValue {
	m, ok := r.attrs[name].(*types.AttributeValueMemberM)
	if !ok {
		r.wrong(name, "M")
		return nil
	}
	return m.Value
}

// holder returns the entry of a grant; nil if there is none.
func (i *item) holder(grant string) *holder {
	if i.sharing == nil {
		return nil
	}
	for k := range i.sharing.holders {
		if h := &i.sharing.holders[k]; h.grant == grant {
			return h
		}
	}
	return nil
}

// limit returns how many may share the key; 0 for a lock.
func (i *item) limit() int {
	if i.sharing == nil {
		return 0
	}
	return i.sharing.limit
}

// sharedInfo describes a shared item with some of its holders.
func (i *item) sharedInfo(key string, holders []holder) driver.Info {
	if len(holders) == 0 {
		return driver.Info{Key: key}
	}
	all := make([]driver.Holder, 0, len(holders))
	for _, h := range holders {
		all = append(all, driver.Holder{
			Owner: h.owner, Token: h.token, Since: h.since, Data: h.data, Lease: h.lease, LastHeard: h.touched,
			Grant: grantID{form: leased, shared: true, token: h.token, grant: h.grant}.String(),
		})
	}
	return driver.Together(key, i.sharing.limit, all)
}

// withoutData returns the item without what its holders have described.
func (i *item) withoutData() *item {
	kept := *i
	kept.data = nil
	if i.sharing != nil {
		s := *i.sharing
		s.holders = slices.Clone(s.holders)
		for k := range s.holders {
			s.holders[k].data = nil
		}
		kept.sharing = &s
	}
	return &kept
}
