package main

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/history"
)

// worker acquires one lock after another, and stands for election now and then.
type worker struct {
	*client
	random *rand.Rand
	former []string // keys that the previous process may hold
}

func (w *worker) run() {
	if w.config.Succeeds {
		w.former = slices.Clone(w.config.Keys)
		w.random.Shuffle(len(w.former), func(i, j int) { w.former[i], w.former[j] = w.former[j], w.former[i] })
	}
	for w.stopping.Err() == nil {
		switch {
		case w.stands():
			w.stand()
		case w.one(10):
			for _, lock := range w.acquireAll() {
				w.hold(lock)
			}
		default:
			if lock := w.acquire(); lock != nil {
				w.hold(lock)
			}
		}
		if w.one(15) {
			w.ask()
		}
		sleep(w.stopping, w.between(time.Millisecond, 30*time.Millisecond))
	}
}

// one is true with probability 1/n.
func (w *worker) one(n int) bool { return w.random.IntN(n) == 0 }

func (w *worker) anyKey() string { return w.config.Keys[w.random.IntN(len(w.config.Keys))] }

func (w *worker) between(from, to time.Duration) time.Duration {
	return from + time.Duration(w.random.Int64N(int64(to-from)))
}

// acquire asks for a lock in one of many ways; nil means that it got none.
// Most calls have no time limit, so that a grant ends them.
func (w *worker) acquire() *holdfast.Lock {
	lease := w.config.Login.Lease
	rec := history.Record{Call: history.Acquire, Key: w.anyKey(), Owner: w.config.Owner}
	var opts []holdfast.Option
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	bound := time.Duration(0)
	switch n := w.random.IntN(100); {
	case n < 12:
		rec.Call, bound = history.Try, w.between(lease/10, 2*lease)
	case n < 25:
		bound = w.between(time.Millisecond, lease/4)
	case n < 35:
		opts = append(opts, holdfast.WithWait(w.between(lease/20, lease)))
	}
	if bound > 0 {
		ctx, cancel = context.WithTimeout(ctx, bound)
		defer cancel()
	}
	if w.one(6) {
		ttl := w.between(lease/40, lease)
		opts = append(opts, holdfast.WithTTL(ttl))
		rec.TTL = int64(ttl)
	}
	if len(w.former) > 0 {
		rec.Key, w.former = w.former[0], w.former[1:]
		rec.Reclaim = true
	} else if rec.Call == history.Acquire && w.one(cmp.Or(w.config.Reclaims, usualReclaims)) {
		rec.Reclaim = true
	}
	if rec.Reclaim {
		opts = append(opts, holdfast.WithOwner(w.config.Owner), holdfast.WithReclaim())
	}
	modes := uses(rec.Key)
	rec.Mode = modes[w.random.IntN(len(modes))]
	opts = append(opts, option(rec.Mode)...)
	invoked := w.report.invoke(rec)
	ask := w.locker.Acquire
	if rec.Call == history.Try {
		ask = w.locker.TryAcquire
	}
	lock, err := ask(ctx, rec.Key, opts...)
	if err != nil {
		invoked.returned(err, 0, "")
		return nil
	}
	invoked.returned(nil, uint64(lock.Token()), lock.Owner())
	return lock
}

// ask asks a holder for its lock.
func (w *worker) ask() {
	ctx, cancel := context.WithTimeout(w.ctx, w.between(w.config.Login.Lease/20, w.config.Login.Lease))
	defer cancel()
	if info, err := w.locker.Inspect(ctx, w.anyKey()); err == nil {
		for one := range info.Each() {
			invoked := w.report.invoke(history.Record{Call: history.Ask, Key: one.Key, Token: uint64(one.Token)})
			invoked.returned(w.locker.Ask(ctx, one), uint64(one.Token), "")
		}
	}
}

const mostTogether = 3 // keys of one AcquireAll

// acquireAll asks for the locks of several keys together, in any order.
func (w *worker) acquireAll() []*holdfast.Lock {
	keys := slices.Clone(w.config.Keys)
	w.random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	keys = keys[:min(len(keys), mostTogether-1+w.random.IntN(2))]
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	if w.one(3) {
		ctx, cancel = context.WithTimeout(ctx, w.between(time.Millisecond, 3*w.config.Login.Lease))
		defer cancel()
	}
	invoked := make(map[string]*call)
	for _, key := range keys {
		invoked[key] = w.report.invoke(history.Record{Call: history.Acquire, Key: key, Owner: w.config.Owner, All: true})
	}
	locks, err := w.locker.AcquireAll(ctx, keys)
	if err != nil {
		for _, key := range keys {
			invoked[key].returned(err, 0, "")
		}
		return nil
	}
	for _, lock := range locks.All() {
		invoked[lock.Key()].returned(nil, uint64(lock.Token()), lock.Owner())
	}
	return locks.All()
}
