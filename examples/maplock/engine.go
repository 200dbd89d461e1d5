package maplock

import (
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
	for {
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
		case !req.Wait, !task.Sleep(ctx, e.host, e.poll()):
			return driver.Grant{}, driver.Held(other)
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
	return e.change(ctx, e.retry, info.Key, info.Grant, changed, func(r *record, now time.Time) { r.until = now })
}

func (e *engine) Ask(ctx context.Context, info driver.Info) error {
	return e.change(ctx, e.retry, info.Key, info.Grant, changed, func(r *record, _ time.Time) { r.asked = true })
}

func changed(*record) error { return driver.ErrChanged }

// change changes the record of a grant by send or retry. If the grant is over, it returns the error of gone.
func (e *engine) change(
	ctx context.Context, by func(context.Context, request) error, key, grant string, gone func(*record) error, f func(*record, time.Time),
) (err error) {
	lost := by(ctx, func(t table, now time.Time) {
		r := t[key]
		if r.info(key, now).Grant != grant {
			err = gone(r)
			return
		}
		f(r, now)
	})
	return cmp.Or(lost, err)
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
	err := h.change(ctx, h.send, func(r *record, now time.Time) {
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
func (h *hold) change(ctx context.Context, by func(context.Context, request) error, f func(*record, time.Time)) error {
	return h.engine.change(ctx, by, h.req.Key, h.grant, h.gone, f)
}

// gone says why the grant is over. If it expired, the holder knew first.
func (h *hold) gone(r *record) error {
	cause := driver.ErrBroken
	if r != nil && r.reclaimed == h.grant {
		cause = driver.ErrReclaimed
	}
	return fmt.Errorf("%w: %w", driver.ErrLost, cause)
}

func (h *hold) Verify(ctx context.Context) error {
	return h.change(ctx, h.retry, func(*record, time.Time) {})
}

func (h *hold) SetData(ctx context.Context, data []byte) error {
	return h.change(ctx, h.retry, func(r *record, _ time.Time) { r.Data = data })
}

func (h *hold) Release(ctx context.Context) error {
	h.beats.Stop()
	return h.change(ctx, h.retry, func(r *record, now time.Time) { r.until = now })
}
