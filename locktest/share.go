package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

var shareCases = sharing([]testCase{
	{"G19_ReadersTogether", readersTogether},
	{"G19_WriterWaitsForEachReader", writerWaitsForEachReader},
	{"G19_ReaderWaitsForWriter", readerWaitsForWriter},
	{"G19_ReaderKnowsFirst", readerKnowsFirst},
	{"G19_OneEndTouchesNoOther", oneEndTouchesNoOther},
	{"G19_DeadReaderAmongLive", deadReaderAmongLive},
	{"G19_TokensAcrossKinds", tokensAcrossKinds},
	{"G19_AllHoldersTold", allHoldersTold},
	{"G19_EachChangeIsTold", eachSharerIsTold},
	{"G19_EveryCallShares", everyCallShares},
	{"G19_CutWhileJoining", cutWhileJoining},
	{"G19_GivingUpAtAnyMoment", readersGiveUp},
	{"G19_Mixed", readersAndWriters},
})

const (
	ruleShare   = "shared holds of a key go together"
	ruleExclude = "shared and exclusive holds of a key exclude each other"
	ruleAll     = "all who share a key are told, the oldest first"
	ruleOthers  = "the end of one shared hold is not that of another"
)

// sharing keeps cases from engines that cannot share: G12_BadSharing tests that those say so.
func sharing(cases []testCase) []testCase {
	for i, c := range cases {
		cases[i].run = func(e *env) {
			if !e.engine.Shares {
				e.Skipf("%s: no key of this engine can be shared", e.rule)
			}
			c.run(e)
		}
	}
	return cases
}

// reader acquires the key of the case, which nobody has or only others who share it.
func (e *env) reader(c *Client, opts ...holdfast.Option) *holdfast.Lock {
	e.Helper()
	return e.hold(c, append(opts, holdfast.WithShared())...)
}

// readers has several clients share the key of the case.
func (e *env) readers(n int) (clients []*Client, locks []*holdfast.Lock) {
	e.Helper()
	for i := range n {
		c := e.client()
		clients = append(clients, c)
		locks = append(locks, e.reader(c, holdfast.WithOwner(fmt.Sprint("reader", i)), holdfast.WithData(fmt.Append(nil, "data", i))))
	}
	return clients, locks
}

// areLive insists that locks are live.
func (e *env) areLive(locks []*holdfast.Lock, rule string) {
	e.Helper()
	for _, lock := range locks {
		e.isLive(lock, rule)
	}
}

func readersTogether(e *env) {
	a, b := e.client(), e.client()
	locks := []*holdfast.Lock{e.reader(a), e.takes(a, e.key, ruleShare, holdfast.WithShared()), e.reader(b)}
	for i, lock := range locks {
		e.isLive(lock, ruleShare)
		e.brokenIf(!lock.Shared() || lock.Limit() != 0,
			"a lock says whether it is shared", "Shared %v, Limit %d", lock.Shared(), lock.Limit())
		if !e.engine.Tokenless && slices.ContainsFunc(locks[:i], func(o *holdfast.Lock) bool { return o.Token() == lock.Token() }) {
			e.broken("shared holds have different tokens", "two have %v", lock.Token())
		}
	}
	time.Sleep(3 * e.engine.Lease / 2) // each is kept alive, whatever the others do
	for _, lock := range locks {
		e.isLive(lock, ruleShare)
		e.release(lock)
	}
	e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
}

func writerWaitsForEachReader(e *env) {
	for last := range 3 {
		a, b := e.client(), e.client()
		locks := []*holdfast.Lock{e.reader(a), e.reader(b), e.reader(b)}
		e.isHeld(a, e.key, ruleExclude)
		w := e.wait(a).waits(b, e.key, 1)
		for i, lock := range locks {
			if i != last {
				e.release(lock)
				e.settle()
				w.stillWaits(ruleExclude)
				e.isHeld(b, e.key, ruleExclude)
				e.isLive(locks[last], ruleOthers)
			}
		}
		e.release(locks[last])
		writer := w.granted(e.handOver(), "the release of the last who shares a key lets the next in")
		for _, lock := range locks {
			e.newer(writer.Token(), lock.Token(), "the token of a writer is greater than those of the readers before it")
		}
		e.release(writer)
		e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
	}
}

func readerWaitsForWriter(e *env) {
	a, b := e.client(), e.client()
	lock := e.hold(a, holdfast.WithOwner("writer"))
	held := e.isHeld(b, e.key, ruleExclude, holdfast.WithShared())
	h := held.Holder
	e.brokenIf(h.Owner != "writer" || h.Token != lock.Token() || h.Shared || h.Holders != nil || h.Limit != 0,
		"TryAcquire reports the holder of the key", "it reports %+v", h)
	w := e.wait(b, holdfast.WithShared()).waits(a, e.key, 1)
	e.settle()
	w.stillWaits(ruleExclude)
	e.isLive(lock, ruleExclude)
	e.release(lock)
	reader := w.granted(e.handOver(), "a release lets the next in")
	e.newer(reader.Token(), lock.Token(), "the token of a reader is greater than those of the writers before it")
	e.release(reader)
	e.leavesNothing(e.key, e.engine.Soon, ruleNothing)
}

// readerKnowsFirst ends the lease of one of two readers; the other lets the writer in.
func readerKnowsFirst(e *env) {
	if e.engine.NeverExpires {
		e.Skipf("%s: no lease ends here", e.rule)
	}
	a, b, c := e.client(), e.client(), e.client()
	lost, other := e.reader(a), e.reader(b)
	writer := e.handsOver(lost, c, func() { a.Cut(); e.release(other) }, ruleExpires, ruleFirst)
	e.endedBy(lost, ruleFirst, expired...)
	e.endedBy(other, ruleOthers, holdfast.ErrReleased)
	e.isLive(writer, ruleExclude)
}

