package main

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/history"
)

const (
	// lookEvery is how often a holder looks at its lock.
	lookEvery = time.Millisecond
	// reportEvery is how often it reports that it still holds the lock, if it looks as often. It always reports the last moment.
	reportEvery = 20 * time.Millisecond
)

// hold is one hold of a worker.
type hold struct {
	*worker
	lock    *holdfast.Lock
	term    context.Context // of lead, if the hold is a term
	ended   bool            // its end is reported
	asked   bool            // that it is asked for is reported
	key     string
	token   uint64
	last    int64 // the last stamp at which the lock was held, 0 for none
	told    int64 // the last that was reported
	calling atomic.Bool
	calls   sync.WaitGroup
}

// hold holds a lock for a while, and checks it continually: it takes a stamp, and then asks. It returns when the lock has
// ended or was released.
func (w *worker) hold(lock *holdfast.Lock) {
	h := w.newHold(lock)
	defer h.calls.Wait()
	if h.keep() {
		h.release()
	} else {
		h.lost()
	}
}

func (w *worker) newHold(lock *holdfast.Lock) *hold {
	return &hold{worker: w, lock: lock, key: lock.Key(), token: uint64(lock.Token())}
}

// keep checks a lock until it is time to give it back, or returns false if it has ended.
func (h *hold) keep() bool {
	h.holding.Add(1)
	defer h.holding.Add(-1)
	began := h.now()
	until, dismissed := began+int64(h.duration()), false
	for h.look() {
		h.listen()
		if told := h.linger.Load(); told != nil && began < told.began && !dismissed {
			until = max(until, told.until)
		}
		if !dismissed && h.dismissed() {
			dismissed, until = true, h.last+int64(h.between(0, h.config.Login.Lease/20)) // some cannot stop at once
		}
		if (h.last >= until || h.stopping.Err() != nil && !h.quits.Load()) && !h.calling.Load() {
			return true
		}
		step := h.step()
		switch {
		case h.one(looks(20, step)):
			h.write()
		case h.one(looks(150, step)):
			h.verify()
		case h.one(looks(100, step)):
			h.describe()
		}
		time.Sleep(h.between(step, 2*step))
	}
	return false
}

// listen reports, once, that the lock is asked for. Its holder ignores that.
func (h *hold) listen() {
	if h.asked {
		return
	}
	select {
	case <-h.lock.Asked():
		h.asked = true
		h.report.write(history.Record{At: h.now(), What: history.Asked, Key: h.key, Token: h.token})
	default:
	}
}

// step is how long to wait before the next look, at least. Where looks are few, as in a simulation, in which each costs more
// than the time that it stands for, they are more when it matters: when the lease has not been renewed for long.
func (h *hold) step() time.Duration {
	step := max(h.config.Look, lookEvery)
	if step > lookEvery && time.Until(h.lock.Deadline()) < h.config.Login.Lease/8 {
		return lookEvery
	}
	return step
}

// looks is how many looks of a step take as long as n that are lookEvery apart.
func looks(n int, step time.Duration) int { return max(1, n*int(lookEvery)/int(step)) }

// dismissed reports whether the ctx of a term has ended.
func (h *hold) dismissed() bool { return h.term != nil && h.term.Err() != nil }

// duration is how long to hold the lock, if it lasts. Most holds are short, so that there are many. Some are longer than a
// lease: only these show whether a lock outlasts its session or item.
func (h *hold) duration() time.Duration {
	lease := h.config.Login.Lease
	switch n := h.random.IntN(40); {
	case n < 30 && !h.config.Quiet:
		return h.between(time.Millisecond, lease/60)
	case n < 39 && !h.config.Quiet:
		return h.between(lease/60, lease/8)
	default:
		return h.between(lease/2, longestHold(lease))
	}
}

func longestHold(lease time.Duration) time.Duration { return 5 * lease / 2 }

// look reports whether the lock is held, and notes the moment if so. It takes the stamp before it asks, so anything between
// stamp and answer happens later.
func (h *hold) look() bool {
	at := h.now()
	if !h.live() {
		return false
	}
	h.last = at
	if h.told == 0 || at-h.told >= int64(max(reportEvery, h.config.Look)) {
		h.tell()
	}
	return true
}

// live reports whether the holder may believe in its lock. A lead may continue until its ctx ends,
// and its key is not given back before it returns, so that a term is live if either says so.
func (h *hold) live() bool {
	if h.term != nil && h.term.Err() == nil {
		return h.one(2) || !h.outlived() // some work looks only at its ctx
	}
	return h.lock.Err() == nil
}

// outlived is true, of a term whose ctx has not ended, if its lock has. Then the ctx must have ended meanwhile: if it has
// not, that is recorded as the end of the lock, after which it was live.
func (h *hold) outlived() bool {
	if h.lock.Err() == nil {
		return false
	}
	h.ends()
	if at := h.now(); h.term.Err() == nil {
		h.held(at, h.key, h.token)
	}
	return true
}

// tell reports the last moment at which the lock was held, once.
func (h *hold) tell() {
	if h.last > h.told {
		h.held(h.last, h.key, h.token)
		h.told = h.last
	}
}

// write checks the lock and then writes, as programs do, sometimes slowly. Fencing covers what happens in between.
func (h *hold) write() {
	if !h.look() {
		return
	}
	if h.one(3) {
		time.Sleep(h.between(time.Millisecond, 20*time.Millisecond))
	}
	h.client.write(h.key, h.token, h.lock.Shared())
}

// verify asks the engine.
func (h *hold) verify() { h.meanwhile(history.Record{Call: history.Verify}, h.lock.Verify) }

// describe sets new data.
func (h *hold) describe() {
	data := strconv.FormatInt(h.now(), 36)
	h.meanwhile(history.Record{Call: history.SetData, Data: data}, func(ctx context.Context) error {
		return h.lock.SetData(ctx, []byte(data))
	})
}

// meanwhile makes a call while the hold continues, one at a time.
func (h *hold) meanwhile(rec history.Record, call func(context.Context) error) {
	if !h.calling.CompareAndSwap(false, true) {
		return
	}
	bound := h.between(h.config.Login.Lease/20, h.config.Login.Lease)
	h.calls.Go(func() {
		defer h.calling.Store(false)
		ctx, cancel := context.WithTimeout(h.ctx, bound)
		defer cancel()
		rec.Key, rec.Token = h.key, h.token
		invoked := h.report.invoke(rec)
		invoked.returned(call(ctx), h.token, h.lock.Owner())
	})
}

// lost reports the end of a lock that was not released. Some holders release it anyway, as a deferred call would.
func (h *hold) lost() {
	h.ends()
	if h.one(2) {
		h.giveBack(h.config.Login.Lease)
	}
}

// ends reports, once, that the lock has ended.
func (h *hold) ends() {
	if h.ended {
		return
	}
	h.ended = true
	h.tell()
	h.lostBy(h.lock.Err(), h.key, h.token, h.term != nil)
}

func (h *hold) release() {
	h.tell()
	bound := 3 * h.config.Login.Lease
	if h.one(8) {
		bound = h.between(time.Microsecond, 5*time.Millisecond) // for some, the ctx ends before the confirmation
	}
	h.giveBack(bound)
}

func (h *hold) giveBack(bound time.Duration) {
	ctx, cancel := context.WithTimeout(h.ctx, bound)
	defer cancel()
	invoked := h.report.invoke(history.Record{Call: history.Release, Key: h.key, Token: h.token})
	invoked.returned(h.lock.Release(ctx), h.token, h.lock.Owner())
}
