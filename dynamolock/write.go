package dynamolock

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
)

// expression is the write of an acquisition; left is the item that was seen, if it
// may be taken as it is. Its condition names every state in which the key may be
// had; whatever another program may have made of the item otherwise, it does not
// hold.
func (a *acquisition) expression(now driver.Instant, left *item) *expression {
	e := &expression{returns: types.ReturnValueUpdatedNew}
	a.touches++
	guid := touch(a.grant, a.touches)
	if a.opts.Mode == FailClosed {
		e.cond = a.freeTokenless(e)
		e.set(attrOwner, text(a.req.Owner))
		e.set(attrGUID, binary(guid))
		a.describe(e)
		a.expire(e, now, false)
		return e
	}
	e.cond = a.free(e, left)

	// A new item continues above whatever the key had before it was deleted:
	// nobody takes a lock once a millisecond for long.
	start := number(max(now.Wall.UnixMilli()-1, 0))
	e.sets = append(e.sets, e.name(attrToken)+" = if_not_exists("+e.name(attrToken)+", "+e.value(start)+") + "+e.number(1))
	e.set(attrOwner, text(a.req.Owner))
	e.set(attrGUID, binary(guid))
	e.set(attrLease, a.leaseValue())
	e.set(attrTouched, millis(now.Wall))
	e.set(attrSince, millis(now.Wall))
	a.describe(e)
	a.expire(e, now, a.opts.Mode == FailOpen)
	return e
}

// describe stores the data of the hold, and no other's.
func (a *acquisition) describe(e *expression) {
	if len(a.req.Data) > 0 {
		e.set(attrData, binary(string(a.req.Data)))
	} else {
		e.remove(attrData)
	}
}

// leaseValue is what an item of this client says its lease is.
func (b *engine) leaseValue() types.AttributeValue {
	if b.opts.Mode == FailClosedFenced {
		return number(closedLease)
	}
	return number(b.opts.Lease.Milliseconds())
}

// free is the condition that the key may be had, in an item with a token.
//
// The grant's own guid is excluded: a request that was given up and arrives
// after the lock was released again would otherwise take it for nobody.
//
// The long alternative comes first and has no parentheses, which AND does not
// need within OR: the parser of dynalite starts again wherever it finds that an
// operand was the last one, at every level, and would take milliseconds.
func (a *acquisition) free(e *expression, left *item) string {
	states := e.name(attrLease) + " <= " + e.number(releasedLease)
	if a.req.Reclaim {
		states += " OR " + a.formerly(e)
	}
	if left != nil && left.form == leased {
		states += " OR (" + all(e.is(attrGUID, left.guidVal), e.is(attrToken, token(left.token))) + ")"
	}
	return all(
		e.counts(attrToken, maxWhole-1), // it is to rise by 1
		e.counts(attrLease, maxWhole),
		"("+e.isType(attrGUID, "B")+" OR "+e.isType(attrGUID, "S")+")",
		e.optional(attrOwner, "S"),
		e.optional(attrTouched, "N"),
		"("+states+")",
		"NOT "+e.begins(a.grant),
	) + " OR " + a.missing(e)
}

// freeTokenless is the same for the npm client's FailClosed.
func (a *acquisition) freeTokenless(e *expression) string {
	if !a.req.Reclaim {
		return a.missing(e)
	}
	return all(
		a.formerly(e),
		"("+e.isType(attrGUID, "B")+" OR "+e.isType(attrGUID, "S")+")",
		"attribute_not_exists("+e.name(attrToken)+")",
		"attribute_not_exists("+e.name(attrLease)+")",
		"attribute_not_exists("+e.name(attrTouched)+")",
	) + " OR " + a.missing(e)
}

// missing is the condition that there is no item.
func (b *engine) missing(e *expression) string {
	return "attribute_not_exists(" + e.alias(aliasKey, b.opts.Keys.Partition.Name) + ")"
}

// formerly is the condition that the item is of the same owner, and not of this
// client.
func (a *acquisition) formerly(e *expression) string {
	return "(" + all(e.is(attrOwner, text(a.req.Owner)), "NOT "+e.begins(a.id)) + ")"
}

// renewal is the write that keeps a lease alive.
//
// Its condition is on the guid's order, too: a copy of an earlier heartbeat that
// arrives late would bring back a guid that an observer may have watched for a
// lease by then.
func (h *hold) renewal(now driver.Instant) *expression {
	e := &expression{}
	h.touches++
	guid := binary(touch(h.grant, h.touches))
	e.cond = all(e.live(), h.unchanged(e), e.atMost(attrGUID, guid))
	e.set(attrGUID, guid)
	e.set(attrTouched, millis(now.Wall))
	h.expire(e, now, true)
	return e
}

// immortal is the write that removes a time to live from the item of a lock that
// never expires.
func (h *hold) immortal(now driver.Instant) *expression {
	e := &expression{}
	e.cond = h.unchanged(e)
	if h.opts.Mode != FailClosed {
		e.cond = all(e.live(), e.cond)
	}
	h.expire(e, now, false)
	return e
}

// releaseIf is the write that frees an item of which a condition holds. Token and
// guid stay: the one has to rise for as long as the item lives, the other is
// what those who wait have seen.
func (b *engine) releaseIf(cond func(*expression) string, now driver.Instant) *expression {
	e := &expression{}
	e.cond = all(e.live(), cond(e))
	e.set(attrLease, number(releasedLease))
	e.set(attrTouched, millis(now.Wall))
	e.remove(attrData)
	e.remove(attrSince)
	b.expire(e, now, true)
	return e
}
