package dynamolock

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
)

// maxGone is how many entries a request to join removes at most.
const maxGone = 8

// entry returns the path of an entry of a map.
func (x *expression) entry(attr, grant string) string {
	return x.name(attr) + "." + x.alias("#g"+grant, grant)
}

// shared is a condition: the item is held, by those in its map.
func (x *expression) shared() string {
	return all(x.live(), x.name(attrShared)+" = "+x.name(attrGUID))
}

// holds is a condition: a grant with that token shares the item.
func (x *expression) holds(grant string, t driver.Token) string {
	return all(x.shared(), x.has(grant, t))
}

// has is a condition: a grant with that token has an entry. The token of the grant that opened
// the key stays when it leaves.
func (x *expression) has(grant string, t driver.Token) string {
	return all("attribute_exists("+x.entry(attrHolders, grant)+")",
		"("+x.entry(attrTokens, grant)+" = "+x.value(token(t))+" OR "+x.is(attrOpened, token(t))+")")
}

// unbroken is a condition: the entry of a grant has no mark of who has broken it.
func (x *expression) unbroken(grant string) string {
	return x.entry(attrHolders, grant) + " < " + x.value(binary(brokenMark))
}

// touchShared gives a shared item another guid, as every write of a holder does: other
// programs know by it that the key is held.
func (x *expression) touchShared(guid types.AttributeValue, now driver.Instant) {
	x.set(attrGUID, guid)
	x.set(attrShared, guid)
	x.set(attrTouched, millis(now.Wall))
}

// removeEntry removes a grant from the maps.
func (x *expression) removeEntry(grant string) {
	for _, attr := range []string{attrHolders, attrTokens, attrAsks} {
		x.removes = append(x.removes, x.entry(attr, grant))
	}
}

// own returns the entry that a request to share writes.
func (c *contender) own(now driver.Instant) *holder {
	c.numbered(now)
	return &holder{
		grant: c.grant, touch: ordered(c.touches), lease: c.opts.Lease,
		since: now.Wall, touched: now.Wall, owner: c.req.Owner, data: c.req.Data,
	}
}

// opening is the write that takes a key that nobody has, for others to join; held is the
// item that it may replace although that is held, or nil.
func (c *contender) opening(now driver.Instant, seen *observation, held *item) *expression {
	x := &expression{returns: types.ReturnValueAllNew}
	own := c.own(now)
	guid := binary(touch(c.grant, c.touches))
	x.cond = c.free(x, held, c.unhindered(x, seen)...)
	next := "if_not_exists(" + x.name(attrToken) + ", " + x.value(c.firstToken(now)) + ") + " + x.number(1)
	for _, attr := range []string{attrToken, attrOpened, attrFreed} {
		x.sets = append(x.sets, x.name(attr)+" = "+next)
	}
	x.set(attrOwner, text(sharedOwner))
	x.set(attrLease, c.leaseValue())
	x.set(attrSince, millis(now.Wall))
	x.touchShared(guid, now)
	x.set(attrHolders, entries(map[string]types.AttributeValue{c.grant: own.value()}))
	x.set(attrTokens, entries(nil))
	x.set(attrAsks, entries(nil))
	if n := c.req.Mode.Limit; n > 0 {
		x.set(attrLimit, number(int64(n)))
	} else {
		x.remove(attrLimit)
	}
	x.remove(attrIntent)
	x.remove(attrData)
	x.remove(attrAsked)
	x.remove(attrTurn)
	x.remove(attrMarked)
	c.expire(x, now, true)
	return x
}

