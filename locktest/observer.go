package locktest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// An observer is a loop over Observe, on a goroutine of its own.
type observer struct {
	e     *env
	ended chan struct{} // closed when the loop has ended
	stop  context.CancelFunc

	mu   sync.Mutex
	told []holdfast.Info
	err  error  // the last pair's
	bad  string // what was told against a rule
}

// observe observes the key of the case until the case ends. each, if not nil, is called by the loop's body.
func (e *env) observe(c *Client, each func(holdfast.Info)) *observer {
	return e.observing(func(ctx context.Context) iter.Seq2[holdfast.Info, error] { return c.Observe(ctx, e.key) }, each)
}

func (e *env) observing(states func(context.Context) iter.Seq2[holdfast.Info, error], each func(holdfast.Info)) *observer {
	ctx, cancel := context.WithCancel(e.ctx)
	o := &observer{e: e, ended: make(chan struct{}), stop: cancel}
	e.Cleanup(func() {
		cancel()
		e.closes(o.ended, e.patience())
	})
	go func() {
		defer close(o.ended)
		for info, err := range states(ctx) {
			o.add(info, err)
			if each != nil && err == nil {
				each(info)
			}
		}
	}()
	return o
}

// add records a pair, and what is wrong with it.
func (o *observer) add(info holdfast.Info, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	complain := func(format string, args ...any) {
		if o.bad == "" {
			o.bad = fmt.Sprintf(format, args...)
		}
	}
	switch {
	case o.err != nil:
		complain("a pair after the error: %+v, %v", info, err)
	case err != nil:
		o.err = err
		if info.Key != "" || info.Held {
			complain("the error comes with %+v", info)
		}
		return
	case info.Key != o.e.key, info.Queue != nil, !info.Held && (info.Owner != "" || info.Token != 0 || info.Grant != ""):
		complain("it is not the state of %q: %+v", o.e.key, info)
	}
	for i, before := range o.told {
		switch {
		case i == len(o.told)-1 && alike(before, info) && before.Stale == info.Stale:
			complain("told twice in a row: %+v", info)
		case !before.Held || !info.Held:
		case before.Token > info.Token:
			complain("token %v after %v", info.Token, before.Token)
		case before.Grant == info.Grant && o.told[len(o.told)-1].Grant != info.Grant:
			complain("a grant has come back that was over: %+v", info)
		}
	}
	o.told = append(o.told, info)
}

// alike reports whether two infos tell the same of the holders.
func alike(a, b holdfast.Info) bool {
	return a.Held == b.Held && slices.EqualFunc(slices.Collect(a.Each()), slices.Collect(b.Each()), func(a, b holdfast.Info) bool {
		return a.Owner == b.Owner && a.Token == b.Token && a.Grant == b.Grant && bytes.Equal(a.Data, b.Data)
	})
}

// all returns what was told so far.
func (o *observer) all() []holdfast.Info {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.e.brokenIf(o.bad != "", "what is told is a state of the key, none is told twice in a row, and tokens rise", "%s", o.bad)
	return o.told
}

// last insists that the state told last becomes one for which a condition holds.
func (o *observer) last(rule string, cond func(holdfast.Info) bool) holdfast.Info {
	var told []holdfast.Info
	if !o.e.eventually(o.e.patience(), func() bool {
		told = o.all()
		return len(told) > 0 && cond(told[len(told)-1])
	}) {
		o.e.broken(rule, "after %v, it has told only %+v", o.e.patience(), told)
	}
	return told[len(told)-1]
}

// stale insists that all that was told after the first n states is a lock, with Stale.
func (o *observer) stale(lock *holdfast.Lock, n int) {
	for _, info := range o.all()[n:] {
		o.e.brokenIf(!info.Stale || info.Token != lock.Token() || info.Owner != lock.Owner(),
			ruleStale, "a client that is cut off was told %+v", info)
	}
}

// free insists that it is told that nobody holds the key.
func (o *observer) free(rule string) {
	o.last(rule, func(i holdfast.Info) bool { return !i.Held && !i.Stale })
}

// holds insists that a lock is told of.
func (o *observer) holds(lock *holdfast.Lock, rule string) holdfast.Info {
	return o.last(rule, func(i holdfast.Info) bool {
		return i.Held && !i.Stale && i.Token == lock.Token() && i.Owner == lock.Owner()
	})
}

// mine acquires the key of the case under an owner name of its own: where there are no tokens,
// nothing else tells two locks of a client apart.
func (e *env) mine(c *Client, opts ...holdfast.Option) *holdfast.Lock {
	return e.hold(c, append(opts, own())...)
}

func own() holdfast.Option { return holdfast.WithOwner(rand.Text()) }

// ends insists that the loop ends within d, in an error.
func (o *observer) ends(d time.Duration, want error) {
	o.e.brokenIf(!o.e.closes(o.ended, d), ruleEnds, "the loop goes on after %v", d)
	o.all()
	o.e.brokenIf(!errors.Is(o.err, want), ruleEnds, "%v, want %v", o.err, want)
}
