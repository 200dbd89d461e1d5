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
	{"G19_Together", together},
	{"G19_OneEndTouchesNoOther", oneEndTouchesNoOther},
	{"G19_DeadReaderAmongLive", deadReaderAmongLive},
	{"G19_TokensAcrossModes", tokensAcrossModes},
	{"G19_AllHoldersTold", allHoldersTold},
	{"G19_EachChangeIsTold", eachSharerIsTold},
	{"G19_EveryCallShares", everyCallShares},
	{"G19_Mixed", readersAndWriters},
})

const (
	ruleShare   = "holds of a mode that shares go together"
	ruleExclude = "holds of modes that do not share exclude each other"
	ruleAll     = "all holders of a key are told, the oldest first"
	ruleOthers  = "the end of one shared hold is not that of another"
	ruleMost    = "at most n hold a semaphore of n at a time"
	ruleFewer   = "n can hold a semaphore of n at a time"
)

// sharing skips cases for engines that cannot share. G12_BadOptions tests that such an engine refuses the request.
func sharing(cases []testCase) []testCase {
	for i, c := range cases {
		cases[i].run = func(e *env) {
			e.needs(e.Shares, "share a key")
			c.run(e)
		}
	}
	return cases
}

// share has clients hold the key of the case in a mode, each with an owner name and data of its own.
func (e *env) share(m mode, clients []*Client) (locks []*holdfast.Lock) {
	for i, c := range clients {
		locks = append(locks, e.takes(c, e.key, ruleShare, m.option(),
			holdfast.WithOwner(fmt.Sprint("sharer", i)), holdfast.WithData(fmt.Append(nil, "data", i))))
	}
	return locks
}

// together has two clients share keys for longer than a lease, and a third try to be one too many.
func together(e *env) {
	a, b := e.client(), e.client()
	var all []*holdfast.Lock
	for _, m := range sharedModes {
		key := e.prefix + string(m)
		var tokens []holdfast.Token
		for _, c := range []*Client{a, a, b} {
			lock := e.takes(c, key, ruleShare, m.option())
			e.brokenIf(!lock.Shared() || lock.Limit() != m.limit(), "a lock says how it is shared", "%v, %d", lock.Shared(), lock.Limit())
			e.brokenIf(!e.Tokenless && slices.Contains(tokens, lock.Token()), "holds have different tokens", "two have %v", lock.Token())
			all, tokens = append(all, lock), append(tokens, lock.Token())
		}
		e.isHeld(b, key, ruleExclude)
		if m.limit() > 0 {
			e.isHeld(b, key, ruleMost, m.option())
		}
	}
	time.Sleep(3 * e.engine.Lease / 2) // each is kept alive, whatever the others do
	e.areLive(all, ruleShare)
	for _, lock := range all {
		e.release(lock)
		e.areLive(all[slices.Index(all, lock)+1:], ruleOthers)
	}
	for _, m := range sharedModes {
		e.leavesNothing(e.prefix+string(m), e.engine.Soon, ruleNothing)
	}
}

// oneEndTouchesNoOther ends one of six holds after the other, each in another way.
func oneEndTouchesNoOther(e *env) {
	clients, probe := e.clients(6), e.client()
	for _, m := range []mode{"r", "6"} {
		locks := e.share(m, clients)
		after := func(i int, what string) {
			e.areLive(locks[i+1:], ruleOthers+": "+what)
			e.isLive(locks[0], ruleOthers+": "+what)
			e.isHeld(probe, e.key, ruleExclude)
		}
		e.release(locks[1])
		after(1, "release")
		grant := e.grantOf(probe, locks[2])
		e.noError(probe.Break(e.soon(), grant), "Break ends the grant that it is given")
		e.becomes(e.handOver(), "Break of a grant that is gone is ErrChanged", func() (bool, any) {
			err := probe.Break(e.soon(), grant)
			return errors.Is(err, holdfast.ErrChanged), err
		})
		e.ends(locks[2], e.engine.Notice, "Break ends the grant that it is given", holdfast.ErrBroken)
		after(2, "Break")
		e.noError(locks[3].Extend(e.engine.Lease/50), "Extend sets the TTL of a live lock")
		e.ends(locks[3], e.engine.Soon+e.engine.Lease/50, "a TTL ends a shared hold", holdfast.ErrTTLExpired)
		after(3, "TTL")
		e.watches(clients[4])
		again := e.hold(probe, m.option(), holdfast.WithOwner("sharer4"), holdfast.WithReclaim())
		e.ends(locks[4], e.engine.Notice, ruleReclaim, holdfast.ErrReclaimed)
		after(4, "WithReclaim")
		if clients[5].Cut(); !e.NeverExpires {
			e.ends(locks[5], e.engine.Lease+e.engine.Soon, ruleAlone, expired...)
			time.Sleep(e.engine.Lease) // the engine has ended it by now
			after(5, "loss")
		}
		clients[5].Heal()
		for _, lock := range []*holdfast.Lock{locks[0], again} {
			e.isLive(lock, ruleOthers)
			e.release(lock)
		}
		if e.NeverExpires {
			e.release(locks[5])
		}
		e.release(e.holdWithin(e.handOver(), probe, e.key))
	}
}

