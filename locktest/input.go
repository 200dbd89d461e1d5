package locktest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

var inputCases = []testCase{
	{"G12_BadKeys", badKeys},
	{"G12_BadPrefixes", badPrefixes},
	{"G12_BadOptions", badOptions},
	{"G12_BadCalls", badCalls},
	{"G12_LargestWorks", largestWorks},
	{"G12_DefaultOwnersDiffer", defaultOwnersDiffer},
	{"G12_BadSharing", badSharing},
}

// longest is a key of the maximum length, in short elements.
func (e *env) longest() string {
	key := e.prefix + strings.Repeat("0123456789/", holdfast.MaxKey/11+1)
	return key[:holdfast.MaxKey-1] + "x"
}

func invalidKeys(e *env) map[string]string {
	if e.engine.AnyKey {
		return map[string]string{
			"empty": "", "10 kB": e.prefix + strings.Repeat("k", 10_000), "invalid UTF-8": e.prefix + "a\xffb",
		}
	}
	return map[string]string{
		"empty":               "",
		"NUL":                 e.prefix + "a\x00b",
		"newline":             e.prefix + "a\nb",
		"DEL":                 e.prefix + "a\x7fb",
		"C1 control":          e.prefix + "a\u0085b",
		"dot":                 ".",
		"dots":                "..",
		"dot element":         e.prefix + "./a",
		"dots element":        e.prefix + "a/..",
		"only slashes":        "///",
		"empty element":       e.prefix + "a//b",
		"trailing slash":      e.prefix + "a/",
		"10 kB":               e.prefix + strings.Repeat("k", 10_000),
		"one byte too many":   e.longest() + "x",
		"invalid UTF-8":       e.prefix + "a\xffb",
		"surrogate, encoded":  e.prefix + "\xed\xa0\x80",
		"truncated character": e.prefix + "\xe2\x82",
	}
}

// refused insists on an InvalidError that names the field.
func (e *env) refused(err error, field, what string) {
	const rule = "bad input is refused with an error that matches ErrInvalid and names the field and the limit"
	var invalid *holdfast.InvalidError
	e.brokenIf(!errors.Is(err, holdfast.ErrInvalid) || !errors.As(err, &invalid), rule, "%s: %v", what, err)
	e.brokenIf(invalid.Field != field || invalid.Reason == "",
		rule, "%s: field %q, want %q; reason %q", what, invalid.Field, field, invalid.Reason)
	n := len(err.Error())
	e.brokenIf(n > 4*holdfast.MaxKey, "an error about a key of any size is readable", "%s: it has %d bytes", what, n)
}

// badKeys tries bad keys on a client that is cut off: they are refused at once, and nothing is sent.
func badKeys(e *env) {
	a := e.client()
	e.release(e.hold(a))
	a.Cut()
	for what, key := range invalidKeys(e) {
		_, err := a.Acquire(e.soon(), key)
		e.refused(err, "key", "Acquire, "+what)
		_, err = a.TryAcquire(e.soon(), key)
		e.refused(err, "key", "TryAcquire, "+what)
		_, err = a.AcquireAny(e.soon(), []string{e.key, key})
		e.refused(err, "key", "AcquireAny, "+what)
		_, err = a.Inspect(e.soon(), key)
		e.refused(err, "key", "Inspect, "+what)
		err = a.Break(e.soon(), holdfast.Info{Key: key, Held: true, Holder: holdfast.Holder{Grant: "1"}})
		e.refused(err, "key", "Break, "+what)
		err = a.Ask(e.soon(), holdfast.Info{Key: key, Held: true, Holder: holdfast.Holder{Grant: "1"}})
		e.refused(err, "key", "Ask, "+what)
		err = a.Do(e.soon(), key, func(context.Context, *holdfast.Lock) error { return nil })
		e.refused(err, "key", "Do, "+what)
		err = nil
		for _, err = range a.Observe(e.soon(), key) {
		}
		e.refused(err, "key", "Observe, "+what)
	}
}

func badPrefixes(e *env) {
	a := e.client()
	prefixes := map[string]string{
		"NUL": e.prefix + "\x00", "empty element": "a//", "dots": "a/../", "too long": strings.Repeat("p", holdfast.MaxKey+1),
		"invalid UTF-8": "\xff",
	}
	if e.engine.AnyKey {
		prefixes = map[string]string{"too long": strings.Repeat("p", 10_000), "invalid UTF-8": "\xff"}
	}
	for what, prefix := range prefixes {
		n := 0
		for _, err := range a.List(e.soon(), prefix) {
			n++
			e.refused(err, "prefix", "List, "+what)
		}
		e.brokenIf(n != 1, "List yields its error once, and last", "%s: %d pairs", what, n)
	}
}

type badOption struct {
	what, field string
	opts        []holdfast.Option
}

