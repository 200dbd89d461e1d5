package integration_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// observing collects what a client is told of a key, until end is called.
type observing struct {
	mu   sync.Mutex
	told []holdfast.Info
	end  func()
}

func observeKey(t *testing.T, client *zklock.Client, key string) *observing {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	o := &observing{end: func() {
		cancel()
		receive(t, "the loop has ended", ended)
	}}
	go func() {
		defer close(ended)
		for info, err := range client.Observe(ctx, key) {
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("Observe: %v", err)
				}
				return
			}
			o.mu.Lock()
			o.told = append(o.told, info)
			o.mu.Unlock()
		}
	}()
	return o
}

func (o *observing) all() []holdfast.Info {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.told
}

// last waits until the state told last has a token; 0 stands for nobody.
func (o *observing) last(t *testing.T, token holdfast.Token) holdfast.Info {
	t.Helper()
	var told []holdfast.Info
	if !becomes(func() bool {
		told = o.all()
		return len(told) > 0 && told[len(told)-1].Token == token
	}) {
		verdict.Fatalf(t, "never told of %v, only of %+v", token, told)
	}
	return told[len(told)-1]
}

// wireCost counts what goes over the wire: events, reads, and other requests, without what keeps the session alive.
func wireCost(p *faultproxy.Proxy) (events, reads, lists, others int) {
	events = p.CountKind(faultproxy.ToClient, faultproxy.KindWatchEvent)
	reads = p.Count(faultproxy.ToServer, faultproxy.OpGetData)
	lists = p.Count(faultproxy.ToServer, faultproxy.OpGetChildren2)
	others = p.CountKind(faultproxy.ToServer, faultproxy.KindRequest) - reads - lists - p.Count(faultproxy.ToServer, faultproxy.OpSync)
	return events, reads, lists, others
}

// TestObserveCosts: 1,000 observers in one client have one watch, and a change costs one event and two reads, in a
// queue of any length.
func TestObserveCosts(t *testing.T) {
	play(t, &zklock.Options{SessionTimeout: longest}, func(t *testing.T, s *scene) {
		const observers, waiters = 1000, 20
		s.prepare(t)
		s.proxy.ResetCounts()
		all := make([]*observing, observers)
		for i := range all {
			all[i] = observeKey(t, s.client, s.key)
		}
		told := func(token holdfast.Token) {
			t.Helper()
			for _, o := range all {
				o.last(t, token)
			}
		}
		changes := func(what string, lists, reads int, token holdfast.Token) {
			t.Helper()
			told(token)
			must(t, errOf(s.client.Conn().Sync(s.parent)))
			if e, r, l, o := wireCost(s.proxy); e != 1 || r != reads || l != lists || o > 0 {
				t.Errorf("%s: %d events, %d reads, %d lists, %d others; want 1, %d, %d, 0", what, e, r, l, o, reads, lists)
			}
			s.proxy.ResetCounts()
		}
		told(0)
		if e, r, l, o := wireCost(s.proxy); e > 0 || r > 0 || l != 2 || o > 0 {
			t.Errorf("to begin with: %d events, %d reads, %d lists, %d others; want 2 lists", e, r, l, o)
		}
		s.proxy.ResetCounts()
		other := s.other(t)
		lock := take(t, other, s.key)
		changes("the first holder", 1, 1, lock.Token())
		if node := nodeOf(t, other, lock); !slices.Contains(s.watches(t, node)[node], s.client.Conn().SessionID()) {
			t.Errorf("the holder's node is watched by %v", s.watches(t, node)[node])
		}
		ctx, cancel := context.WithCancel(t.Context())
		granted := make(chan *holdfast.Lock, waiters)
		for range waiters {
			go func() {
				if lock, err := other.Acquire(ctx, s.key); err == nil {
					granted <- lock
				}
			}()
		}
		holds(t, s.conn, s.parent, waiters+1)
		must(t, errOf(s.client.Conn().Sync(s.parent)))
		if e, r, l, o := wireCost(s.proxy); e+r+l+o > 0 {
			t.Errorf("%d who come to wait cost %d events, %d reads, %d lists, %d others", waiters, e, r, l, o)
		}
		for range 3 {
			release(t, lock)
			lock = receive(t, "a grant", granted)
			changes("a hand-off", 1, 1, lock.Token())
		}
		cancel()
		holds(t, s.conn, s.parent, 1)
		release(t, lock)
		changes("nobody", 2, 0, 0)
		for _, o := range all {
			o.end()
		}
		// What is left is one watch, which serves the next observer.
		s.proxy.ResetCounts()
		for range 3 {
			o := observeKey(t, s.client, s.key)
			o.last(t, 0)
			o.end()
		}
		if e, r, l, o := wireCost(s.proxy); e > 0 || r > 0 || l != 3 || o > 0 {
			t.Errorf("3 observers later: %d events, %d reads, %d lists, %d others; want 3 lists", e, r, l, o)
		}
		release(t, take(t, other, s.key))
		s.clean(t)
	})
}

