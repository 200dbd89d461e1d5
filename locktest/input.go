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
}

// A call is one of the API about a key.
type call func(ctx context.Context, key string, opts options) error

type options = []holdfast.Option

// failed returns the error of a call.
func failed(_ any, err error) error { return err }

// acquisitions are the calls of a client that take options.
func (e *env) acquisitions(a *Client) map[string]call {
	pair := func(key string) []string { return []string{e.prefix + "good", key} }
	one := func(context.Context, *holdfast.Lock) error { return errors.New("the call has a lock") }
	all := func(context.Context, *holdfast.Locks) error { return errors.New("the call has locks") }
	return map[string]call{
		"Acquire":    func(c context.Context, key string, o options) error { return failed(a.Acquire(c, key, o...)) },
		"TryAcquire": func(c context.Context, key string, o options) error { return failed(a.TryAcquire(c, key, o...)) },
		"AcquireAny": func(c context.Context, key string, o options) error { return failed(a.AcquireAny(c, pair(key), o...)) },
		"AcquireAll": func(c context.Context, key string, o options) error { return failed(a.AcquireAll(c, pair(key), o...)) },
		"TryAcquireAll": func(c context.Context, key string, o options) error {
			return failed(a.TryAcquireAll(c, pair(key), o...))
		},
		"Do":    func(c context.Context, key string, o options) error { return a.Do(c, key, one, o...) },
		"TryDo": func(c context.Context, key string, o options) error { return a.TryDo(c, key, one, o...) },
		"DoAll": func(c context.Context, key string, o options) error { return a.DoAll(c, pair(key), all, o...) },
	}
}

// calls are all calls of a client that send something about a key. Break and Ask are about the grant of info.
func (e *env) calls(a *Client, info holdfast.Info) map[string]call {
	calls := e.acquisitions(a)
	of := func(key string) holdfast.Info {
		about := info
		about.Key = key
		return about
	}
	calls["Inspect"] = func(ctx context.Context, key string, _ options) error { return failed(a.Inspect(ctx, key)) }
	calls["Break"] = func(ctx context.Context, key string, _ options) error { return a.Break(ctx, of(key)) }
	calls["Ask"] = func(ctx context.Context, key string, _ options) error { return a.Ask(ctx, of(key)) }
	calls["Observe"] = func(ctx context.Context, key string, _ options) (err error) {
		for _, err = range a.Observe(ctx, key) {
		}
		return err
	}
	return calls
}

// longest is a key of the maximum length, in short elements.
func (e *env) longest() string {
	key := e.prefix + strings.Repeat("0123456789/", holdfast.MaxKey/11+1)
	return key[:holdfast.MaxKey-1] + "x"
}

