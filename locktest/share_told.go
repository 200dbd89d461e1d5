package locktest

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
)

func allHoldersTold(e *env) {
	_, locks := e.readers(3)
	probe := e.client()
	e.noError(locks[1].SetData(e.soon(), []byte("new")), "SetData replaces the data of one shared hold")
	want := []string{"reader0 data0", "reader1 new", "reader2 data2"}
	check := func(info holdfast.Info, call string) {
		e.Helper()
		var got []string
		for i, h := range info.Holders {
			got = append(got, h.Owner+" "+string(h.Data))
			if i < len(locks) && (h.Token != locks[i].Token() || h.Grant == "") {
				e.broken(ruleAll, "%s: grant %q has token %v, the lock %v", call, h.Grant, h.Token, locks[i].Token())
			}
		}
		e.brokenIf(!slices.Equal(got, want), ruleAll, "%s: %q, want %q", call, got, want)
		first := info.Holders[0]
		e.brokenIf(!info.Held || !info.Shared || info.Limit != 0 || info.Owner != first.Owner || info.Token != first.Token ||
			info.Grant != first.Grant || string(info.Data) != string(first.Data), "an Info describes the oldest grant", "%s: %+v", call, info)
	}
	check(e.inspect(probe), "Inspect")
	for info, err := range probe.List(e.soon(), e.key) {
		e.noError(err, ruleAll, "List")
		check(info, "List")
	}
	check(e.isHeld(probe, e.key, ruleExclude).Holder, "HeldError")

	grants := slices.Collect(e.inspect(probe).Each())
	e.noError(probe.Ask(e.soon(), grants[2]), "Ask reaches the grant that it is given")
	e.brokenIf(!e.closes(locks[2].Asked(), e.engine.Notice),
		"Ask reaches the grant that it is given", "Asked is open after %v", e.engine.Notice)
	e.brokenIf(isClosed(locks[0].Asked()) || isClosed(locks[1].Asked()), "Ask reaches no other grant", "another was asked")
	e.areLive(locks, "an ask ends nothing")
	e.noError(probe.Break(e.soon(), e.inspect(probe)), "Break of a key that is shared ends the oldest grant")
	e.ends(locks[0], e.engine.Notice, "Break of a key that is shared ends the oldest grant", holdfast.ErrBroken)
	e.areLive(locks[1:], ruleOthers)
	for _, lock := range locks[1:] {
		e.release(lock)
	}
	if info := e.inspect(probe); info.Held && info.Owner != "reader0" {
		e.broken(ruleAll, "after all have left: %+v", info)
	}
}

func eachSharerIsTold(e *env) {
	a, b := e.client(), e.client()
	var now atomic.Value
	ctx, cancel := context.WithCancel(e.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for info, err := range b.Observe(ctx, e.key) {
			var owners []string
			for grant := range info.Each() {
				owners = append(owners, grant.Owner+string(grant.Data))
			}
			if err == nil {
				now.Store(owners)
			}
		}
	}()
	defer func() { cancel(); <-ended }()
	tells := func(want ...string) {
		e.Helper()
		if !e.eventually(e.engine.Notice+e.engine.Soon, func() bool {
			owners, ok := now.Load().([]string)
			return ok && slices.Equal(owners, want)
		}) {
			e.broken("Observe tells of each who shares a key", "it told %q last, want %q", now.Load(), want)
		}
	}
	tells()
	one := e.reader(a, holdfast.WithOwner("one"))
	tells("one")
	two := e.reader(a, holdfast.WithOwner("two"))
	tells("one", "two")
	three := e.reader(b, holdfast.WithOwner("three"))
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
