package integration_test

import (
	"path"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/zklock"
)

// Z46. Where locks and permits meet, whoever came later is refused, but is there for a moment: nobody is told that it
// holds the key.
func TestWhoHoldsWhereKindsMeet(t *testing.T) {
	t.Parallel()
	const ephemeral = zk.FlagEphemeral | zk.FlagSequence
	tells := func(t *testing.T, s *scene, when string, holders int, token holdfast.Token) {
		t.Helper()
		told := observeKey(t, s.client, s.key)
		defer told.end()
		inspected, err := s.client.Inspect(limited(t), s.key)
		must(t, err)
		for what, info := range map[string]holdfast.Info{"Observe": told.last(t, token), "Inspect": inspected} {
			n := 0
			for range info.Each() {
				n++
			}
			if info.Token != token || n != holders {
				t.Errorf("%s: %s tells of %d holders, the first with token %d; want %d, %d: %+v", when, what, n, info.Token, holders, token, info)
			}
		}
	}
	t.Run("a lease comes to a lock", func(t *testing.T) {
		play(t, nil, func(t *testing.T, s *scene) {
			release(t, s.take(t, holdfast.WithLimit(2)))
			lock := s.take(t)
			lease := s.create(t, handLease, ephemeral)
			tells(t, s, "a lease after a lock", 1, lock.Token())
			s.delete(t, lease)
			release(t, lock)
		})
	})
	t.Run("a lock comes to a permit", func(t *testing.T) {
		play(t, nil, func(t *testing.T, s *scene) {
			permit := s.take(t, holdfast.WithLimit(2))
			lock := s.create(t, handWriter, ephemeral)
			tells(t, s, "a lock after a permit", 1, permit.Token())
			lease := s.create(t, handLease, ephemeral)
			tells(t, s, "and a lease after the lock", 1, permit.Token())

			told := observeKey(t, s.client, s.key)
			told.last(t, permit.Token())
			s.delete(t, lock) // if the lease looks now, it is a permit
			eventually(t, "Observe tells of both", func() bool { return len(told.last(t, permit.Token()).Holders) == 2 })
			told.end()
			s.delete(t, lease)
			release(t, permit)
		})
	})
	for what, look := range map[string]func(*testing.T, *scene) []holdfast.Info{
		"Inspect": func(t *testing.T, s *scene) []holdfast.Info {
			info, err := s.client.Inspect(limited(t), s.key)
			must(t, err)
			return []holdfast.Info{info}
		},
		"Observe": func(t *testing.T, s *scene) []holdfast.Info {
			told := observeKey(t, s.client, s.key)
			defer told.end()
			eventually(t, "a state is told", func() bool { return len(told.all()) > 0 })
			return told.all()
		},
	} {
		t.Run("a lock comes, and then a lease, while somebody looks/"+what, func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				s.used(t, 2)
				hit, letGo := s.proxy.HoldRequest(faultproxy.OpGetChildren2, s.parent+"/leases")
				var told []holdfast.Info
				done := make(chan struct{})
				go func() {
					defer close(done)
					told = look(t, s)
				}()
				receive(t, "the leases are listed", hit)
				s.create(t, handWriter, ephemeral)
				_, lease, err := s.conn.Exists(s.create(t, handLease, ephemeral))
				must(t, err)
				letGo()
				receive(t, "it has looked", done)
				for _, info := range told {
					if info.Token == holdfast.Token(lease.Czxid) {
						t.Errorf("it is told of a lease that a lock was before: %+v", info)
					}
				}
			})
		})
	}
	t.Run("a lease comes, and then a lock, while somebody looks", func(t *testing.T) {
		play(t, nil, func(t *testing.T, s *scene) {
			s.used(t, 2)
			hit, letGo := s.proxy.HoldReply(faultproxy.OpGetChildren2, s.parent+"/leases")
			told := observeKey(t, s.client, s.key)
			defer told.end()
			receive(t, "the leases are listed", hit)
			_, lease, err := s.conn.Exists(s.create(t, handLease, ephemeral))
			must(t, err)
			_, lock, err := s.conn.Exists(s.create(t, handWriter, ephemeral))
			must(t, err)
			letGo()
			told.last(t, holdfast.Token(lease.Czxid))
			for _, info := range told.all() {
				if info.Token == holdfast.Token(lock.Czxid) {
					t.Errorf("it is told of a lock that a lease was before: %+v", info)
				}
			}
		})
	})
	t.Run("a permit is there twice", func(t *testing.T) { // for a moment, of a creation that was repeated
		play(t, nil, func(t *testing.T, s *scene) {
			permit := s.take(t, holdfast.WithLimit(2))
			name := path.Base(nodeOf(t, s.client, permit))
			twice := s.create(t, "leases/"+name[:len(name)-len("0000000000")], ephemeral)
			tells(t, s, "a lease with the same guid", 1, permit.Token())
			s.delete(t, twice)
			release(t, permit)
		})
	})
	t.Run("a lock comes to one that waits for a permit", func(t *testing.T) {
		play(t, &zklock.Options{SessionTimeout: longest}, func(t *testing.T, s *scene) {
			release(t, s.take(t, holdfast.WithLimit(2)))
			s.create(t, "locks", 0)
			place := s.create(t, handPlace, ephemeral)
			lock := s.create(t, handWriter, ephemeral)
			tells(t, s, "a lock after a place", 0, 0)

			told := observeKey(t, s.client, s.key)
			told.last(t, 0)
			s.delete(t, place) // if the lock looks now, it is held
			_, stat, err := s.conn.Exists(lock)
			must(t, err)
			told.last(t, holdfast.Token(stat.Czxid))
			told.end()
			s.delete(t, lock)
		})
	})
}
