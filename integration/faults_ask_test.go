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

// Z37. A holder hears of a write to its node and, when it looks again, finds it gone. The write was half of a reclaim, or
// it was an ask, and a break came before the holder looked.
func TestAskThenBreak(t *testing.T) {
	t.Parallel()
	reclaims := []holdfast.Option{holdfast.WithOwner("worker"), holdfast.WithReclaim()}
	for name, test := range map[string]struct {
		end  func(t *testing.T, s *scene, other *zklock.Client) (next <-chan outcome)
		want error
	}{
		"asked, broken": {func(t *testing.T, s *scene, other *zklock.Client) <-chan outcome {
			must(t, other.Break(limited(t), asks(t, other, s.key)))
			return acquiring(limited(t), other, s.key, holdfast.WithOwner("worker"))
		}, holdfast.ErrBroken},
		"asked, broken, a place of its own client reclaims": {func(t *testing.T, s *scene, other *zklock.Client) <-chan outcome {
			must(t, other.Break(limited(t), asks(t, other, s.key)))
			return nil
		}, holdfast.ErrBroken},
		"asked, reclaimed": {func(t *testing.T, s *scene, other *zklock.Client) <-chan outcome {
			asks(t, other, s.key)
			return acquiring(limited(t), other, s.key, reclaims...)
		}, holdfast.ErrReclaimed},
		"reclaimed": {func(t *testing.T, s *scene, other *zklock.Client) <-chan outcome {
			return acquiring(limited(t), other, s.key, reclaims...)
		}, holdfast.ErrReclaimed},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				other := s.other(t)
				lock := s.take(t, holdfast.WithOwner("worker"))
				s.reads(t, 1)
				node := nodeOf(t, s.client, lock)
				second := (<-chan outcome)(nil)
				if name == "asked, broken, a place of its own client reclaims" {
					// A live lock of the same client and name would be an error, so the waiter has been there for longer.
					release(t, lock)
					stranger := take(t, other, s.key)
					first := s.acquiring(limited(t), holdfast.WithOwner("worker"))
					holds(t, s.conn, s.parent, 2)
					second = s.acquiring(limited(t), reclaims...)
					holds(t, s.conn, s.parent, 3)
					release(t, stranger)
					lock = granted(t, first)
					node = nodeOf(t, s.client, lock)
				}
				events := s.client.Events()
				again, pass := s.proxy.HoldRequest(faultproxy.OpGetData, node)
				defer pass()
				next := test.end(t, s, other)
				receive(t, "look at the own node", again)
				if second != nil {
					next = second
				}
				pass()
				lostTo(t, lock, events, test.want)
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
		"Ask":       func(t *testing.T, s *scene, _ string) { asks(t, s.other(t), s.key) },
		"Revoker":   func(t *testing.T, s *scene, node string) { must(t, errOf(s.conn.Set(node, []byte("__REVOKE__"), -1))) },
		"ZooKeeper": func(t *testing.T, s *scene, node string) { must(t, errOf(s.conn.Set(node, []byte("unlock"), -1))) },
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

// A holder's node whose data the Revoker has overwritten is still found by WithReclaim, and shows no wrong owner.
func TestReclaimAfterTheRevoker(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		options := []holdfast.Option{holdfast.WithOwner("worker"), holdfast.WithReclaim()}
		lock := s.take(t, options...)
		node := nodeOf(t, s.client, lock)
		must(t, errOf(s.conn.Set(node, []byte("__REVOKE__"), -1)))
		receive(t, "Asked", lock.Asked())
		other := s.other(t)
		info, err := other.Inspect(limited(t), s.key)
		must(t, err)
		if info.Owner != "" || len(info.Data) > 0 || info.Token != lock.Token() {
			t.Errorf("Inspect returns %+v", info)
		}
		var held *holdfast.HeldError
		if _, err := other.TryAcquire(limited(t), s.key, holdfast.WithOwner("worker2"), holdfast.WithReclaim()); !errors.As(err, &held) {
			t.Errorf("TryAcquire under another name: %v", err)
		}
		events := s.client.Events()
		next, err := other.TryAcquire(limited(t), s.key, options...)
		must(t, err)
		lostTo(t, lock, events, holdfast.ErrReclaimed)
		release(t, next)
		s.clean(t)
	})
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
			{holdfast.WithOwner("unlock")},
			{holdfast.WithOwner("__REVOKE__"), holdfast.WithData([]byte("data"))},
		} {
			lock := s.take(t, opts...)
			release(t, lock)
		}
	})
}
