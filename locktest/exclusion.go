package locktest

import (
	"reflect"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

var exclusionCases = []testCase{
	{"G1_OneHolder", oneHolder},
	{"G1_OneHolderAmongMany", oneHolderAmongMany},
	{"G1_KeysAreIndependent", keysAreIndependent},
	{"G1_InspectSaysSinceWhen", inspectSaysSinceWhen},
	{"G1_InspectSetsEveryField", inspectSetsEveryField},
	{"G1_ListNamesAllHolders", listNamesAllHolders},
}

const (
	ruleOne  = "at most one grant of a key is live"
	ruleFree = "a key that was released is free"
	ruleNext = "a release, a break or the end of a lease lets the next in"
)

func oneHolder(e *env) {
	a, b, lock := e.held()
	for _, c := range []*Client{a, b} { // a lock is not reentrant
		h := e.isHeld(c, e.key, ruleOne).Holder
		e.brokenIf(h.Owner != a.Owner() || h.Token != lock.Token(), "TryAcquire reports the holder of the key",
			"it reports %q, token %v, want %q, token %v", h.Owner, h.Token, a.Owner(), lock.Token())
	}
	w := e.wait(a).waits(a, e.key, 1)
	e.release(lock)
	e.release(w.granted(e.engine.Soon, "a second Acquire by the holder waits like any other"))
	info := e.inspect(b)
	e.brokenIf(info.Held || info.Key != e.key || info.Token != 0 || info.Grant != "", ruleFree, "Inspect: %+v", info)
	lock = e.takes(b, e.key, ruleFree)
	e.isHeld(a, e.key, ruleOne)
	e.release(lock)
	e.leavesNothing(e.key, e.engine.Soon, ruleFree)
}

// oneHolderAmongMany lets clients compete, and looks for two holders at a time.
func oneHolderAmongMany(e *env) { e.mix(ruleOne, 3, 6, 5, func(int, int) mode { return "w" }) }

// keysAreIndependent takes keys that an engine might confuse, or might not expect.
func keysAreIndependent(e *env) {
	a, b := e.client(), e.client()
	keys := []string{e.longest()}
	for _, key := range []string{
		"a", "A", "a/b", "a%2Fb", "a%b", "a_b", "a b", "ab", "a.b", "aé", "ae\u0301", "a\\b", "a/b/c/d", "...", ".hidden", "ключ/鍵/🔑",
		"100%", "%2F", "a:b?c#d&e=f", "zookeeper", "\uFFFD", "lock-0000000001", "_c_0",
	} {
		keys = append(keys, e.prefix+key)
	}
	var locks []*holdfast.Lock
	for _, key := range keys {
		locks = append(locks, e.takes(a, key, "keys that differ are different locks"))
		e.brokenIf(e.isHeld(b, key, ruleOne).Holder.Key != key, "a valid key comes back unchanged", "%q", key)
	}
	for i, lock := range locks {
		e.isLive(lock, "keys that differ are different locks")
		e.release(lock)
		e.leavesNothing(keys[i], e.engine.Soon, ruleFree)
	}
}

// inspectSaysSinceWhen compares only times that the engine itself reports, whatever its clock shows.
func inspectSaysSinceWhen(e *env) {
	const rule = "Since is when the grant began, and QueuedAt when its holder joined the queue; each is zero if the engine does not know it"
	a, b := e.client(), e.client()
	first := e.hold(a)
	waiting := e.wait(b).waits(a, e.key, 1)
	before := e.inspect(a)
	began := time.Now()
	time.Sleep(e.engine.Lease / 5)
	waited := time.Since(began)
	e.release(first)
	second := waiting.granted(e.handOver(), ruleNext)
	after := e.inspect(a)
	earlier := before.Since
	if len(before.Queue) > 0 {
		earlier = before.Queue[0].Since
		e.brokenIf(!after.QueuedAt.IsZero() && !after.QueuedAt.Equal(earlier), rule,
			"it waited from %v on, but was queued at %v", earlier, after.QueuedAt)
	}
	const rounding = 2 * time.Millisecond
	switch {
	case after.Token != second.Token():
		e.broken("Inspect describes the holder", "token %v, want %v", after.Token, second.Token())
	case after.Since.IsZero():
	case after.Since.Before(after.QueuedAt):
		e.broken(rule, "granted at %v, queued only at %v", after.Since, after.QueuedAt)
	case !earlier.IsZero() && after.Since.Sub(earlier) < waited-rounding:
		e.broken(rule, "%v, which is %v after %v, but it waited for %v more", after.Since, after.Since.Sub(earlier), earlier, waited)
	}
	e.release(second)
}

// inspectSetsEveryField compares the fields of Info, Holder and Waiter that are zero with Engine.Unknown.
func inspectSetsEveryField(e *env) {
	const rule = "Inspect sets every field, except those in Unknown"
	a, b := e.client(), e.client()
	opts := []holdfast.Option{holdfast.WithData([]byte("data"))}
	unset := append([]string{"Stale", "Unfenced"}, e.engine.Unknown...) // of an observer, and of a foreign program
	if e.Shares {
		opts = append(opts, holdfast.WithLimit(1))
	} else {
		unset = append(unset, "Shared", "Limit", "Holders")
	}
	if e.Tokenless {
		unset = append(unset, "Token")
	}
	if !e.Ordered {
		unset = append(unset, "Queue")
	}
	lock := e.hold(a, opts...)
	waiting := e.wait(b, opts...).waits(a, e.key, 1)
	info := e.inspect(a)
	check := func(described any) {
		v := reflect.ValueOf(described)
		for _, field := range reflect.VisibleFields(v.Type()) {
			e.brokenIf(v.FieldByIndex(field.Index).IsZero() != slices.Contains(unset, field.Name), rule, "%s of %+v", field.Name, described)
		}
	}
	check(info)
	for _, h := range info.Holders {
		check(h)
	}
	unset = slices.DeleteFunc(unset, func(name string) bool { return name != "Shared" && name != "Limit" })
	for _, w := range info.Queue {
		check(w)
	}
	e.release(lock)
	e.release(waiting.granted(e.handOver(), ruleNext))
}

func listNamesAllHolders(e *env) {
	const rule = "List yields the keys with a prefix that are held, each once"
	a, b := e.client(), e.client()
	tokens := make(map[string]holdfast.Token)
	for _, key := range []string{"in/1", "in/2", "in/2/3", "in/a b", "in%"} {
		tokens[e.prefix+key] = e.holdKey(a, e.prefix+key).Token()
	}
	e.holdKey(a, "x"+e.prefix+"in/elsewhere")
	released := e.holdKey(a, e.prefix+"in/released")
	e.release(released)
	for prefix, want := range map[string]int{"": 5, "in/": 4, "in/2": 2, "out": 0, "in%": 1} {
		seen := make(map[string]bool)
		for info, err := range b.List(e.soon(), e.prefix+prefix) {
			e.brokenIf(err != nil, rule, "prefix %q: %v", prefix, err)
			if !info.Held {
				continue // a key with waiters only, or a released one: allowed, if not useful
			}
			token, ok := tokens[info.Key]
			e.brokenIf(!ok || seen[info.Key] || info.Token != token, rule, "prefix %q: %+v, want token %v, once", prefix, info, token)
			seen[info.Key] = true
		}
		e.brokenIf(len(seen) != want, rule, "prefix %q: %d keys, want %d", prefix, len(seen), want)
	}
	for range b.List(e.soon(), e.prefix) {
		break // leaving the loop early leaves nothing behind
	}
}
