package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// insistence is for how many leases an operator breaks a grant again that is still there.
const insistence = 6

// breakGrant looks up a key's holder, and breaks its grant: by BreakNow, on engines that have it, if now is set; again and again, as
// the impatient do, if insists is. It prefers a grant that it has seen before, since most end before they can be broken.
func (c *client) breakGrant(key string, now, insists bool) error {
	lease := c.config.Login.Lease
	ctx, cancel := context.WithTimeout(c.ctx, (insistence+3)*lease)
	defer cancel()
	var info holdfast.Info // one of the holders
	for began := time.Now(); ; {
		present, err := c.locker.Inspect(ctx, key)
		if err != nil {
			return nil // no server answers: the run continues
		}
		holders := slices.Collect(present.Each())
		if slices.ContainsFunc(holders, func(one holdfast.Info) bool { return one.Grant == info.Grant }) {
			break
		}
		if len(holders) > 0 {
			info = holders[rand.IntN(len(holders))]
			if time.Since(began) > lease {
				break
			}
		}
		if !sleep(c.stopping, lease/20) || time.Since(began) > 2*lease {
			return nil // there is nothing to break
		}
	}
	for began := time.Now(); ; {
		err := c.endGrant(ctx, info, now && c.locker.breakNow != nil)
		if !insists || err != nil || time.Since(began) > insistence*lease || !sleep(c.stopping, lease/12) {
			return nil
		}
	}
}

// endGrant breaks a grant, by BreakNow or by Break.
func (c *client) endGrant(ctx context.Context, info holdfast.Info, now bool) error {
	by := c.locker.Break
	if now {
		by = c.locker.breakNow
	}
	invoked := c.report.invoke(history.Record{Call: history.Break, Key: info.Key, Token: uint64(info.Token), Owner: info.Owner, Now: now})
	err := by(ctx, info)
	invoked.returned(err, uint64(info.Token), info.Owner)
	return err
}

// lateness is for how many leases requests of a process may arrive that has ended.
const lateness = 3

// bury breaks the grants of an owner whose process has ended, for as long as requests of that process may still arrive.
func (c *client) bury(owner string) error {
	lease := c.config.Login.Lease
	for began := time.Now(); ; {
		for _, key := range c.config.Keys {
			if info, err := c.locker.Inspect(c.ctx, key); err == nil && info.Owner == owner {
				_ = c.endGrant(c.ctx, info, false)
			}
		}
		if time.Since(began) > lateness*lease || !sleep(c.stopping, lease/4) {
			return nil
		}
	}
}

// jump sets the wall clock while a lock is held, when it matters. It records the jump, which may end a lock of this process.
func (c *client) jump(d time.Duration) {
	for began := time.Now(); c.holding.Load() == 0 && time.Since(began) < 4*c.config.Login.Lease; {
		if !sleep(c.stopping, time.Millisecond) {
			return
		}
	}
	invoked := c.report.invoke(history.Record{Call: history.Jump, By: int64(d)})
	c.clock.Jump(d)
	invoked.returned(nil, 0, "")
}

// take acquires a lock, looks at it, writes, and releases it.
func (c *client) take(key string) error {
	acquire := c.report.invoke(history.Record{Call: history.Acquire, Key: key, Owner: c.config.Owner})
	lock, err := c.locker.Acquire(c.ctx, key)
	if err != nil {
		acquire.returned(err, 0, "")
		return err
	}
	token := uint64(lock.Token())
	acquire.returned(nil, token, lock.Owner())
	at := c.now()
	if err := lock.Err(); err != nil {
		c.lostBy(err, key, token, false)
		return nil
	}
	c.held(at, key, token)
	c.write(key, token, false)
	ctx, cancel := context.WithTimeout(c.ctx, closePatience)
	defer cancel()
	release := c.report.invoke(history.Record{Call: history.Release, Key: key, Token: token})
	release.returned(lock.Release(ctx), token, "")
	return nil
}

// audit tries for as many grants of a key as there can be, and for one more, in each mode of the key and at last in exclusive mode. It
// holds all grants of a mode together.
func (c *client) audit(key string) error {
	for _, mode := range slices.Compact(append(uses(key), exclusive)) {
		n := max(mode.Limit, 1)
		if mode.Shared && mode.Limit == 0 {
			n = 2 // there is room for more
		}
		var locks []*holdfast.Lock
		for range n + 1 {
			try := c.report.invoke(history.Record{Call: history.Try, Key: key, Owner: c.config.Owner, Mode: mode})
			lock, err := c.locker.TryAcquire(c.ctx, key, option(mode)...)
			if err != nil {
				try.returned(err, 0, "")
				continue
			}
			try.returned(nil, uint64(lock.Token()), lock.Owner())
			locks = append(locks, lock)
		}
		for _, lock := range locks {
			if at := c.now(); lock.Err() == nil {
				c.held(at, key, uint64(lock.Token()))
			}
		}
		for _, lock := range locks {
			release := c.report.invoke(history.Record{Call: history.Release, Key: key, Token: uint64(lock.Token())})
			release.returned(lock.Release(c.ctx), uint64(lock.Token()), "")
		}
	}
	return nil
}