func badOptions(e *env) {
	a := e.client()
	e.release(e.hold(a))
	a.Cut()
	owner := holdfast.WithOwner("me")
	for _, bad := range []badOption{
		{"negative TTL", "TTL", []holdfast.Option{holdfast.WithTTL(-1)}},
		{"wait 0", "wait", []holdfast.Option{holdfast.WithWait(0)}},
		{"negative wait", "wait", []holdfast.Option{holdfast.WithWait(-time.Second)}},
		{"no owner", "owner", []holdfast.Option{holdfast.WithOwner("")}},
		{"long owner", "owner", []holdfast.Option{holdfast.WithOwner(strings.Repeat("o", holdfast.MaxOwner+1))}},
		{"NUL in owner", "owner", []holdfast.Option{holdfast.WithOwner("a\x00b")}},
		{"owner not UTF-8", "owner", []holdfast.Option{holdfast.WithOwner("\xff")}},
		{"reclaim without owner", "owner", []holdfast.Option{holdfast.WithReclaim()}},
		{"large data", "data", []holdfast.Option{owner, holdfast.WithData(make([]byte, holdfast.MaxData+1))}},
		{"negative attempts", "Retry.Attempts", []holdfast.Option{holdfast.WithRetry(holdfast.Retry{Attempts: -1})}},
		{"negative delay", "Retry.Initial", []holdfast.Option{holdfast.WithRetry(holdfast.Retry{Initial: -1})}},
		{"negative largest delay", "Retry.Max", []holdfast.Option{holdfast.WithRetry(holdfast.Retry{Max: -1})}},
		{"a minimum delay above the maximum", "Retry.Initial", []holdfast.Option{holdfast.WithRetry(holdfast.Retry{Initial: 2, Max: 1})}},
		{"negative total", "Retry.Total", []holdfast.Option{holdfast.WithRetry(holdfast.Retry{Total: -1})}},
	} {
		_, err := a.Acquire(e.soon(), e.key, bad.opts...)
		e.refused(err, bad.field, "Acquire, "+bad.what)
		_, err = a.AcquireAny(e.soon(), []string{e.key}, bad.opts...)
		e.refused(err, bad.field, "AcquireAny, "+bad.what)
	}
}

func badCalls(e *env) {
	a := e.client()
	lock := e.hold(a)
	_, err := a.TryAcquire(e.soon(), e.key, holdfast.WithWait(time.Second))
	e.refused(err, "wait", "TryAcquire with WithWait")
	_, err = a.AcquireAny(e.soon(), nil)
	e.refused(err, "keys", "AcquireAny of no keys")
	e.refused(a.Do(e.soon(), e.prefix+"other", nil), "fn", "Do without a function")
	e.refused(a.TryDo(e.soon(), e.prefix+"other", nil), "fn", "TryDo without a function")
	e.refused(a.Break(e.soon(), holdfast.Info{Key: e.key}), "info", "Break of nothing")
	e.refused(a.Ask(e.soon(), holdfast.Info{Key: e.key}), "info", "Ask of nothing")
	e.refused(lock.Extend(-1), "TTL", "Extend by a negative duration")
	e.isLive(lock, "bad input changes nothing")
}

func largestWorks(e *env) {
	a, b := e.client(), e.client()
	data, owner := strings.Repeat("\x00\xff", holdfast.MaxData/2), strings.Repeat("é", holdfast.MaxOwner/2)
	lock := e.hold(a, holdfast.WithData([]byte(data)), holdfast.WithOwner(owner), nil)
	info := e.inspect(b)
	e.brokenIf(string(info.Data) != data || info.Owner != owner,
		"data and owner of the largest size come back unchanged", "%d bytes, %q", len(info.Data), info.Owner)
	e.release(lock)
}

func defaultOwnersDiffer(e *env) {
	a, b := e.client(), e.client()
	e.brokenIf(a.Owner() == "" || a.Owner() == b.Owner(),
		"the default owner name is unique to a client", "%q and %q", a.Owner(), b.Owner())
	if got := e.hold(a).Owner(); got != a.Owner() {
		e.broken("a lock has its client's owner name, unless WithOwner sets another", "%q, want %q", got, a.Owner())
	}
	named := e.clientWith(ClientOptions{Owner: "named"})
	if got := e.holdKey(named, e.prefix+"named").Owner(); got != "named" {
		e.broken("a lock has its client's owner name, unless WithOwner sets another", "%q, want %q", got, "named")
	}
	holder := e.isHeld(b, e.prefix+"named", ruleOne).Holder
	e.brokenIf(holder.Owner != "named", "the engine knows the owner of a lock", "%q, want %q", holder.Owner, "named")
}

// badSharing asks a client that is cut off to share a key in ways that make no sense, or at all where the engine
// cannot.
func badSharing(e *env) {
	a := e.client()
	e.release(e.hold(a))
	a.Cut()
	large := holdfast.WithData(make([]byte, holdfast.MaxSharedData+1))
	bad := []badOption{
		{"limit 0", "limit", []holdfast.Option{holdfast.WithLimit(0)}},
		{"negative limit", "limit", []holdfast.Option{holdfast.WithLimit(-1)}},
		{"limit above all", "limit", []holdfast.Option{holdfast.WithLimit(holdfast.MaxLimit + 1)}},
		{"semaphore of readers", "limit", []holdfast.Option{holdfast.WithLimit(2), holdfast.WithShared()}},
		{"reader with large data", "data", []holdfast.Option{holdfast.WithShared(), large}},
		{"permit with large data", "data", []holdfast.Option{holdfast.WithLimit(2), large}},
	}
	if !e.engine.Shares {
		bad = append(bad, badOption{"reader", "shared", []holdfast.Option{holdfast.WithShared()}})
		bad = append(bad, badOption{"permit", "limit", []holdfast.Option{holdfast.WithLimit(holdfast.MaxLimit)}})
	}
	for _, c := range bad {
		_, err := a.Acquire(e.soon(), e.key, c.opts...)
		e.refused(err, c.field, "Acquire, "+c.what)
		_, err = a.AcquireAll(e.soon(), []string{e.key}, c.opts...)
		e.refused(err, c.field, "AcquireAll, "+c.what)
		_, err = a.Election(e.key, &holdfast.ElectionOptions{Candidacy: c.opts})
		e.refused(err, c.field, "Election, "+c.what)
	}
	for field, option := range map[string]holdfast.Option{"shared": holdfast.WithShared(), "limit": holdfast.WithLimit(1)} {
		_, err := a.Election(e.key, &holdfast.ElectionOptions{Candidacy: []holdfast.Option{option}})
		e.refused(err, field, "Election of several")
	}
}