// grantOf is the grant of a lock, as the engine tells of it.
func (e *env) grantOf(c *Client, lock *holdfast.Lock) holdfast.Info {
	for grant := range e.inspect(c).Each() {
		if grant.Token == lock.Token() && grant.Owner == lock.Owner() {
			return grant
		}
	}
	e.broken(ruleAll, "nothing is told of a lock of %q with token %v", lock.Owner(), lock.Token())
	panic("not reached")
}

// deadReaderAmongLive keeps a holder alive beside a dead one: the writer waits for both, but not for ever.
func deadReaderAmongLive(e *env) {
	e.needs(!e.NeverExpires, "end a lease")
	a, b, c := e.client(), e.client(), e.client()
	for _, m := range sharedModes {
		dead, live := e.takes(a, e.key, ruleShare, m.option()), e.takes(b, e.key, ruleShare, m.option())
		w := e.wait(c).waits(b, e.key, 1)
		a.Cut()
		for range 4 {
			time.Sleep(e.engine.Lease / 2)
			e.isLive(live, "a live holder goes on beside a dead one")
			w.stillWaits(ruleExclude)
		}
		e.endedBy(dead, ruleAlone, expired...)
		e.release(live)
		e.release(w.granted(e.handOver(), "a live holder does not keep the lease of a dead one alive"))
		a.Heal()
		e.release(e.holdWithin(e.patience(), a, e.key))
	}
}

func tokensAcrossModes(e *env) {
	clients := e.clients(2)
	var greatest, excluded holdfast.Token // of all before, and of those that exclude the present holds
	last := mode("w")
	for round, m := range []mode{"w", "r", "r", "w", "r", "2", "w", "w", "2", "r"} {
		if m != last || m == "w" {
			excluded, last = greatest, m
		}
		locks := []*holdfast.Lock{e.hold(clients[round%2], m.option())}
		if m != "w" {
			locks = append(locks, e.hold(clients[1-round%2], m.option()))
		}
		for _, lock := range locks {
			e.newer(lock.Token(), excluded, "the token of a hold is greater than those of the holds before it that exclude it")
			greatest = max(greatest, lock.Token())
			e.release(lock)
		}
	}
}

// readersAndWriters lets clients compete, and looks which locks are live together.
func readersAndWriters(e *env) {
	most := e.mix(ruleExclude, 3, 6, 6, func(worker, round int) mode { return modeOf((worker+round)%3 != 0, 0) })
	e.brokenIf(most < 2 && e.Ordered && !e.Failed(), ruleShare, "no two readers were together")
}

