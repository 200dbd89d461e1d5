package locktest

import (
	"time"

	"github.com/holdfast-go/holdfast"
)

var ttlCases = []testCase{
	{"G8_EndsAtTheTTL", endsAtTheTTL},
	{"G8_HolderFirst", ttlHolderFirst},
	{"G8_Extend", extend},
	{"G8_WhileDisconnected", ttlWhileDisconnected},
}

const ruleTTL = "at the TTL the lock ends with ErrTTLExpired"

// short is a TTL well within the lease.
func (e *env) short() time.Duration { return e.engine.Lease / 8 }

func endsAtTheTTL(e *env) {
	a := e.client()
	began := time.Now()
	lock := e.hold(a, holdfast.WithTTL(e.short()))
	granted := time.Now()
	d := lock.Deadline()
	e.brokenIf(d.Before(began.Add(e.short())) || d.After(granted.Add(e.short())),
		"Deadline is that of the TTL, if the TTL ends before the lease", "%v after the grant", d.Sub(granted))
	e.ends(lock, e.short()+e.engine.Soon, ruleTTL, holdfast.ErrTTLExpired)
	e.brokenIf(time.Since(began) < e.short(), ruleTTL, "it ended before %v had passed", e.short())
	// No method was called, and still the engine learns of the end.
	e.leavesNothing(e.key, e.engine.Soon, "at the TTL the hold ends in the engine too")
	e.failsWith(lock.Release(e.soon()), holdfast.ErrTTLExpired, "Release after the TTL reports it")
}

// ttlHolderFirst has a TTL that is longer than the lease.
func ttlHolderFirst(e *env) {
	_, b, lock := e.held(holdfast.WithTTL(e.engine.Lease * 3 / 2))
	next := e.handsOver(lock, b, func() {
		time.Sleep(e.engine.Lease * 5 / 4)
		e.isLive(lock, "a TTL longer than the lease counts, as long as the client renews the lease")
	}, "at the TTL the key goes to the next", "the TTL ends the lock for the holder first, then in the engine")
	e.endedBy(lock, ruleTTL, holdfast.ErrTTLExpired)
	e.isLive(next, ruleOne)
}

func extend(e *env) {
	a := e.client()
	ttl := e.engine.Lease / 2
	if e.engine.Bubble == nil { // the machine may stand still for most of that
		ttl = e.engine.Lease
	}
	lock := e.hold(a, holdfast.WithTTL(ttl))
	for range 5 {
		time.Sleep(ttl / 4)
		e.noError(lock.Extend(ttl), "Extend moves the TTL to the given time from now")
	}
	left := time.Until(lock.Deadline())
	e.brokenIf(left > ttl, "Extend moves the TTL to the given time from now", "Deadline is %v from now, not %v", left, ttl)
	e.noError(lock.Extend(0), "Extend(0) removes the TTL")
	time.Sleep(e.engine.Lease / 2)
	e.isLive(lock, "Extend(0) removes the TTL")
	e.noError(lock.Extend(e.short()), "Extend sets a TTL on a lock without one")
	e.ends(lock, e.short()+e.engine.Soon, ruleTTL, holdfast.ErrTTLExpired)
	e.failsWith(lock.Extend(time.Hour), holdfast.ErrTTLExpired, "Extend never revives a lock")
	e.leavesNothing(e.key, e.engine.Soon, "at the TTL the hold ends in the engine too")
}

// ttlWhileDisconnected has one TTL end before the lease, and one after it.
func ttlWhileDisconnected(e *env) {
	a, b := e.client(), e.client()
	late := e.hold(a, holdfast.WithTTL(2*e.engine.Lease))
	soon := e.holdKey(a, e.prefix+"soon", holdfast.WithTTL(e.short()))
	a.Cut()
	e.ends(soon, e.short()+e.engine.Soon, ruleTTL+", also if the engine cannot be reached", holdfast.ErrTTLExpired)
	if e.NeverExpires {
		time.Sleep(e.engine.Lease * 5 / 4)
		e.noError(late.Err(), "a TTL longer than the lease counts where no lease ends")
		e.ends(late, e.engine.Lease+e.engine.Soon, ruleTTL, holdfast.ErrTTLExpired)
	} else {
		e.ends(late, e.handOver(), "a lease that ends before the TTL ends the lock", expired...)
	}
	left := time.Until(late.Deadline())
	e.brokenIf(left > 0, "the Deadline of a lock that has ended is in the past", "it is %v from now", left)
	a.Heal()
	e.release(e.holdWithin(e.handOver(), b, soon.Key()))
	e.leavesNothing(soon.Key(), e.engine.Soon, "at the TTL the hold ends in the engine too")
	e.endedBy(soon, ruleFirstEnd, holdfast.ErrTTLExpired)
}
