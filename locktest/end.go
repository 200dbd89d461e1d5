package locktest

import (
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

var endCases = []testCase{
	{"G3_TokensRise", tokensRise},
	{"G4_FirstEndWins", firstEndWins},
	{"G4_CauseIsNamed", causeIsNamed},
	{"G4_OneEndForAllWhoAsk", oneEndForAllWhoAsk},
}

const ruleFirstEnd = "the first end of a lock wins and never changes"

// ways are the ends that take effect at once.
func (e *env) ways(c, probe *Client) map[string]func(*holdfast.Lock) error {
	return map[string]func(*holdfast.Lock) error{
		"release": func(k *holdfast.Lock) error {
			e.release(k)
			return holdfast.ErrReleased
		},
		"TTL": func(k *holdfast.Lock) error {
			e.noError(k.Extend(time.Millisecond), ruleAnswers, "Extend")
			e.ends(k, e.engine.Soon, "an extended TTL counts from now", holdfast.ErrTTLExpired)
			return holdfast.ErrTTLExpired
		},
		"break": func(k *holdfast.Lock) error {
			e.breaks(probe, k.Key())
			e.ends(k, e.engine.Notice, "a holder learns that somebody ended its live lease on purpose", holdfast.ErrBroken)
			return holdfast.ErrBroken
		},
	}
}

func firstEndWins(e *env) {
	probe := e.client()
	a := e.client()
	ended := make(map[string]*holdfast.Lock)
	first := make(map[string]error)
	for name, end := range e.ways(a, probe) {
		lock := e.holdKey(a, e.prefix+name, holdfast.WithOwner(name))
		want := end(lock)
		e.endedBy(lock, ruleFirstEnd, want)
		ended[name], first[name] = lock, lock.Err()
		next := e.holdWithin(e.patience(), probe, lock.Key())
		released := lock.Err()
		if want == holdfast.ErrReleased {
			released = nil
		}
		err := lock.Release(e.soon())
		e.brokenIf(!errors.Is(err, released), "Release after the end reports that end", "after %s: %v", name, err)
		e.failsWith(lock.Extend(time.Hour), lock.Err(), "Extend never revives a lock", "after "+name)
		e.failsWith(lock.Verify(e.soon()), lock.Err(), "Verify after the end reports that end", "after "+name)
		e.isLive(next, ruleSpares+", after its own end by "+name)
	}
	check := func(after string) {
		for name, lock := range ended {
			e.brokenIf(!isClosed(lock.Done()) || lock.Err() != first[name],
				ruleFirstEnd, "it ended by %s (%v); after %s Err is %v", name, first[name], after, lock.Err())
		}
	}
	check("Release, Extend and Verify")
	a.Cut()
	time.Sleep(e.engine.Lease)
	check("the end of the lease")
	a.Heal()
	_ = a.Close(e.within(e.patience()))
	check("Close")
}

// causeIsNamed ends locks by a break, a reclaim, and the silence of their client. None comes back to life.
func causeIsNamed(e *env) {
	a, b := e.client(), e.client()
	broken, reclaimed := e.holdKey(a, e.prefix+"broken"), e.holdKey(a, e.prefix+"reclaimed", holdfast.WithOwner("me"))
	e.ways(a, b)["break"](broken)
	e.watches(a)
	e.holdWithin(e.patience(), b, reclaimed.Key(), holdfast.WithOwner("me"), holdfast.WithReclaim())
	e.ends(reclaimed, e.engine.Notice, "a holder learns that somebody ended its live lease on purpose", holdfast.ErrReclaimed)
	silent, end := e.hold(a), expired
	a.Cut()
	if e.engine.NeverExpires {
		e.outlasts(b, silent)
		e.breaks(b, e.key)
		end = []error{holdfast.ErrBroken}
		a.Heal()
	}
	e.ends(silent, e.handOver(), ruleAlone, end...)
	a.Heal()
	again := e.holdWithin(e.patience(), a, e.key)
	e.newer(again.Token(), silent.Token(), "the next grant has a greater token")
	time.Sleep(e.engine.Lease)
	e.isLive(again, ruleRenewed)
	for lock, causes := range map[*holdfast.Lock][]error{broken: {holdfast.ErrBroken}, reclaimed: {holdfast.ErrReclaimed}, silent: end} {
		err := lock.Err()
		var lost *holdfast.LostError
		e.brokenIf(!errors.As(err, &lost) || lost.Key != lock.Key() || lost.Owner != lock.Owner() || lost.Token != lock.Token(),
			"a LostError says which hold was lost", "%#v", err)
		e.brokenIf(!errors.Is(err, holdfast.ErrLost) || errors.Is(err, holdfast.ErrReleased) || errors.Is(err, holdfast.ErrTTLExpired),
			"Err matches exactly one of ErrReleased, ErrTTLExpired and ErrLost", "%v", err)
		e.endedBy(lock, "a loss names its cause", causes...)
		for name, err := range map[string]error{
			"Extend": lock.Extend(time.Hour), "Verify": lock.Verify(e.soon()), "Release": lock.Release(e.soon()),
		} {
			e.failsWith(err, holdfast.ErrLost, "a lock never comes back to life", name)
		}
	}
	e.isLive(again, "calls on a lost lock do not touch a later lock of the same client")
}

// oneEndForAllWhoAsk ends a lock in several ways at once: every reader sees the same end.
func oneEndForAllWhoAsk(e *env) {
	a := e.client()
	for range 5 {
		lock := e.hold(a, holdfast.WithTTL(2*time.Millisecond))
		info := e.inspect(a)
		const askers = 8
		seen := make([]error, askers)
		var wg sync.WaitGroup
		for i := range askers {
			wg.Go(func() {
				switch i {
				case 0, 1:
					time.Sleep(2 * time.Millisecond)
					lock.Release(e.soon())
				case 2:
					if info.Held {
						_ = a.Break(e.soon(), info) // ErrChanged, if it comes too late
					}
				}
				<-lock.Done()
				seen[i] = lock.Err()
			})
		}
		wg.Wait()
		for _, err := range seen {
			e.brokenIf(err == nil || err != seen[0], "a lock has one end, the same for every reader", "%v and %v", seen[0], err)
		}
		e.leavesNothing(e.key, e.patience(), "however a lock ends, its key becomes free")
	}
}

// tokensRise ends one hold after the other, in every possible way.
func tokensRise(e *env) {
	probe := e.client()
	ends := []struct {
		name string
		end  func(c *Client, lock *holdfast.Lock)
		opts []holdfast.Option
	}{
		{name: "a release", end: func(_ *Client, lock *holdfast.Lock) { e.release(lock) }},
		{name: "another release", end: func(_ *Client, lock *holdfast.Lock) { e.release(lock) }},
		{
			name: "its TTL",
			end:  func(_ *Client, lock *holdfast.Lock) { e.ends(lock, e.handOver(), "TTL", holdfast.ErrTTLExpired) },
			opts: []holdfast.Option{holdfast.WithTTL(e.engine.Lease / 20)},
		},
		{name: "the close of its client", end: func(c *Client, _ *holdfast.Lock) { e.close(c) }},
		{name: "a break", end: func(*Client, *holdfast.Lock) { e.breaks(probe, e.key) }},
		{name: "a cut past its lease", end: func(c *Client, _ *holdfast.Lock) { c.Cut() }},
		{name: "the expiry of its session", end: func(c *Client, _ *holdfast.Lock) { c.dies() }},
		{name: "nothing", end: func(*Client, *holdfast.Lock) {}},
	}
	silent := map[string]bool{"a cut past its lease": true, "the expiry of its session": true}
	var last holdfast.Token
	after := "nothing"
	for _, step := range ends {
		c := e.client()
		lock := e.holdWithin(e.patience(), c, e.key, step.opts...)
		e.newer(lock.Token(), last, "tokens of a key strictly increase, after an end by "+after)
		last, after = lock.Token(), step.name
		step.end(c, lock)
		if e.engine.NeverExpires && silent[step.name] {
			e.keptFrom(probe, e.key)
			e.breaks(probe, e.key)
		}
	}
}
