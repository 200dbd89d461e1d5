package locktest

import (
	"errors"

	"github.com/holdfast-go/holdfast"
)

// refusesAs insists on a MismatchError.
func (e *env) refusesAs(c *Client, have, want int, opts ...holdfast.Option) {
	e.Helper()
	for name, acquire := range map[string]func() error{
		"TryAcquire": func() error { _, err := c.TryAcquire(e.soon(), e.key, opts...); return err },
		"Acquire":    func() error { _, err := c.Acquire(e.soon(), e.key, opts...); return err },
	} {
		err := acquire()
		var mismatch *holdfast.MismatchError
		if !errors.Is(err, holdfast.ErrMismatch) || !errors.As(err, &mismatch) {
			e.broken(ruleMismatch, "%s: %v", name, err)
		}
		if mismatch.Key != e.key || mismatch.Have != have || mismatch.Want != want {
			e.broken(ruleMismatch, "%s: %+v, want %d and %d", name, mismatch, have, want)
		}
	}
}

func mismatch(e *env) {
	a, b := e.client(), e.client()
	locks := e.permits([]*Client{a}, 2)
	e.refusesAs(b, 2, 3, holdfast.WithLimit(3))
	e.refusesAs(b, 2, 1, holdfast.WithLimit(1))
	e.refusesAs(b, 2, 0)
	e.refusesAs(b, 2, 0, holdfast.WithShared())
	e.areLive(locks, "what is refused changes nothing")
	w := e.wait(b, holdfast.WithLimit(2)).waits(a, e.key, 1)
	e.release(locks[0])
	next := w.granted(e.handOver(), ruleNext)
	e.release(locks[1])
	e.refusesAs(a, 2, 5, holdfast.WithLimit(5))
	e.release(next)

	for _, opts := range [][]holdfast.Option{nil, {holdfast.WithShared()}} {
		lock := e.hold(a, opts...)
		e.refusesAs(b, 0, 2, holdfast.WithLimit(2))
		e.isLive(lock, "what is refused changes nothing")
		e.release(lock)
	}
	e.leavesNothing(e.key, e.patience(), ruleNothing)
}

// mismatchForgetsTheIdle uses a key as one thing after the other.
func mismatchForgetsTheIdle(e *env) {
	a, b := e.client(), e.client()
	for _, n := range []int{2, 5, 1, 3} {
		for _, lock := range e.permits([]*Client{a, b}, n) {
			e.release(lock)
		}
		e.release(e.takes(b, e.key, "a key that nobody uses can be used in any way", holdfast.WithShared()))
		e.release(e.takes(a, e.key, "a key that nobody uses can be used in any way"))
	}
}

func oneIsALock(e *env) {
	a, b := e.client(), e.client()
	one := holdfast.WithLimit(1)
	lock := e.takes(a, e.key, ruleFewer, one)
	for range 3 {
		e.isHeld(b, e.key, ruleMost, one)
		w := e.wait(b, one).waits(a, e.key, 1)
		e.release(lock)
		next := w.granted(e.handOver(), ruleNext)
		e.newer(next.Token(), lock.Token(), "the tokens of a semaphore of one rise")
		lock = next
		a, b = b, a
	}
	e.release(lock)
}

func reclaimsAPermit(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	limit := holdfast.WithLimit(2)
	old := e.takes(a, e.key, ruleFewer, limit, holdfast.WithOwner("worker"))
	other := e.takes(c, e.key, ruleFewer, limit)
	e.watches(a)
	lock := e.hold(b, append(reclaim(), limit)...)
	e.ends(old, e.engine.Notice, ruleReclaim, holdfast.ErrReclaimed)
	e.isLive(other, ruleSpares)
	e.isHeld(c, e.key, ruleMost, limit)
	e.release(lock)
	e.release(other)
	e.allPermits([]*Client{a, b}, 2, "a reclaim")
}

// reclaimsNoOtherUseBeside asks for something else than the former self has. An engine may end that, or refuse.
func reclaimsNoOtherUseBeside(e *env) {
	a, b := e.client(), e.client()
	for _, use := range []struct {
		limit int
		opts  []holdfast.Option
	}{{3, []holdfast.Option{holdfast.WithLimit(3)}}, {0, []holdfast.Option{holdfast.WithShared()}}, {0, nil}} {
		old := e.hold(a, holdfast.WithLimit(2), holdfast.WithOwner("worker"))
		e.watches(a)
		lock, err := b.Acquire(e.soon(), e.key, append(reclaim(), use.opts...)...)
		var mismatch *holdfast.MismatchError
		switch {
		case err == nil:
			e.ends(old, e.engine.Notice, ruleReclaim, holdfast.ErrReclaimed)
			e.newer(lock.Token(), old.Token(), "the next grant has a greater token")
			e.release(lock)
		case errors.As(err, &mismatch) && mismatch.Have == 2 && mismatch.Want == use.limit:
			e.isLive(old, "what is refused changes nothing")
			e.release(old)
		default:
			e.broken(ruleMismatch, "%v", err)
		}
	}
}