// allHoldersTold looks at three holds of which one has set its data and another is then broken.
func allHoldersTold(e *env) {
	clients, probe := e.clients(3), e.client()
	for _, m := range sharedModes {
		locks := e.share(m, clients)
		e.noError(locks[1].SetData(e.soon(), []byte("new")), "SetData replaces the data of one shared hold")
		want := []string{"sharer0 data0", "sharer1 new", "sharer2 data2"}
		check := func(info holdfast.Info, call string) {
			var got []string
			for _, h := range info.Holders {
				got = append(got, h.Owner+" "+string(h.Data))
				i := len(got) - 1
				e.brokenIf(i < len(locks) && (h.Token != locks[i].Token() || h.Grant == ""), ruleAll, "%s: %+v", call, h)
			}
			e.brokenIf(!slices.Equal(got, want), ruleAll, "%s: %q, want %q", call, got, want)
			first := info.Holders[0]
			e.brokenIf(!info.Held || !info.Shared || info.Limit != m.limit() || info.Owner != first.Owner || info.Token != first.Token ||
				info.Grant != first.Grant || string(info.Data) != string(first.Data), "an Info describes the oldest grant", "%s: %+v", call, info)
		}
		check(e.inspect(probe), "Inspect")
		for info, err := range probe.List(e.soon(), e.key) {
			e.noError(err, ruleAll, "List")
			check(info, "List")
		}
		check(e.isHeld(probe, e.key, ruleExclude).Holder, "HeldError")

		e.noError(probe.Ask(e.soon(), e.grantOf(probe, locks[2])), "Ask reaches the grant that it is given")
		e.asked(locks[2], e.engine.Notice)
		e.brokenIf(isClosed(locks[0].Asked()) || isClosed(locks[1].Asked()), "Ask reaches no other grant", "another was asked")
		e.areLive(locks, "an ask ends nothing")
		e.noError(probe.Break(e.soon(), e.inspect(probe)), "Break of a key that is shared ends the oldest grant")
		e.ends(locks[0], e.engine.Notice, "Break of a key that is shared ends the oldest grant", holdfast.ErrBroken)
		e.areLive(locks[1:], ruleOthers)
		e.release(locks[1])
		e.release(locks[2])
		e.leavesNothing(e.key, e.handOver(), ruleNothing)
	}
}

func eachSharerIsTold(e *env) {
	a, b := e.client(), e.client()
	o := e.observe(b, nil)
	tells := func(want ...string) {
		e.becomes(e.engine.Notice+e.engine.Soon, "Observe tells every holder of a key", func() (bool, any) {
			var owners []string
			told := o.all()
			if len(told) > 0 {
				for grant := range told[len(told)-1].Each() {
					owners = append(owners, grant.Owner+string(grant.Data))
				}
			}
			return len(told) > 0 && slices.Equal(owners, want), owners
		})
	}
	for _, m := range sharedModes {
		tells()
		one := e.hold(a, m.option(), holdfast.WithOwner("one"))
		tells("one")
		two := e.hold(a, m.option(), holdfast.WithOwner("two"))
		tells("one", "two")
		three := e.hold(b, m.option(), holdfast.WithOwner("three"))
		tells("one", "two", "three")
		e.release(two)
		tells("one", "three")
		e.noError(three.SetData(e.soon(), []byte("!")), "SetData replaces the data of one shared hold")
		tells("one", "three!")
		e.release(one)
		tells("three!")
		e.release(three)
		tells()
	}
}

func everyCallShares(e *env) {
	a, b := e.client(), e.client()
	shared, keys := holdfast.WithShared(), []string{e.key, e.prefix + "other"}
	lock := e.hold(a, shared)
	one, err := b.AcquireAny(e.soon(), keys, shared)
	e.brokenIf(err != nil || one.Key() != e.key, ruleShare, "AcquireAny: %v, %v", one, err)
	all, err := b.TryAcquireAll(e.soon(), keys, shared)
	e.noError(err, ruleShare, "TryAcquireAll")
	e.isHeld(a, keys[1], ruleExclude)
	err = b.TryDo(e.soon(), e.key, func(context.Context, *holdfast.Lock) error { return nil }, shared)
	e.noError(err, ruleShare, "TryDo")
	e.releaseAll(all)
	e.release(one)
	_, err = b.Acquire(e.within(e.patience()), e.key, holdfast.WithWait(e.engine.Lease/2))
	var held *holdfast.HeldError
	e.brokenIf(!errors.As(err, &held) || !held.Holder.Shared || len(held.Holder.Holders) != 1, ruleExclude, "Acquire with WithWait: %v", err)
	e.release(lock)
	e.leavesNothing(e.key, e.patience(), ruleNothing)
}
