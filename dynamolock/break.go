package dynamolock

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast"
)

// Break implements holdfast.Backend. A lock that never expires is freed. One
// with a lease gets another guid, so that its holder cannot renew it: the holder
// learns of that at its next heartbeat, before the lease is over and somebody
// else can have the key.
func (b *backend) Break(ctx context.Context, info holdfast.Info) error {
	return b.end(ctx, info, false)
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
	if err := c.backend.CheckKey(info.Key); err != nil {
		return err
	}
	if !info.Held || info.Grant == "" {
		return holdfast.Invalid("info", "it describes no grant")
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	b := c.backend
	if !b.tasks.begin() {
		return holdfast.ErrClosed
	}
	defer b.tasks.end()
	return b.end(ctx, info, true)
}

// end breaks the grant that info describes, and no other.
func (b *backend) end(ctx context.Context, info holdfast.Info, now bool) error {
	id, err := parseGrant(info.Grant)
	if err != nil {
		return err
	}
	key, err := b.opts.Keys.encode(info.Key)
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
func (b *backend) breaking(id grantID, mark string, now bool) *expression {
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
