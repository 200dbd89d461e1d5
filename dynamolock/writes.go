package dynamolock

import (
	"cmp"
	"strings"
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
	x.cond = "attribute_not_exists(" + x.alias(aliasKey, s.opts.Keys.Partition.Name) + ")"
	if s.opts.Mode != FailClosed {
		x.cond = x.expr("#fencingToken BETWEEN ? AND ? AND #leaseDurationMs BETWEEN ? AND ?"+ // the token rises by 1
			" AND (attribute_type(#guid, ?) OR attribute_type(#guid, ?))"+
			" AND (attribute_not_exists(#owner) OR attribute_type(#owner, ?))"+
			" AND (attribute_not_exists(#lockAcquiredTimeUnixMs) OR attribute_type(#lockAcquiredTimeUnixMs, ?))"+
			" AND attribute_not_exists(#holdfastIntent) AND NOT begins_with(#guid, ?)",
			0, uint64(maxWhole-1), 0, releasedLease, "B", "S", "S", "N", []byte(h.Grant)) + " OR " + x.cond
		// The token of a new item is above all that the key had before it was deleted: no client takes a lock once a millisecond for long.
		first := max(s.ttl.now(now, now.Sub).UnixMilli()-1, 0)
		next := x.expr("if_not_exists(#fencingToken, ?) + ?", first, 1)
		x.sets = append(x.sets, x.expr("#fencingToken = ")+next)
		if m.Shared {
			x.sets = append(x.sets, x.expr("#holdfastOpenedToken = ")+next)
		}
	}
	if m.Shared {
		s.share(x, []recordlock.Holder{*h}, m)
		x.set(attrOwner, sharedOwner)
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
		x.set(attrLease, releasedLease)
		x.set(attrTouched, now.Wall)
		x.remove(attrData, attrSince)
		if old.Mode.Shared {
			x.remove(sharedAttributes...)
		}
	case next.Mode.Shared:
		s.share(x, next.Holders, next.Mode)
		x.remove(attrOpened) // each entry has its token now
		if !old.Mode.Shared || len(old.Holders) == 0 {
			x.set(attrOwner, sharedOwner)
		}
	default:
		h := &next.Holders[0]
		ever = h.Lease != recordlock.Forever
		was := old.Holder(h.Grant)
		switch {
		case was == nil || old.Mode.Shared:
			s.exclude(x, h)
		case h.Broken && !was.Broken:
			x.set(attrGUID, stranger())
			x.set(attrMarked, []byte(v.guid))
		}
		if h.Asked {
			x.set(attrAsked, h.Token)
		}
	}
	if next.Token != old.Token && !v.tokenless {
		x.set(attrToken, next.Token)
	}
	if next.Broken != old.Broken && !v.tokenless {
		x.set(attrBroken, next.Broken)
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

// exclude sets the attributes of an exclusive grant.
func (s *store) exclude(x *expression, h *recordlock.Holder) {
	x.set(attrOwner, h.Owner)
	x.set(attrGUID, []byte(h.Grant+h.Beat))
	x.set(attrData, h.Data)
	x.remove(attrAsked)
	if s.opts.Mode == FailClosed {
		return
	}
	ms := int64(closedLease)
	if h.Lease != recordlock.Forever {
		ms = h.Lease.Milliseconds()
	}
	x.set(attrLease, ms)
	x.set(attrTouched, h.Touched)
	x.set(attrSince, h.Since)
	x.remove(attrMarked)
	x.remove(sharedAttributes...)
}

// share sets the attributes of an item that holders share. Its guid is new: other programs know by it that the key is held.
func (s *store) share(x *expression, holders []recordlock.Holder, m driver.Mode) {
	guid := stranger()
	x.set(attrGUID, guid)
	x.set(attrShared, guid)
	x.set(attrTouched, s.host.Now().Wall)
	var longest time.Duration
	entries, asks := attributes{}, attributes{}
	for i := range holders {
		h := &holders[i]
		longest = max(longest, h.Lease)
		entries[h.Grant] = attribute(entry(h))
		if h.Asked {
			asks[h.Grant] = attribute(1)
		}
	}
	x.set(attrLease, longest.Milliseconds())
	x.set(attrHolders, &types.AttributeValueMemberM{Value: entries})
	x.set(attrAsks, &types.AttributeValueMemberM{Value: asks})
	if m.Limit > 0 {
		x.set(attrLimit, m.Limit)
	} else {
		x.remove(attrLimit)
	}
	x.remove(attrData, attrSince, attrAsked, attrMarked)
}

// renewing is the write of a Renew. A copy of an earlier beat that arrives late would bring back a guid that an observer may have
// watched for a lease by then: the condition compares the order of beats.
func (s *store) renewing(h *recordlock.Holder, m driver.Mode) *expression {
	x := &expression{}
	if m.Shared {
		guid := stranger()
		x.cond = x.sharing(h)
		x.sets = append(x.sets, x.expr(x.entry(h.Grant)+" = ?", entry(h)))
		x.set(attrGUID, guid)
		x.set(attrShared, guid)
	} else {
		guid := []byte(h.Grant + h.Beat)
		x.cond = x.expr("begins_with(#guid, ?) AND #guid < ?", []byte(h.Grant), guid)
		x.set(attrGUID, guid)
		x.set(attrData, h.Data)
		if s.opts.Mode != FailClosed {
			x.cond = x.expr("#leaseDurationMs > ? AND #fencingToken = ? AND ", releasedLease, h.Token) + x.cond
		}
	}
	if s.opts.Mode != FailClosed {
		x.set(attrTouched, h.Touched)
	}
	s.expire(x, s.host.Now(), h.Lease != recordlock.Forever)
	return x
}

// entry returns the path of the entry of a grant.
func (x *expression) entry(grant string) string {
	return "#holdfastHolders." + x.alias("#g"+grant, grant)
}

// sharing is the condition that a grant with a token shares the item, is not broken and has an earlier beat than h; if h has no beat,
// any beat. The entry of the first holder has no token until the item is replaced.
func (x *expression) sharing(h *recordlock.Holder) string {
	between := func(t driver.Token) string {
		least := recordlock.Ordered(uint64(t))
		return x.expr(x.entry(h.Grant)+" BETWEEN ? AND ?", []byte(least), []byte(least+cmp.Or(h.Beat, "Z")))
	}
	return x.expr("#leaseDurationMs > ? AND #holdfastShared = #guid AND ", releasedLease) +
		"(" + between(h.Token) + " OR " + between(0) + x.expr(" AND #holdfastOpenedToken = ?)", h.Token)
}

// holding is the condition that a grant holds the key.
func (s *store) holding(h *recordlock.Holder, m driver.Mode) *expression {
	x := &expression{}
	switch {
	case m.Shared:
		x.cond = x.sharing(h)
	case s.opts.Mode == FailClosed:
		x.cond = x.expr("begins_with(#guid, ?)", []byte(h.Grant))
	default:
		x.cond = x.expr("#leaseDurationMs > ? AND #fencingToken = ? AND begins_with(#guid, ?)", releasedLease, h.Token, []byte(h.Grant))
	}
	return x
}

// unchanged is the condition that an item is as it was read.
func (x *expression) unchanged(v version) string {
	guid := attribute([]byte(v.guid))
	if v.text {
		guid = attribute(v.guid)
	}
	var cond strings.Builder
	cond.WriteString(x.expr("#guid = ?", guid))
	for _, a := range [][2]string{{attrToken, v.token}, {attrLease, v.lease}, {attrAsked, v.asked}, {attrIntent, v.intent}} {
		switch attr, was := a[0], a[1]; {
		case was == "" && attr == attrAsked: // another program may have put something else there
			cond.WriteString(x.expr(" AND NOT attribute_type(#holdfastAskedToken, ?)", "N"))
		case was == "":
			cond.WriteString(x.expr(" AND attribute_not_exists(#" + attr + ")"))
		case attr == attrIntent:
			cond.WriteString(x.expr(" AND #holdfastIntent = ?", []byte(was)))
		default:
			cond.WriteString(x.expr(" AND #"+attr+" = ?", &types.AttributeValueMemberN{Value: was}))
		}
	}
	return cond.String()
}
