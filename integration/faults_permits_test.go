package integration_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/zklock"
)

// handLease is Curator's lease, which a test makes by hand.
const handLease = "leases/_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0003-lease-"

// handPlace is a place in its queue.
const handPlace = "locks/_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0004-lock-"

// used has a semaphore be made by its first use.
func (s *scene) used(t *testing.T, limit int) {
	t.Helper()
	release(t, s.take(t, holdfast.WithLimit(limit)))
	s.quiet(t)
	s.proxy.ResetCounts()
}

// costs fails the test unless a call costs these requests. A heartbeat looks like a transaction, so the call has three tries.
func (s *scene) costs(t *testing.T, what string, want map[faultproxy.Op]int, call func()) {
	t.Helper()
	var found []string
	for range 3 {
		s.proxy.ResetCounts()
		call()
		s.quiet(t)
		found = nil
		for op, want := range want {
			if n := s.proxy.Count(faultproxy.ToServer, op); n != want {
				found = append(found, fmt.Sprintf("%d of %v, want %d", n, op, want))
			}
		}
		if len(found) == 0 {
			return
		}
	}
	t.Errorf("%s: %s", what, strings.Join(found, "; "))
}

// A permit that nobody else wants costs one write to acquire and one to release; one that is waited for costs two and one, and its
// return wakes one of those who wait.
func TestPermitCosts(t *testing.T) {
	play(t, &zklock.Options{SessionTimeout: longest}, func(t *testing.T, s *scene) {
		s.used(t, 1)
		s.costs(t, "a free permit", map[faultproxy.Op]int{faultproxy.OpCreate: 0, faultproxy.OpDelete: 1, faultproxy.OpMulti: 1, faultproxy.OpSetData: 0}, func() {
			release(t, s.take(t, holdfast.WithLimit(1)))
		})
		const waiters = 20
		lease := s.create(t, handLease, zk.FlagEphemeral|zk.FlagSequence)
		var got []<-chan outcome
		for i := range waiters {
			got = append(got, s.acquiring(limited(t), holdfast.WithLimit(1)))
			holds(t, s.conn, s.parent+"/locks", i+1)
		}
		s.reads(t, 2*waiters)
		s.quiet(t)
		s.proxy.ResetCounts()
		s.delete(t, lease)
		locks := []*holdfast.Lock{granted(t, got[0])}
		holds(t, s.conn, s.parent+"/locks", waiters-1)
		s.quiet(t)
		if events, lists := s.proxy.CountKind(faultproxy.ToClient, faultproxy.KindWatchEvent), s.lists(); events > 5 || lists > 8 {
			t.Errorf("one permit came back to %d waiters: %d events and %d lists", waiters, events, lists)
		}
		for _, one := range got[1:] {
			release(t, locks[len(locks)-1])
			locks = append(locks, granted(t, one))
		}
		release(t, locks[len(locks)-1])
	})
}

// Z42. The first in the queue makes a lease when the leases have changed. If that came too late, it only looks at the
// next change, which may be the end of that lease.
func TestLeaseInVain(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		s.used(t, 1)
		leases := []string{s.create(t, handLease, zk.FlagEphemeral|zk.FlagSequence)}
		got := s.acquiring(limited(t), holdfast.WithLimit(1))
		holds(t, s.conn, s.parent+"/locks", 1)
		settles := func() { // changes that come before the next watch are one
			time.Sleep(50 * time.Millisecond)
			s.quiet(t)
		}
		settles()
		s.proxy.ResetCounts()
		const changes = 10
		for range changes {
			leases = append(leases, s.create(t, handLease, zk.FlagEphemeral|zk.FlagSequence))
			settles()
		}
		n := s.proxy.Count(faultproxy.ToServer, faultproxy.OpCreate) + s.proxy.Count(faultproxy.ToServer, faultproxy.OpMulti)
		if n == 0 || n > changes*7/10 {
			t.Errorf("it made %d leases at %d changes, while the permit was taken; want one at every second", n, changes)
		}
		for _, lease := range leases {
			s.delete(t, lease)
		}
		release(t, granted(t, got))
	})
}

// Z42. The first in the queue leaves it in the transaction that makes its lease. If that came too late, it has lost its turn; the next
// time it stays in the queue until it has a permit.
func TestTurnIsLostOnce(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		s.used(t, 1)
		places := func() []string {
			names, _, err := s.conn.Children(s.parent + "/locks")
			must(t, err)
			return names
		}
		first := s.create(t, handLease, zk.FlagEphemeral|zk.FlagSequence)
		got := s.acquiring(limited(t), holdfast.WithLimit(1))
		holds(t, s.conn, s.parent+"/locks", 1)
		s.quiet(t)
		before := places()
		eventually(t, "it has lost its turn", func() bool {
			s.delete(t, s.create(t, handLease, zk.FlagEphemeral|zk.FlagSequence)) // wakes it
			s.quiet(t)
			now := places()
			return len(now) == 1 && !slices.Equal(now, before)
		})
		before = places()
		for range 3 {
			s.delete(t, s.create(t, handLease, zk.FlagEphemeral|zk.FlagSequence))
			s.quiet(t)
		}
		if now := places(); !slices.Equal(now, before) {
			t.Errorf("it has lost its turn again: %v, and then %v", before, now)
		}
		s.delete(t, first)
		release(t, granted(t, got))
	})
}

// A place goes if and only if the lease comes, also when the reply is lost.
func TestLeaseReplyLost(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		s.used(t, 1)
		first := s.create(t, handLease, zk.FlagEphemeral|zk.FlagSequence)
		got := s.acquiring(limited(t), holdfast.WithLimit(1))
		holds(t, s.conn, s.parent+"/locks", 1)
		s.quiet(t)
		lost := s.proxy.LoseReply(faultproxy.OpMulti, "")
		s.delete(t, first)
		receive(t, "the reply is lost", lost)
		lock := granted(t, got)
		holds(t, s.conn, s.parent+"/locks", 0)
		holds(t, s.conn, s.parent+"/leases", 1)
		release(t, lock)
		holds(t, s.conn, s.parent+"/leases", 0)
	})
}

// Z44. A client of kazoo's that stands in the queue may have counted the leases before ours was made, and makes its own without another
// look.
func TestPermitBesideKazoo(t *testing.T) {
	play(t, &zklock.Options{Names: zklock.KazooNames}, func(t *testing.T, s *scene) {
		s.used(t, 1)
		made, goOn := s.proxy.HoldRequest(faultproxy.OpCreate, s.parent+"/")
		got := s.acquiring(limited(t), holdfast.WithLimit(1))
		receive(t, "a lease", made)
		queue := s.parent + "-__lock__"
		if _, err := s.conn.Create(queue, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			t.Fatal(err)
		}
		place, err := s.conn.Create(queue+"/9d2c1a4e6a774a0e8d420f2d9b6b0004__lock__", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		must(t, err)
		goOn() // kazoo has seen no lease
		holds(t, s.conn, queue, 2)
		lease := s.create(t, "9d2c1a4e6a774a0e8d420f2d9b6b0005", zk.FlagEphemeral)
		must(t, s.conn.Delete(place, -1))
		select {
		case o := <-got:
			t.Errorf("granted beside kazoo: %v, %v", o.lock, o.err)
		case <-time.After(300 * time.Millisecond):
		}
		s.delete(t, lease)
		release(t, granted(t, got))
	})
}
