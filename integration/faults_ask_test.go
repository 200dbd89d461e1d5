package integration_test

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/zklock"
)

// asks has a client ask for the lock of a key, and returns what it asked for.
func asks(t *testing.T, client *zklock.Client, key string) holdfast.Info {
	t.Helper()
	info, err := client.Inspect(limited(t), key)
	must(t, err)
	must(t, client.Ask(limited(t), info))
	return info
}

// Z37. A holder hears of a write to its node and, when it looks again, finds it gone: the write was half of a reclaim.
func TestAskThenReclaim(t *testing.T) {
	t.Parallel()
	for name, asked := range map[string]bool{"asked": true, "not asked": false} {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				other := s.other(t)
				lock := s.take(t, holdfast.WithOwner("worker"))
				s.reads(t, 1)
				events := s.client.Events()
				again, pass := s.proxy.HoldRequest(faultproxy.OpGetData, nodeOf(t, s.client, lock))
				defer pass()
				if asked {
					asks(t, other, s.key)
				}
				next := acquiring(limited(t), other, s.key, holdfast.WithOwner("worker"), holdfast.WithReclaim())
				receive(t, "look at the own node", again)
				pass()
				lostTo(t, lock, events, holdfast.ErrReclaimed)
				release(t, granted(t, next))
				s.clean(t)
			})
		})
	}
}

// Z38. A holder is asked before it has read its node for the first time, or before it has read it again, whoever asks and
// in whatever words; or while it is cut off.
func TestAskedBeforeTheFirstRead(t *testing.T) {
	t.Parallel()
	for words, ask := range map[string]func(t *testing.T, s *scene, node string){
		"Ask":     func(t *testing.T, s *scene, _ string) { asks(t, s.other(t), s.key) },
		"Revoker": func(t *testing.T, s *scene, node string) { must(t, errOf(s.conn.Set(node, []byte("__REVOKE__"), -1))) },
	} {
		for _, when := range []string{"before the first read", "later", "while it is cut off"} {
			t.Run(words+" "+when, func(t *testing.T) {
				play(t, nil, func(t *testing.T, s *scene) {
					first, pass := s.proxy.HoldRequest(faultproxy.OpGetData, s.parent)
					defer pass()
					lock := s.take(t, holdfast.WithData([]byte("data")))
					node := nodeOf(t, s.client, lock)
					receive(t, "first read", first)
					if when != "before the first read" {
						pass()
						s.reads(t, 1)
					}
					if when == "while it is cut off" {
						reconnecting, reconnect := s.proxy.HoldRequest(faultproxy.OpConnect, "")
						s.proxy.Drop()
						receive(t, "reconnection", reconnecting)
						ask(t, s, node)
						silent(t, "Asked", lock.Asked())
						reconnect()
					} else {
						ask(t, s, node)
					}
					pass()
					receive(t, "Asked", lock.Asked())
					must(t, lock.Verify(limited(t)))
					release(t, lock)
					s.clean(t)
				})
			})
		}
	}
}

// SetData keeps the wish that is in the node, whoever wrote it: others that look see that the holder was asked.
func TestSetDataKeepsTheWish(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		lock := s.take(t, holdfast.WithOwner("worker"))
		node := nodeOf(t, s.client, lock)
		for i, ask := range []func(){
			func() { asks(t, s.other(t), s.key) },
			func() { must(t, errOf(s.conn.Set(node, []byte("__REVOKE__"), -1))) },
		} {
			ask()
			must(t, lock.SetData(limited(t), []byte("new")))
			receive(t, "Asked", lock.Asked())
			data, _, err := s.conn.Get(node)
			must(t, err)
			if string(data) != "worker\x00new\x00__REVOKE__" {
				t.Errorf("%d: the node has %q", i, data)
			}
		}
		if err := lock.SetData(limited(t), []byte("__REVOKE__")); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("SetData: %v, want ErrInvalid", err)
		}
		release(t, lock)
		s.clean(t)
	})
}

// Data and owner names that would read as a wish are refused before anything is sent.
func TestDataThatIsAWish(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		for _, opts := range [][]holdfast.Option{
			{holdfast.WithData([]byte("__REVOKE__"))},
			{holdfast.WithData([]byte("data\x00__REVOKE__"))},
			{holdfast.WithOwner("__REVOKE__")},
		} {
			if _, err := s.client.TryAcquire(limited(t), s.key, opts...); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("TryAcquire: %v, want ErrInvalid", err)
			}
		}
		for _, opts := range [][]holdfast.Option{
			{holdfast.WithData([]byte("__REVOKE__ "))},
			{holdfast.WithOwner("__REVOKE__"), holdfast.WithData([]byte("data"))},
		} {
			lock := s.take(t, opts...)
			release(t, lock)
		}
	})
}
