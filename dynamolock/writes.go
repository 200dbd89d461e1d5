package dynamolock

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/recordlock"
)

// taking is the write of a Take. Its condition names every state in which the key may be taken, so it is false for whatever else another
// program may have written. It excludes the grant that held the key last: a late copy takes nothing while the item says so.
//
// The long alternative comes first and has no parentheses, which AND does not need within OR: dynalite's parser backtracks at every
// level, and would take milliseconds.
func (s *store) taking(h *recordlock.Holder, m driver.Mode) *expression {
	x, now := &expression{}, s.host.Now()
	x.cond = x.missing(s)
	if s.opts.Mode != FailClosed {
		x.cond = all(
			x.counts(attrToken, maxWhole-1), // it rises by 1
			x.counts(attrLease, releasedLease),
			"("+x.isType(attrGUID, "B")+" OR "+x.isType(attrGUID, "S")+")",
			x.optional(attrOwner, "S"),
			x.optional(attrTouched, "N"),
			"attribute_not_exists("+x.name(attrIntent)+")",
			"NOT "+x.begins(h.Grant),
		) + " OR " + x.cond
		// The token of a new item is above all that the key had before it was deleted: no client takes a lock once a millisecond for long.
		first := max(s.ttl.now(now).UnixMilli()-1, 0)
		next := "if_not_exists(" + x.name(attrToken) + ", " + x.number(first) + ") + " + x.number(1)
		x.sets = append(x.sets, x.name(attrToken)+" = "+next)
		if m.Shared {
			x.sets = append(x.sets, x.name(attrOpened)+" = "+next)
		}
	}
	if m.Shared {
		s.share(x, []recordlock.Holder{*h}, m)
		x.set(attrOwner, text(sharedOwner))
	} else {
		s.exclude(x, h)
	}
	x.remove(attrIntent)
	s.expire(x, now, h.Lease != recordlock.Forever)
	return x
}

// replacing is the write of a Swap.
func (s *store) replacing(v version, old, next *recordlock.Record) *expression {
	x, now := &expression{}, s.host.Now()
	x.cond = x.unchanged(v)
	ever := true
	switch {
	case len(next.Holders) == 0:
		x.set(attrLease, number(releasedLease))
		x.set(attrTouched, millis(now.Wall))
		x.removeAll(attrData, attrSince)
		if old.Mode.Shared {
			x.removeAll(sharedAttributes...)
		}
	case next.Mode.Shared:
		s.share(x, next.Holders, next.Mode)
		x.remove(attrOpened) // each entry has its token now
		if !old.Mode.Shared || len(old.Holders) == 0 {
			x.set(attrOwner, text(sharedOwner))
		}
	default:
		h := &next.Holders[0]
		ever = h.Lease != recordlock.Forever
		was := old.Holder(h.Grant)
		switch {
		case was == nil || old.Mode.Shared:
			s.exclude(x, h)
		case h.Broken && !was.Broken:
			x.set(attrGUID, binary(stranger()))
			x.set(attrMarked, binary(v.guid))
		}
		if h.Asked {
			x.set(attrAsked, token(h.Token))
		}
	}
	if next.Token != old.Token && !v.tokenless {
		x.set(attrToken, token(next.Token))
	}
	if next.Broken != old.Broken && !v.tokenless {
		x.set(attrBroken, token(next.Broken))
	}
	switch {
	case next.Intent.Grant == "":
		x.remove(attrIntent)
	case next.Intent != old.Intent:
		x.set(attrIntent, intent(&next.Intent))
	}
	if !v.tokenless || s.opts.Mode == FailClosed {
		s.expire(x, now, ever)
	}
	return x
}

// exclude sets what makes an item an exclusive grant.
func (s *store) exclude(x *expression, h *recordlock.Holder) {
	x.set(attrOwner, text(h.Owner))
	x.set(attrGUID, binary(h.Grant+h.Beat))
	x.describe(h.Data)
	x.remove(attrAsked)
	if s.opts.Mode == FailClosed {
		return
	}
	ms := int64(closedLease)
	if h.Lease != recordlock.Forever {
		ms = h.Lease.Milliseconds()
	}
	x.set(attrLease, number(ms))
	x.set(attrTouched, millis(h.Touched))
	x.set(attrSince, millis(h.Since))
	x.remove(attrMarked)
	x.removeAll(sharedAttributes...)
}

