package dynamolock

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
)

// expression is the write that takes the key; held is the item that it may replace although
// that is held, or nil. Its condition names every state in which the key may be taken, so it
// is false for whatever else another program may have written.
func (c *contender) expression(now driver.Instant, held *item) *expression {
	x := &expression{returns: types.ReturnValueUpdatedNew}
	c.numbered(now)
	guid := touch(c.grant, c.touches)
	if c.opts.Mode == FailClosed {
		x.cond = c.freeTokenless(x, held)
		x.set(attrOwner, text(c.req.Owner))
		x.set(attrGUID, binary(guid))
		x.describe(c.req.Data)
		x.remove(attrAsked)
		x.remove(attrTurn)
		c.expire(x, now, false)
		return x
	}
	x.cond = c.free(x, held)

	// The token of a new item is above all that the key had before it was deleted:
	// nobody takes a lock once a millisecond for long.
	start := c.firstToken(now)
	x.sets = append(x.sets, x.name(attrToken)+" = if_not_exists("+x.name(attrToken)+", "+x.value(start)+") + "+x.number(1))
	x.set(attrOwner, text(c.req.Owner))
	x.set(attrGUID, binary(guid))
	x.set(attrLease, c.leaseValue())
	x.set(attrTouched, millis(now.Wall))
	x.set(attrSince, millis(now.Wall))
	x.describe(c.req.Data)
	x.remove(attrAsked)
	x.remove(attrTurn)
	x.remove(attrMarked)
	for _, attr := range sharedAttributes {
		x.remove(attr)
	}
	c.expire(x, now, c.opts.Mode == FailOpen)
	return x
}

// describe stores data, or removes what there is.
func (x *expression) describe(data []byte) {
	if len(data) > 0 {
		x.set(attrData, binary(string(data)))
	} else {
		x.remove(attrData)
	}
}

// leaseValue is the lease in an item of this client.
func (e *engine) leaseValue() types.AttributeValue {
	if e.opts.Mode == FailClosedFenced {
		return number(closedLease)
	}
	return number(e.opts.Lease.Milliseconds())
}

// free is the condition that the key may be taken, for an item with a token.
//
// The grant's own guid is excluded. Otherwise a request that was given up, and arrives
// after the lock was released again, would take the lock for nobody.
//
// The long alternative comes first and has no parentheses, which AND does not need
// within OR: dynalite's parser backtracks at every level, and would take milliseconds.
func (c *contender) free(x *expression, held *item, further ...string) string {
	states := x.name(attrLease) + " <= " + x.number(releasedLease)
	if held != nil && held.held() {
		states += " OR (" + all(c.asSeen(x, held), x.is(attrToken, token(held.token))) + ")"
	}
	return all(append([]string{
		x.counts(attrToken, maxWhole-1), // it rises by 1
		x.counts(attrLease, maxWhole),
		"(" + x.isType(attrGUID, "B") + " OR " + x.isType(attrGUID, "S") + ")",
		x.optional(attrOwner, "S"),
		x.optional(attrTouched, "N"),
		"(" + states + ")",
		"NOT " + x.begins(c.grant),
	}, further...)...) + " OR " + c.missing(x)
}

// freeTokenless is the same for the npm client's FailClosed.
func (c *contender) freeTokenless(x *expression, held *item) string {
	if held == nil || held.form != tokenless {
		return c.missing(x)
	}
	return all(
		c.asSeen(x, held),
		x.is(attrOwner, text(held.owner)),
		"attribute_not_exists("+x.name(attrToken)+")",
		"attribute_not_exists("+x.name(attrLease)+")",
		"attribute_not_exists("+x.name(attrTouched)+")",
	) + " OR " + c.missing(x)
}

// asSeen is the condition that an item that is held is of the grant that was seen. If the
// holder is gone, it must not have been written since; a holder that is reclaimed from may be
// alive. The condition names the grant, because a request may arrive late, when another has
// come, also of the same owner.
func (c *contender) asSeen(x *expression, held *item) string {
	_, bytes := held.guidVal.(*types.AttributeValueMemberB)
	if grant, ok := grantOf(held.guid); ok && bytes && c.reclaimable(held) {
		return x.begins(grant)
	}
	return x.is(attrGUID, held.guidVal)
}

// firstToken is what the token of a new item is above.
func (e *engine) firstToken(now driver.Instant) types.AttributeValue {
	return number(max(e.calendar.now(now).UnixMilli()-1, 0))
}

