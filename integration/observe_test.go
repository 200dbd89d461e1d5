package integration_test

import (
	"context"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
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