// share sets what makes an item the shared one of some holders. Its guid is new: other programs know by it that the key is held.
func (s *store) share(x *expression, holders []recordlock.Holder, m driver.Mode) {
	guid := binary(stranger())
	x.set(attrGUID, guid)
	x.set(attrShared, guid)
	x.set(attrTouched, millis(s.host.Now().Wall))
	var longest time.Duration
	entries, asks := attributes{}, attributes{}
	for i := range holders {
		h := &holders[i]
		longest = max(longest, h.Lease)
		entries[h.Grant] = entry(h)
		if h.Asked {
			asks[h.Grant] = number(1)
		}
	}
	x.set(attrLease, number(longest.Milliseconds()))
	x.set(attrHolders, &types.AttributeValueMemberM{Value: entries})
	x.set(attrAsks, &types.AttributeValueMemberM{Value: asks})
	if m.Limit > 0 {
		x.set(attrLimit, number(int64(m.Limit)))
	} else {
		x.remove(attrLimit)
	}
	x.removeAll(attrData, attrSince, attrAsked, attrMarked)
}

// renewing is the write of a Renew. A copy of an earlier beat that arrives late would bring back a guid that an observer may have
// watched for a lease by then: the condition compares the order of beats.
func (s *store) renewing(h *recordlock.Holder, m driver.Mode) *expression {
	x, now := &expression{}, s.host.Now()
	if m.Shared {
		guid, path := binary(stranger()), x.entry(h.Grant)
		x.cond = all(x.live(), x.name(attrShared)+" = "+x.name(attrGUID), x.shares(h))
		x.sets = append(x.sets, path+" = "+x.value(entry(h)))
		x.set(attrGUID, guid)
		x.set(attrShared, guid)
		x.set(attrTouched, millis(h.Touched))
		s.expire(x, now, true)
		return x
	}
	guid := binary(h.Grant + h.Beat)
	x.cond = all(x.begins(h.Grant), x.below(attrGUID, guid))
	x.set(attrGUID, guid)
	if s.opts.Mode != FailClosed {
		x.cond = all(x.live(), x.is(attrToken, token(h.Token)), x.cond)
		x.set(attrTouched, millis(h.Touched))
	}
	x.describe(h.Data)
	s.expire(x, now, h.Lease != recordlock.Forever)
	return x
}

// entry returns the path of the entry of a grant.
func (x *expression) entry(grant string) string {
	return x.name(attrHolders) + "." + x.alias("#g"+grant, grant)
}

// shares is the condition that a grant with a token shares the item, is not broken and has an earlier beat than h; if h has no beat, any
// beat. The entry of the first holder has no token until the item is replaced.
func (x *expression) shares(h *recordlock.Holder) string {
	between := func(t driver.Token) string {
		least, most := ordered(t), ordered(t)+h.Beat
		if h.Beat == "" {
			most = ordered(t) + "Z"
		}
		return x.entry(h.Grant) + " BETWEEN " + x.value(binary(least)) + " AND " + x.value(binary(most))
	}
	return "(" + between(h.Token) + " OR " + all(between(0), x.is(attrOpened, token(h.Token))) + ")"
}

// holding is the condition that a grant holds the key.
func (s *store) holding(held *recordlock.Held) *expression {
	x := &expression{}
	switch {
	case held.Mode.Shared:
		h := recordlock.Holder{Grant: held.Grant, Token: held.Token}
		x.cond = all(x.live(), x.name(attrShared)+" = "+x.name(attrGUID), x.shares(&h))
	case s.opts.Mode == FailClosed:
		x.cond = x.begins(held.Grant)
	default:
		x.cond = all(x.live(), x.is(attrToken, token(held.Token)), x.begins(held.Grant))
	}
	return x
}

// unchanged is the condition that an item is as it was read.
func (x *expression) unchanged(v version) string {
	guid := binary(v.guid)
	if v.text {
		guid = text(v.guid)
	}
	conds := []string{x.is(attrGUID, guid)}
	for _, a := range []struct {
		name, was string
		number    bool
	}{{attrToken, v.token, true}, {attrLease, v.lease, true}, {attrAsked, v.asked, true}, {attrIntent, v.intent, false}} {
		switch {
		case a.was == "" && a.name == attrAsked: // another program may have put something else there
			conds = append(conds, "NOT "+x.isType(attrAsked, "N"))
		case a.was == "":
			conds = append(conds, "attribute_not_exists("+x.name(a.name)+")")
		case a.number:
			conds = append(conds, x.is(a.name, &types.AttributeValueMemberN{Value: a.was}))
		default:
			conds = append(conds, x.is(a.name, binary(a.was)))
		}
	}
	return all(conds...)
}

// describe stores data, or removes what there is.
func (x *expression) describe(data []byte) {
	if len(data) > 0 {
		x.set(attrData, binary(string(data)))
	} else {
		x.remove(attrData)
	}
}

func (x *expression) removeAll(attrs ...string) {
	for _, attr := range attrs {
		x.remove(attr)
	}
}

// missing is the condition that there is no item.
func (x *expression) missing(s *store) string {
	return "attribute_not_exists(" + x.alias(aliasKey, s.opts.Keys.Partition.Name) + ")"
}