// TestObserveMakesNoParent: a key that is only observed does not exist, also while its parent comes and goes.
func TestObserveMakesNoParent(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		o := observeKey(t, s.client, s.key)
		o.last(t, 0)
		if exists, _, err := s.conn.Exists(s.parent); err != nil || exists {
			t.Fatalf("the parent exists: %v, %v", exists, err)
		}
		other := s.other(t)
		for range 3 {
			lock := take(t, other, s.key)
			o.last(t, lock.Token())
			release(t, lock)
			o.last(t, 0)
			must(t, s.conn.Delete(s.parent, -1))
		}
		if told := o.all(); len(told) != 7 {
			t.Errorf("told %+v", told)
		}
		o.end()
	})
}

// TestObserveForeignHolders: who holds the key is who Inspect says, in whatever form, and children that are no
// contenders are nobody. Data that somebody writes to the holder's node are told.
func TestObserveForeignHolders(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		s.prepare(t)
		o := observeKey(t, s.client, s.key)
		o.last(t, 0)
		create := func(name string, data string, flags int32) (string, holdfast.Token) {
			t.Helper()
			path, err := s.conn.Create(s.parent+"/"+name, []byte(data), flags, zk.WorldACL(zk.PermAll))
			must(t, err)
			_, stat, err := s.conn.Get(path)
			must(t, err)
			return path, holdfast.Token(stat.Czxid)
		}
		stranger, _ := create("not-a-lock", "x", 0)
		kazoo, first := create("0123456789abcdef0123456789abcdef__lock__", "kazoo", zk.FlagEphemeral|zk.FlagSequence)
		if info := o.last(t, first); info.Owner != "kazoo" {
			t.Errorf("told %+v", info)
		}
		must(t, errOf(s.conn.Set(kazoo, []byte("kazoo\x00moved"), -1)))
		eventually(t, "new data are told", func() bool { told := o.all(); return string(told[len(told)-1].Data) == "moved" })
		_, second := create("_c_00000000-0000-4000-8000-000000000000-lock-", "curator", zk.FlagEphemeral|zk.FlagSequence)
		s.delete(t, stranger)
		s.delete(t, kazoo)
		if info := o.last(t, second); info.Owner != "curator" {
			t.Errorf("told %+v", info)
		}
		o.end()
	})
}

// TestObserveGoesOn: what has changed while the client was away is told when it is back, on the same session or the
// next one, whatever is told of watches.
func TestObserveGoesOn(t *testing.T) {
	for name, away := range map[string]func(t *testing.T, s *scene, change func()){
		"reconnection": func(t *testing.T, s *scene, change func()) {
			s.proxy.RefuseNew()
			s.proxy.Drop()
			change()
			must(t, s.proxy.Heal())
		},
		"expiry": func(_ *testing.T, s *scene, change func()) {
			change()
			s.expire()
		},
		"expiry before": func(_ *testing.T, s *scene, change func()) {
			s.expire()
			change()
		},
		"lost event": func(t *testing.T, s *scene, change func()) {
			lost := make(chan struct{}, 100)
			s.proxy.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
				if f.Kind == faultproxy.KindWatchEvent {
					lost <- struct{}{}
					return faultproxy.DropFrame
				}
				return faultproxy.Pass
			})
			change()
			receive(t, "the event", lost)
			must(t, errOf(s.client.Conn().Sync(s.parent))) // a later zxid has been seen: nothing is reported again
			s.proxy.SetFilter(nil)
			s.reconnects(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				other := s.other(t)
				o := observeKey(t, s.client, s.key)
				o.last(t, 0)
				var lock *holdfast.Lock
				away(t, s, func() { lock = take(t, other, s.key) })
				o.last(t, lock.Token())
				away(t, s, func() {
					release(t, lock)
					lock = take(t, other, s.key)
				})
				o.last(t, lock.Token())
				path := nodeOf(t, other, lock)
				away(t, s, func() { must(t, errOf(s.conn.Set(path, []byte("new owner"), -1))) })
				eventually(t, "what was written is told", func() bool { told := o.all(); return told[len(told)-1].Owner == "new owner" })
				away(t, s, func() { release(t, lock) })
				o.last(t, 0)
				o.end()
			})
		})
	}
}

// TestObserveStaleServer: a holder whom only the client's server still shows is not told of for ever.
func TestObserveStaleServer(t *testing.T) {
	start(t)
	e := zkserver.NewEnsemble(t, zkserver.Config{Controlled: true, MaxSessionTimeout: longest})
	_, followers := leaderAndFollowers(t, e)
	p := &staleEnsemble{ensemble: e, server: followers[0]}
	o := observeKey(t, p.client(t, "observed"), "observed")
	o.last(t, 0)
	o.end()
}
