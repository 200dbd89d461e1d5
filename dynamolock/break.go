package dynamolock

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// Break implements driver.Driver. A lock that never expires is freed. One
// with a lease gets another guid, so that its holder cannot renew it: the holder
// learns of that at its next heartbeat, before the lease is over and somebody
// else can have the key.
func (b *engine) Break(ctx context.Context, info driver.Info) error {
	return b.end(ctx, info.Key, info.Grant, false)
}

// BreakNow is Break without consideration for the holder: the key is free at
// once, while the holder of a lock with a lease may believe in it until its next
// heartbeat. Only fencing covers that gap. Errors are those of Break.
func (c *Client) BreakNow(ctx context.Context, info holdfast.Info) error {
	if err := c.breakNow(ctx, info); err != nil {
		return fmt.Errorf("dynamolock: break %q now: %w", info.Key, err)
	}
	return nil
}

func (c *Client) breakNow(ctx context.Context, info holdfast.Info) error {
	if err := c.engine.CheckKey(info.Key); err != nil {
		return err
	}
	if !info.Held || info.Grant == "" {
		return driver.Invalid("info", "it describes no grant")
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	b := c.engine
	if !b.tasks.begin() {
		return holdfast.ErrClosed
	}
	defer b.tasks.end()
	return b.end(ctx, info.Key, info.Grant, true)
}

// end breaks the grant of that name, and no other.
func (b *engine) end(ctx context.Context, name, grant string, now bool) error {
	id, err := parseGrant(grant)
	if err != nil {
		return err
	}
	key, err := b.opts.Keys.encode(name)
	if err != nil {
		return err
	}
	mark := stranger()
	unanswered := false
	return b.persist(ctx, func() error {
		var old *item
		var err error
		if id.form == tokenless {
			e := &expression{}
			e.cond = all("attribute_not_exists("+e.name(attrToken)+")", e.is(attrGUID, id.guid))
			old, err = b.remove(ctx, key, e)
		} else {
			_, old, err = b.update(ctx, key, b.breaking(id, mark, now))
		}
		switch {
		case maybeDone(err):
			unanswered = true
			return err
		case err != nil, old == nil:
			return err
		case old.belongs(mark), unanswered && id.form == tokenless && old.form == absent:
			return nil // an earlier try was carried out
		}
		return holdfast.ErrChanged
	})
}

// breaking is the write that ends a grant with a token.
func (b *engine) breaking(id grantID, mark string, now bool) *expression {
	e := &expression{}
	conds := []string{e.live(), e.is(attrToken, token(id.token))}
	if id.grant != "" {
		conds = append(conds, e.begins(id.grant))
	}
	e.cond = all(conds...)
	e.set(attrGUID, binary(mark))
	e.set(attrBroken, token(id.token)) // so that its holder knows, whoever comes after
	if now || id.form == closed {
		e.set(attrLease, number(releasedLease))
		e.remove(attrData)
		e.remove(attrSince)
	}
	b.expire(e, b.host.Now(), true)
	return e
}