func oneEndTouchesNoOther(e *env) {
	clients, locks := e.readers(6)
	probe := e.client()
	after := func(n int, what string) {
		e.Helper()
		e.areLive(locks[n:], ruleOthers+": "+what)
		e.isHeld(probe, e.key, ruleExclude)
	}
	e.release(locks[1])
	locks[1] = locks[0]
	after(1, "release")
	for grant := range e.inspect(probe).Each() {
		if grant.Owner == "reader2" {
			e.noError(probe.Break(e.soon(), grant), "Break ends the grant that it is given")
			e.failsWith(e.retriedBreak(probe, grant), holdfast.ErrChanged, "Break of a grant that is gone is ErrChanged")
		}
	}
	e.ends(locks[2], e.engine.Notice, "Break ends the grant that it is given", holdfast.ErrBroken)
	locks[2] = locks[0]
	after(1, "Break")
	e.noError(locks[3].Extend(e.engine.Lease/50), "Extend sets the TTL of a live lock")
	e.ends(locks[3], e.engine.Soon+e.engine.Lease/50, "a TTL ends a shared hold", holdfast.ErrTTLExpired)
	locks[3] = locks[0]
	after(1, "TTL")
	e.watches(clients[4])
	again := e.reader(probe, holdfast.WithOwner("reader4"), holdfast.WithReclaim())
	e.ends(locks[4], e.engine.Notice, ruleReclaim, holdfast.ErrReclaimed)
	locks[4] = again
	after(1, "WithReclaim")
	if !e.engine.NeverExpires {
		clients[5].Cut()
		e.ends(locks[5], e.engine.Lease+e.engine.Soon, ruleAlone, expired...)
		locks[5] = locks[0]
		time.Sleep(e.engine.Lease) // the engine has ended it by now
		after(0, "loss")
	}
	e.areLive(locks[:1], ruleOthers)
}

// retriedBreak breaks a grant again, once the engine has had time to end it.
func (e *env) retriedBreak(c *Client, info holdfast.Info) error {
	var err error
	e.eventually(e.handOver(), func() bool {
		err = c.Break(e.soon(), info)
		return err != nil
	})
	return err
}

// deadReaderAmongLive keeps a reader alive beside a dead one: the writer waits for both, but not for ever.
func deadReaderAmongLive(e *env) {
	if e.engine.NeverExpires {
		e.Skipf("%s: no lease ends here", e.rule)
	}
	a, b, c := e.client(), e.client(), e.client()
	dead, live := e.reader(a), e.reader(b)
	w := e.wait(c).waits(b, e.key, 1)
	a.Cut()
	for range 4 {
		time.Sleep(e.engine.Lease / 2)
		e.isLive(live, "a live reader goes on beside a dead one")
		w.stillWaits(ruleExclude)
	}
	e.endedBy(dead, ruleAlone, expired...)
	e.release(live)
	e.release(w.granted(e.handOver(), "a live reader does not keep the lease of a dead one alive"))
}

func tokensAcrossKinds(e *env) {
	clients := []*Client{e.client(), e.client()}
	var greatest, writer holdfast.Token // of all before, and of the last writer
	for round, shared := range []bool{false, true, true, false, true, false, false, true} {
		if !shared {
			lock := e.hold(clients[round%2])
			e.newer(lock.Token(), greatest, "the token of a writer is greater than all before it")
			greatest, writer = max(greatest, lock.Token()), lock.Token()
			e.release(lock)
			continue
		}
		locks := []*holdfast.Lock{e.reader(clients[0]), e.reader(clients[1])}
		for _, lock := range locks {
			e.newer(lock.Token(), writer, "the token of a reader is greater than those of the writers before it")
			greatest = max(greatest, lock.Token())
		}
		e.release(locks[round%2])
		e.release(locks[1-round%2])
	}
}

func everyCallShares(e *env) {
	a, b := e.client(), e.client()
	lock := e.reader(a)
	shared := holdfast.WithShared()
	any, err := b.AcquireAny(e.soon(), []string{e.key, e.prefix + "other"}, shared)
	e.brokenIf(err != nil || any.Key() != e.key, ruleShare, "AcquireAny: %v, %v", any, err)
	all, err := b.TryAcquireAll(e.soon(), []string{e.key, e.prefix + "other"}, shared)
	e.noError(err, ruleShare, "TryAcquireAll")
	e.isHeld(a, e.prefix+"other", ruleExclude)
	called := false
	err = b.TryDo(e.soon(), e.key, func(_ context.Context, lock *holdfast.Lock) error {
		called = lock.Shared()
		return nil
	}, shared, holdfast.WithTTL(e.patience()))
	e.brokenIf(err != nil || !called, ruleShare, "TryDo: %v", err)
	e.noError(all.Release(e.soon()), ruleShare, "Release of all")
	e.release(any)
	_, err = b.Acquire(e.within(e.patience()), e.key, holdfast.WithWait(e.engine.Lease/2))
	var held *holdfast.HeldError
	e.brokenIf(!errors.As(err, &held) || !held.Holder.Shared || len(held.Holder.Holders) != 1,
		ruleExclude, "Acquire with WithWait: %v", err)
	e.release(lock)
	e.leavesNothing(e.key, e.patience(), ruleNothing)
}
