package maplock

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/driver/task"
)

func (e *engine) CheckKey(_ string, mode driver.Mode) error {
	if mode.Shared {
		return driver.Invalid(mode.Option(), "the engine shares no keys")
	}
	return nil
}

func (e *engine) Acquire(ctx context.Context, req *driver.Request) (driver.Grant, error) {
	err := driver.Held(driver.Info{Key: req.Key})
	for wait := req.Yield; ; wait = true {
		if wait && !task.Sleep(ctx, e.host, e.poll()) {
			return driver.Grant{}, err
		}
		var mine driver.Holder
		var other driver.Info
		sent := e.host.Now()
		lost := e.send(ctx, func(t table, now time.Time) { mine, other = t.take(req, e.id, e.lease, e.lease/20, now) })
		switch {
		case lost != nil:
			if err := req.Retry(ctx, lost, nil); err != nil {
				return driver.Grant{}, err
			}
		case !other.Held:
			h := &hold{engine: e, req: req, grant: mine.Grant, lease: driver.NewLease(e.host, e.lease, driver.ErrLeaseExpired)}
			h.lease.Renew(sent)
			h.beats = task.Repeat(context.Background(), e.host, e.lease/10, h.beat)
			return driver.Grant{Token: mine.Token, Lease: h.lease, Hold: h}, nil
		default:
			if err = driver.Held(other); !req.Wait {
				return driver.Grant{}, err
			}
		}
	}
}

func (e *engine) Inspect(ctx context.Context, key string) (info driver.Info, err error) {
	err = e.retry(ctx, func(t table, now time.Time) { info = t[key].info(key, now) })
	return info, err
}

func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[driver.Info, error] {
	return func(yield func(driver.Info, error) bool) {
		var found []driver.Info
		if err := e.retry(ctx, func(t table, now time.Time) { found = t.held(prefix, now) }); err != nil {
			yield(driver.Info{}, err)
		}
		for _, info := range found {
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (e *engine) Observe(ctx context.Context, key string, tell func(driver.Info)) error {
	for {
		info, err := e.Inspect(ctx, key)
		if err == nil {
			tell(info)
		}
		if !task.Sleep(ctx, e.host, e.poll()) {
			return driver.ContextError(ctx)
		}
	}
}

func (e *engine) Break(ctx context.Context, info driver.Info) error {
	return e.change(ctx, e.retry, info.Key, info.Grant, func(r *record, now time.Time) { r.until = now })
}

func (e *engine) Ask(ctx context.Context, info driver.Info) error {
	return e.change(ctx, e.retry, info.Key, info.Grant, func(r *record, _ time.Time) { r.asked = true })
}

// change changes the record of a grant by send or retry. If the grant is over, the error says why.
func (e *engine) change(
	ctx context.Context, by func(context.Context, request) error, key, grant string, f func(r *record, now time.Time),
) (gone error) {
	err := by(ctx, func(t table, now time.Time) {
		r, cause := t[key], driver.ErrBroken // also if the lease was over: the holder knew first
		switch {
		case r.info(key, now).Grant == grant:
			f(r, now)
			return
		case r != nil && r.reclaimed == grant:
			cause = driver.ErrReclaimed
		}
		gone = fmt.Errorf("%w: %w: %w", driver.ErrChanged, driver.ErrLost, cause)
	})
	return cmp.Or(err, gone)
}

func (e *engine) Close(context.Context) error {
	e.ping.Stop()
	return nil
}

// hold implements driver.Hold for one grant.
type hold struct {
	*engine
	req   *driver.Request
	grant string
	lease *driver.Lease
	beats *task.Repeated
}

// beat renews the lease.
func (h *hold) beat(ctx context.Context) (pause time.Duration) {
	sent, asked := h.host.Now(), false
	err := h.engine.change(ctx, h.send, h.req.Key, h.grant, func(r *record, now time.Time) {
		r.until, asked = now.Add(h.engine.lease), r.asked
	})
	if ctx.Err() == nil {
		h.host.Heartbeat(h.req.Key, sent, err)
	}
	switch {
	case errors.Is(err, driver.ErrLost):
		h.req.Lost(err)
		return -1
	case err != nil:
		return h.engine.lease / 100
	}
	h.lease.Renew(sent)
	if asked {
		h.req.Asked()
	}
	return h.engine.lease / 10
}

// change is engine.change for the hold's grant.
func (h *hold) change(ctx context.Context, f func(r *record, now time.Time)) error {
	return h.engine.change(ctx, h.retry, h.req.Key, h.grant, f)
}

func (h *hold) Verify(ctx context.Context) error { return h.change(ctx, func(*record, time.Time) {}) }

func (h *hold) SetData(ctx context.Context, data []byte) error {
	return h.change(ctx, func(r *record, _ time.Time) { r.Data = bytes.Clone(data) })
}

func (h *hold) Release(ctx context.Context) error {
	h.beats.Stop()
	return h.change(ctx, func(r *record, now time.Time) { r.until = now })
}