// joining is the write that joins those who share a key, as it was seen. It replaces
// entries that are over.
//
// It is refused if a grant was removed since, whichever: this may be a copy of a request
// whose grant has come and gone.
func (c *contender) joining(now driver.Instant, seen *observation) *expression {
	x := &expression{returns: types.ReturnValueAllNew}
	i, own := seen.item, c.own(now)
	gone := c.gone(seen)
	conds := []string{
		x.shared(),
		x.isType(attrTokens, "M"),
		x.isType(attrAsks, "M"),
		x.counts(attrToken, maxWhole-1),
		"size(" + x.name(attrHolders) + ") < " + x.number(int64(room(c.req.Mode)+len(gone))),
		"attribute_not_exists(" + x.entry(attrHolders, c.grant) + ")",
		x.atMost(attrFreed, token(i.token)),
	}
	if n := c.req.Mode.Limit; n > 0 {
		conds = append(conds, x.is(attrLimit, number(int64(n))))
	} else {
		conds = append(conds, "attribute_not_exists("+x.name(attrLimit)+")")
	}
	conds = append(conds, c.unhindered(x, seen)...)
	if c.opts.Lease > i.lease { // others must wait for the longest
		conds = append(conds, x.is(attrLease, number(i.lease.Milliseconds())))
		x.set(attrLease, c.leaseValue())
	} else {
		conds = append(conds, x.name(attrLease)+" >= "+x.number(c.opts.Lease.Milliseconds()))
	}
	for _, h := range gone {
		if c.reclaims(&h) {
			conds = append(conds, x.has(h.grant, h.token))
		} else {
			conds = append(conds, "begins_with("+x.entry(attrHolders, h.grant)+", "+x.value(binary(h.touch))+")")
		}
		x.removeEntry(h.grant)
	}
	if len(gone) > 0 {
		x.sets = append(x.sets, x.name(attrFreed)+" = "+x.name(attrToken))
	}
	x.cond = all(conds...)
	one := x.number(1)
	x.sets = append(x.sets,
		x.name(attrToken)+" = "+x.name(attrToken)+" + "+one,
		x.entry(attrTokens, c.grant)+" = "+x.name(attrToken)+" + "+one,
		x.entry(attrHolders, c.grant)+" = "+x.value(own.value()))
	x.touchShared(binary(touch(c.grant, c.touches)), now)
	x.remove(attrIntent)
	x.remove(attrTurn)
	c.expire(x, now, true)
	return x
}

// unhindered are the conditions that nobody waits for the key alone, but who is dead by
// what was seen.
func (c *contender) unhindered(x *expression, seen *observation) []string {
	cond := "attribute_not_exists(" + x.name(attrIntent) + ")"
	if i := seen.item; i != nil && i.intent != "" && c.intentOver(seen) {
		cond = "(" + cond + " OR " + x.is(attrIntent, binary(i.intent)) + ")"
	}
	return []string{cond}
}

// renewalShared is the heartbeat of one who shares the key. It is refused if a later one was
// carried out, or the entry broken.
func (h *hold) renewalShared(now driver.Instant, c *change) *expression {
	x := &expression{returns: types.ReturnValueAllNew}
	guid := h.nextGUID()
	entry := *h.entry
	entry.touch, entry.touched = ordered(h.touches), now.Wall
	if c != nil {
		entry.data = c.data
	}
	value := x.value(entry.value())
	x.cond = all(x.holds(h.grant, h.token), x.entry(attrHolders, h.grant)+" < "+value)
	x.sets = append(x.sets, x.entry(attrHolders, h.grant)+" = "+value)
	x.touchShared(guid, now)
	h.expire(x, now, true)
	return x
}

// leaving is the write that removes a grant from those who share the key, or frees the key if
// it is the last.
func (e *engine) leaving(grant string, t driver.Token, last bool, how departure, guid types.AttributeValue, now driver.Instant) *expression {
	x := &expression{returns: types.ReturnValueAllNew}
	conds := []string{x.holds(grant, t)}
	if how == leaves {
		conds = append(conds, x.unbroken(grant))
	}
	size := "size(" + x.name(attrHolders) + ")"
	if last {
		x.cond = all(append(conds, size+" = "+x.number(1))...)
		x.set(attrLease, number(releasedLease))
		x.set(attrTouched, millis(now.Wall))
		for _, attr := range sharedAttributes {
			if attr != attrIntent {
				x.remove(attr)
			}
		}
		x.remove(attrSince)
	} else {
		x.cond = all(append(conds, size+" > "+x.number(1))...)
		x.sets = append(x.sets, x.name(attrFreed)+" = "+x.name(attrToken))
		x.removeEntry(grant)
		x.touchShared(guid, now)
	}
	if how == evicted {
		x.set(attrBroken, token(t)) // so that its holder learns of it
	}
	e.expire(x, now, true)
	return x
}

// marking is the write that breaks a grant that shares the key, as it was seen: its next heartbeat
// is refused.
func (e *engine) marking(id grantID, seen *holder, guid types.AttributeValue) *expression {
	x := &expression{}
	now := e.host.Now()
	x.cond = all(x.holds(id.grant, id.token), "begins_with("+x.entry(attrHolders, id.grant)+", "+x.value(binary(seen.touch))+")")
	broken := *seen
	broken.touch = seen.mark()
	x.sets = append(x.sets, x.entry(attrHolders, id.grant)+" = "+x.value(broken.value()))
	x.set(attrBroken, token(id.token))
	x.touchShared(guid, now)
	e.expire(x, now, true)
	return x
}

// room is how many may share a key.
func room(m driver.Mode) int {
	if m.Limit > 0 {
		return m.Limit
	}
	return maxReaders
}

func entries(m map[string]types.AttributeValue) types.AttributeValue {
	if m == nil {
		m = map[string]types.AttributeValue{}
	}
	return &types.AttributeValueMemberM{Value: m}
}