// missing is the condition that there is no item.
func (e *engine) missing(x *expression) string {
	return "attribute_not_exists(" + x.alias(aliasKey, e.opts.Keys.Partition.Name) + ")"
}

// renewal is the write that keeps a lease alive, and carries out a change, if there is one.
//
// Its condition compares the guids' order, too: a copy of an earlier heartbeat that
// arrives late would bring back a guid that an observer may have watched for a lease by
// then.
func (h *hold) renewal(now driver.Instant, c *change) *expression {
	x := &expression{returns: types.ReturnValueAllNew} // which shows whether somebody asks for the grant, at no cost
	guid := h.nextGUID()
	x.cond = all(x.live(), h.unchanged(x), x.atMost(attrGUID, guid))
	x.set(attrGUID, guid)
	x.set(attrTouched, millis(now.Wall))
	if c != nil {
		x.describe(c.data)
	}
	h.expire(x, now, true)
	return x
}

// nextGUID returns the guid of the next touch.
func (h *hold) nextGUID() types.AttributeValue {
	h.touches++
	return binary(touch(h.grant, h.touches))
}

// immortal is the write that removes the time to live from the item of a lock that never
// expires.
func (h *hold) immortal(now driver.Instant) *expression {
	x := &expression{}
	x.cond = h.unchanged(x)
	if h.opts.Mode != FailClosed {
		x.cond = all(x.live(), x.cond)
	}
	h.expire(x, now, false)
	return x
}

// releaseIf is the write that frees an item on a condition. Token and guid stay: the
// token rises for as long as the item exists, and the guid is what waiters have seen.
func (e *engine) releaseIf(cond func(*expression) string, now driver.Instant) *expression {
	x := &expression{returns: types.ReturnValueAllNew} // which shows whether somebody asks for a turn, at no cost
	x.cond = all(x.live(), cond(x))
	x.set(attrLease, number(releasedLease))
	x.set(attrTouched, millis(now.Wall))
	x.remove(attrData)
	x.remove(attrSince)
	e.expire(x, now, true)
	return x
}

// asLeft is the condition that an item is as somebody who broke it has left it.
func (i *item) asLeft(x *expression) string {
	return all(x.is(attrGUID, i.guidVal), x.is(attrToken, token(i.token)))
}

// present is the condition that a grant is the one that holds the key.
func (id grantID) present(x *expression) string {
	if id.form == tokenless {
		token := "attribute_not_exists(" + x.name(attrToken) + ")"
		if id.grant == "" {
			return all(token, x.is(attrGUID, binary(id.guid)))
		}
		return all(token, x.begins(id.grant))
	}
	if id.shared {
		return x.holds(id.grant, id.token)
	}
	conds := []string{x.live(), x.is(attrToken, token(id.token))}
	if id.grant != "" {
		conds = append(conds, x.begins(id.grant))
	}
	return all(conds...)
}

// asking is the write that asks for a grant. It touches nothing that others compare.
func asking(id grantID) *expression {
	x := &expression{}
	x.cond = id.present(x)
	if id.shared {
		x.sets = append(x.sets, x.entry(attrAsks, id.grant)+" = "+x.number(1))
	} else {
		x.set(attrAsked, token(id.token))
	}
	return x
}

// breaking is the write that ends a grant with a token. It names the guid that it replaces,
// for those who have watched that. A grant that is broken already can only be ended now.
func (e *engine) breaking(id grantID, mark string, now bool) *expression {
	x := &expression{}
	conds := []string{x.live(), x.is(attrToken, token(id.token))}
	switch {
	case !now:
		conds = append(conds, "NOT "+x.is(attrBroken, token(id.token)))
		if id.grant != "" {
			conds = append(conds, x.begins(id.grant))
		}
		x.sets = append(x.sets, x.name(attrMarked)+" = "+x.name(attrGUID))
	case id.grant != "":
		conds = append(conds, "("+x.begins(id.grant)+" OR "+x.is(attrBroken, token(id.token))+")")
	}
	x.cond = all(conds...)
	x.set(attrGUID, binary(mark))
	x.set(attrBroken, token(id.token)) // so that its holder learns of it, whoever comes next
	if now || id.form == closed {
		x.set(attrLease, number(releasedLease))
		x.remove(attrData)
		x.remove(attrSince)
	}
	e.expire(x, e.host.Now(), true)
	return x
}