func invalidKeys(e *env) map[string]string {
	if e.AnyKey {
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

// badKeys tries bad keys on a client that is cut off: the calls fail at once, and send nothing.
func badKeys(e *env) {
	a := e.client()
	e.hold(a)
	info := e.inspect(a)
	a.Cut()
	for what, key := range invalidKeys(e) {
		for name, call := range e.calls(a, info) {
			e.refused(call(e.soon(), key, nil), "key", name+", "+what)
		}
		_, err := a.Election(key, nil)
		e.refused(err, "key", "Election, "+what)
	}
}

func badPrefixes(e *env) {
	a := e.client()
	prefixes := map[string]string{
		"NUL": e.prefix + "\x00", "empty element": "a//", "dots": "a/../", "too long": strings.Repeat("p", holdfast.MaxKey+1),
		"invalid UTF-8": "\xff",
	}
	if e.AnyKey {
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
	opts        options
}

// badOptions tries bad options on a client that is cut off.
func badOptions(e *env) {
	a := e.client()
	e.release(e.hold(a))
	a.Cut()
	owner, large := holdfast.WithOwner("me"), holdfast.WithData(make([]byte, holdfast.MaxSharedData+1))
	bad := []badOption{
		{"negative TTL", "TTL", options{holdfast.WithTTL(-1)}},
		{"wait 0", "wait", options{holdfast.WithWait(0)}},
		{"negative wait", "wait", options{holdfast.WithWait(-time.Second)}},
		{"no owner", "owner", options{holdfast.WithOwner("")}},
		{"long owner", "owner", options{holdfast.WithOwner(strings.Repeat("o", holdfast.MaxOwner+1))}},
		{"NUL in owner", "owner", options{holdfast.WithOwner("a\x00b")}},
		{"owner not UTF-8", "owner", options{holdfast.WithOwner("\xff")}},
		{"reclaim without owner", "owner", options{holdfast.WithReclaim()}},
		{"large data", "data", options{owner, holdfast.WithData(make([]byte, holdfast.MaxData+1))}},
		{"negative attempts", "Retry.Attempts", options{holdfast.WithRetry(holdfast.Retry{Attempts: -1})}},
		{"negative delay", "Retry.Initial", options{holdfast.WithRetry(holdfast.Retry{Initial: -1})}},
		{"negative largest delay", "Retry.Max", options{holdfast.WithRetry(holdfast.Retry{Max: -1})}},
		{"a minimum delay above the maximum", "Retry.Initial", options{holdfast.WithRetry(holdfast.Retry{Initial: 2, Max: 1})}},
		{"negative total", "Retry.Total", options{holdfast.WithRetry(holdfast.Retry{Total: -1})}},
		{"limit 0", "limit", options{holdfast.WithLimit(0)}},
		{"negative limit", "limit", options{holdfast.WithLimit(-1)}},
		{"limit above all", "limit", options{holdfast.WithLimit(holdfast.MaxLimit + 1)}},
		{"semaphore of readers", "limit", options{holdfast.WithLimit(2), holdfast.WithShared()}},
		{"reader with large data", "data", options{holdfast.WithShared(), large}},
		{"permit with large data", "data", options{holdfast.WithLimit(2), large}},
	}
	if !e.Shares {
		bad = append(bad, badOption{"reader", "shared", options{holdfast.WithShared()}})
		bad = append(bad, badOption{"permit", "limit", options{holdfast.WithLimit(holdfast.MaxLimit)}})
	}
	for _, c := range bad {
		for name, call := range e.acquisitions(a) {
			e.refused(call(e.soon(), e.key, c.opts), c.field, name+", "+c.what)
		}
		_, err := a.Election(e.key, &holdfast.ElectionOptions{Candidacy: c.opts})
		e.refused(err, c.field, "Election, "+c.what)
	}
	for field, option := range map[string]holdfast.Option{
		"shared": holdfast.WithShared(), "limit": holdfast.WithLimit(1),
		"random order": holdfast.WithRandomOrder(), "wait": holdfast.WithWait(time.Hour),
	} {
		_, err := a.Election(e.key, &holdfast.ElectionOptions{Candidacy: []holdfast.Option{option}})
		e.refused(err, field, "Election")
	}
}

// badCalls are made on a client that is cut off.
func badCalls(e *env) {
	a, b, lock := e.held(holdfast.WithData([]byte("old")))
	free, err := a.Inspect(e.soon(), e.prefix+"free")
	e.noError(err, ruleAnswers, "Inspect")
	a.Cut()
	ctx := e.soon()
	_, err = a.TryAcquire(ctx, e.key, holdfast.WithWait(time.Second))
	e.refused(err, "wait", "TryAcquire with WithWait")
	_, err = a.TryAcquireAll(ctx, e.keys(2), holdfast.WithWait(time.Second))
	e.refused(err, "wait", "TryAcquireAll with WithWait")
	_, err = a.AcquireAny(ctx, nil)
	e.refused(err, "keys", "AcquireAny of no keys")
	for what, keys := range map[string][]string{"no keys": nil, "equal keys": append(e.keys(2), e.keys(1)...)} {
		_, err = a.AcquireAll(ctx, keys)
		e.refused(err, "keys", "AcquireAll of "+what)
		_, err = a.TryAcquireAll(ctx, keys)
		e.refused(err, "keys", "TryAcquireAll of "+what)
	}
	e.refused(a.Do(ctx, e.key, nil), "fn", "Do without a function")
	e.refused(a.TryDo(ctx, e.key, nil), "fn", "TryDo without a function")
	e.refused(a.DoAll(ctx, e.keys(2), nil), "fn", "DoAll without a function")
	for _, info := range []holdfast.Info{free, {Key: e.key}, {Key: e.key, Held: true, Holder: holdfast.Holder{Owner: "worker"}}} {
		e.refused(a.Break(ctx, info), "info", "Break of nothing")
		e.refused(a.Ask(ctx, info), "info", "Ask of nothing")
	}
	_, err = a.Election(e.key, &holdfast.ElectionOptions{FitEvery: -1})
	e.refused(err, "ElectionOptions.FitEvery", "Election")
	e.refused(e.candidate(a, nil).Run(ctx, nil), "lead", "Run without a function")
	e.refused(lock.Extend(-1), "TTL", "Extend by a negative duration")
	e.refused(lock.SetData(ctx, make([]byte, holdfast.MaxData+1)), "data", "SetData of too much")
	a.Heal()
	e.isLive(lock, "bad input changes nothing")
	e.hasData(b, e.key, "old", "bad input changes nothing")
	e.leavesNothingOf(e.keys(2), e.engine.Soon, "bad input changes nothing")
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
	a, b, named := e.client(), e.client(), e.clientWith(ClientOptions{Owner: "named"})
	e.brokenIf(a.Owner() == "" || a.Owner() == b.Owner(), "the default owner name is unique to a client", "%q and %q", a.Owner(), b.Owner())
	for _, c := range []*Client{a, named} {
		got, told := e.hold(c).Owner(), e.isHeld(b, e.key, ruleOne).Holder.Owner
		e.brokenIf(got != c.Owner() || told != got, "a lock has its client's owner name", "%q, in the engine %q, want %q", got, told, c.Owner())
		e.close(c)
	}
	e.brokenIf(named.Owner() != "named", "a client has the owner name that it is given", "%q", named.Owner())
}
