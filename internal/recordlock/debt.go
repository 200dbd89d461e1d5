package recordlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// A debt is what calls that are over may have left in the record of a key. One goroutine for each such key removes the orphans of this
// client, and looks again for as long as a write may still be carried out. Engine.mu guards a debt.
type debt struct {
	open  []attempt      // writes without an answer that may still be carried out
	since driver.Instant // when the latest was given up
	fresh bool           // something was added since the last look began
}

// settle ends a grant that no call and no lock will have again. It notes what the grant may have left: writes without an answer, and,
// if owed, a holder or an intent.
func (e *Engine) settle(key, grant string, open []attempt, owed bool) {
	now := e.host.Now()
	e.mu.Lock()
	delete(e.alive, grant)
	if len(open) == 0 && !owed {
		e.mu.Unlock()
		return
	}
	d := e.debts[key]
	first := d == nil
	if first {
		d = &debt{}
		e.debts[key] = d
	}
	d.open = slices.DeleteFunc(append(d.open, open...), func(a attempt) bool { return now.Sub(a.sent) >= e.opts.Late })
	d.since, d.fresh = now, true
	e.mu.Unlock()
	if first {
		e.tasks.Go(func(ctx context.Context) { e.pay(ctx, key, d) })
	}
}

// pay removes orphans until nothing is left of a debt.
func (e *Engine) pay(ctx context.Context, key string, d *debt) {
	most := e.opts.Lease // a late write may have taken the key for as long
	if !e.opts.NeverExpires {
		most /= 4
	}
	policy := backoff.Policy{Initial: 4 * e.opts.RetryDelay, Max: max(4*e.opts.RetryDelay, min(most, time.Minute))}
	logged := false
	for loop := policy.Start(e.host); ; {
		e.mu.Lock()
		if d.fresh {
			d.fresh, loop = false, policy.Start(e.host)
		}
		e.mu.Unlock()
		looked := e.host.Now()
		closing := e.tasks.Open().Err() != nil
		beats, err := e.removeOrphans(ctx, key)
		if err != nil && !transient(err) && !logged {
			logged = true
			e.host.Logger().Error("an orphaned grant cannot be removed", "key", key, "error", err)
		}
		if ctx.Err() != nil || e.paid(key, d, looked, beats, err, closing) {
			return
		}
		delay, _ := loop.Next()
		wake := e.tasks.Open().Done()
		if closing {
			wake, delay = nil, min(delay, e.opts.Lease/8)
		}
		backoff.Sleep(ctx, e.host, delay, wake)
	}
}

// paid notes what came of a look, and reports whether it was the last.
func (e *Engine) paid(key string, d *debt, looked driver.Instant, beats []string, err error, closing bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	age := looked.Sub(d.since)
	switch {
	case d.fresh:
		return false
	case err != nil:
		if expired := !e.opts.NeverExpires && age >= e.opts.Late+e.opts.Lease; expired {
			delete(e.debts, key)
			return true
		}
		return closing && !transient(err)
	}
	d.open = slices.DeleteFunc(d.open, func(a attempt) bool { return slices.Contains(beats, a.beat) })
	switch {
	case len(d.open) == 0, age >= e.opts.Late, closing && !e.opts.NeverExpires: // what may still arrive ends with its lease
		delete(e.debts, key)
		return true
	}
	return closing && age >= e.opts.Lease // Close reports what may still arrive
}

// removeOrphans removes the grants and the intent of this client that no call and no lock has, and returns the beats of the grants.
func (e *Engine) removeOrphans(ctx context.Context, key string) (beats []string, err error) {
	var left Intent
	var mode driver.Mode
	_, err = e.change(ctx, key, nil, func(rec Record) (Record, error) {
		beats, mode = nil, rec.Mode
		next := rec.without(func(h *Holder) bool {
			orphan := e.orphan(h.Grant)
			if orphan {
				beats = append(beats, h.Beat)
			}
			return orphan
		})
		if e.orphan(next.Intent.Grant) {
			next.Intent = Intent{}
		}
		if left = next.Intent; len(beats) == 0 && left == rec.Intent {
			return rec, errSettled
		}
		return next, nil
	})
	if err == nil && len(beats) > 0 {
		e.yield(key, mode, left)
	}
	return beats, err
}

// Close implements driver.Driver. All releases have ended. A grant that a call has left is looked for during two leases at most.
func (e *Engine) Close(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, 2*e.opts.Lease)
	defer cancel()
	e.tasks.Close(limit)
	e.mu.Lock()
	keys := slices.Sorted(maps.Keys(e.debts))
	e.mu.Unlock()
	if len(keys) == 0 {
		return nil
	}
	text := "unconfirmed requests will expire with their leases"
	if e.opts.NeverExpires {
		text = "these keys may stay held until they are broken or reclaimed"
		for _, key := range keys {
			e.host.Logger().Error("closed, and the key may stay held", "key", key)
		}
	}
	const most = 10
	list := strings.Trim(fmt.Sprintf("%q", keys[:min(most, len(keys))]), "[]")
	if more := len(keys) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	err := fmt.Errorf("%w: %s: %s", holdfast.ErrReleasePending, text, list)
	if ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	return err
}
