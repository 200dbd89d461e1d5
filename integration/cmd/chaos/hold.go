package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// reportEvery is how often a holder reports that it still holds the lock. It always reports the last moment.
const reportEvery = 20 * time.Millisecond

// hold is one hold of a worker.
type hold struct {
	*worker
	lock      *holdfast.Lock
	key       string
	token     uint64
	last      int64 // the last stamp at which the lock was held, 0 for none
	told      int64 // the last that was reported
	verifying atomic.Bool
	verifies  sync.WaitGroup
}

// hold holds a lock for a while, and checks it continually: it takes a stamp, and then asks. It returns when the lock has
// ended or was released.
func (w *worker) hold(lock *holdfast.Lock) {
	h := &hold{worker: w, lock: lock, key: lock.Key(), token: w.reported(lock)}
	defer h.verifies.Wait()
	w.holding.Add(1)
	defer w.holding.Add(-1)
	began := history.Now()
	until := began + int64(h.duration())
	for {
		if !h.look() {
			h.lost()
			return
		}
		if told := w.linger.Load(); told != nil && began < told.began {
			until = max(until, told.until)
		}
		if (h.last >= until || w.stopping.Err() != nil) && !h.verifying.Load() {
			break
		}
		switch {
		case w.one(20):
			h.write()
		case w.one(150):
			h.verify()
		}
		time.Sleep(w.between(time.Millisecond, 2*time.Millisecond))
	}
	h.release()
}

// duration is how long to hold the lock, if it lasts. Most holds are short, so that there are many. Some are longer than a
// lease: only these show whether a lock outlasts its session or item.
func (h *hold) duration() time.Duration {
	lease := h.config.Login.Lease
	switch n := h.random.IntN(40); {
	case n < 30:
		return h.between(time.Millisecond, lease/60)
	case n < 39:
		return h.between(lease/60, lease/8)
	default:
		return h.between(lease/2, 5*lease/2)
	}
}

// look reports whether the lock is held, and notes the moment if so. It takes the stamp before it asks, so anything between
// stamp and answer happens later.
func (h *hold) look() bool {
	at := history.Now()
	if h.lock.Err() != nil && h.config.Sabotage != ignoresLoss {
		return false
	}
	h.last = at
	if h.told == 0 || at-h.told >= int64(reportEvery) {
		h.tell()
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
	if err := h.writeBoth(h.key, h.token); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", h.config.Process, err)
		os.Exit(1)
	}
}

// verify asks the engine, while the hold continues.
func (h *hold) verify() {
	if !h.verifying.CompareAndSwap(false, true) {
		return
	}
	bound := h.between(h.config.Login.Lease/20, h.config.Login.Lease)
	h.verifies.Go(func() {
		defer h.verifying.Store(false)
		ctx, cancel := context.WithTimeout(h.ctx, bound)
		defer cancel()
		invoked := h.report.invoke(history.Record{Call: history.Verify, Key: h.key, Token: h.token})
		invoked.returned(h.lock.Verify(ctx), h.token, h.lock.Owner())
	})
}

// lost reports the end of a lock that was not released. Some holders release it anyway, as a deferred call would.
func (h *hold) lost() {
	cause := causeOf(h.lock.Err())
	h.tell()
	h.report.write(history.Record{At: history.Now(), What: history.Lost, Key: h.key, Token: h.token, Cause: cause})
	if h.one(2) {
		h.giveBack(h.config.Login.Lease)
	}
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
