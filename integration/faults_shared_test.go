package integration_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/zklock"
)

// writers and readers of a queue that a test makes by hand.
const (
	handWriter = "_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0001-lock-"
	handReader = "_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0002-shared-lock-"
)

func (s *scene) queueOf(t *testing.T, prefixes ...string) (nodes []string) {
	t.Helper()
	s.prepare(t)
	for _, prefix := range prefixes {
		nodes = append(nodes, s.create(t, prefix, zk.FlagEphemeral|zk.FlagSequence))
	}
	return nodes
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

// A shared lock that is free, or shared with others, costs what an exclusive one does: a create and a list in one flight,
// and a delete. Readers behind a writer are granted the lock by its deletion alone.
func TestSharedCosts(t *testing.T) {
	play(t, &zklock.Options{SessionTimeout: longest}, func(t *testing.T, s *scene) {
		writer := s.queueOf(t, handReader, handWriter)
		s.delete(t, writer[1])
		s.costs(t, "beside a reader", map[faultproxy.Op]int{faultproxy.OpCreate: 1, faultproxy.OpGetChildren2: 1, faultproxy.OpDelete: 1, faultproxy.OpMulti: 0}, func() {
			release(t, s.take(t, holdfast.WithShared()))
		})
		s.delete(t, writer[0])
		s.costs(t, "a free permit", map[faultproxy.Op]int{faultproxy.OpCreate: 1, faultproxy.OpGetChildren2: 1, faultproxy.OpDelete: 1, faultproxy.OpMulti: 0}, func() {
			release(t, s.take(t, holdfast.WithLimit(3)))
		})

		const readers = 20
		writers := s.queueOf(t, handReader, handWriter, handReader)
		var got []<-chan outcome
		for range readers {
			got = append(got, s.acquiring(limited(t), holdfast.WithShared()))
		}
		holds(t, s.conn, s.parent, len(writers)+readers)
		s.reads(t, readers+1) // of the own nodes, and of the writer's once
		s.quiet(t)
		s.proxy.ResetCounts()
		s.delete(t, writers[1])
		var locks []*holdfast.Lock
		for _, one := range got {
			locks = append(locks, granted(t, one))
		}
		s.quiet(t)
		events, lists := s.proxy.CountKind(faultproxy.ToClient, faultproxy.KindWatchEvent), s.lists()
		if events != 1 || lists != 0 {
			t.Errorf("%d readers behind a writer were granted the lock by %d events and %d lists, want 1 and 0", readers, events, lists)
		}
		for _, lock := range locks {
			release(t, lock)
		}
		s.delete(t, writers[0])
		s.delete(t, writers[2])
		s.clean(t)
	})
}

// Z39. Who stands before whom decides, and of what kind; nobody passes anybody who waits.
func TestSharedQueue(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		ahead  string // s: a reader, x: a writer
		shared bool
		goes   []int // the nodes that go, in this order
		after  int   // when so many are gone, and not before, the lock is granted
	}{
		{ahead: "ss", goes: []int{1, 0}, after: 2},
		{ahead: "sss", goes: []int{2, 0, 1}, after: 3},
		{ahead: "xs", goes: []int{0, 1}, after: 2},
		{ahead: "xsx", goes: []int{2, 1, 0}, after: 3},
		{ahead: "sxs", shared: true, goes: []int{1, 0, 2}, after: 1},
		{ahead: "sxs", shared: true, goes: []int{0, 2, 1}, after: 3},
		{ahead: "xsx", shared: true, goes: []int{2, 0, 1}, after: 2},
		{ahead: "xsx", shared: true, goes: []int{0, 1, 2}, after: 3},
	} {
		t.Run(fmt.Sprintf("%s %v %v", test.ahead, test.shared, test.goes), func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				var prefixes []string
				for _, kind := range test.ahead {
					prefixes = append(prefixes, map[rune]string{'s': handReader, 'x': handWriter}[kind])
				}
				nodes := s.queueOf(t, prefixes...)
				var opts []holdfast.Option
				if test.shared {
					opts = append(opts, holdfast.WithShared())
				}
				var held *holdfast.HeldError
				if _, err := s.client.TryAcquire(limited(t), s.key, opts...); !errors.As(err, &held) || held.Holder.Grant != path.Base(nodes[0]) {
					t.Errorf("TryAcquire returns %v", err)
				}
				got := s.acquiring(limited(t), opts...)
				holds(t, s.conn, s.parent, len(nodes)+1)
				for i, n := range test.goes {
					if i == test.after {
						break
					}
					s.quiet(t)
					silent(t, "grant", got)
					s.delete(t, nodes[n])
					nodes[n] = ""
				}
				release(t, granted(t, got))
				for _, node := range nodes {
					if node != "" {
						s.delete(t, node)
					}
				}
				s.clean(t)
			})
		})
	}
}

// Z39. A reader that gives up does not name the writer that it has waited behind for the holder: others hold the key.
func TestReaderGivesUpBehindAWriter(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		nodes := s.queueOf(t, handReader, handWriter)
		ctx, cancel := context.WithCancel(limited(t))
		got := s.acquiring(ctx, holdfast.WithShared())
		holds(t, s.conn, s.parent, len(nodes)+1)
		s.reads(t, 2)
		s.quiet(t)
		cancel()
		one := receive(t, "the error", got)
		var held *holdfast.HeldError
		if !errors.As(one.err, &held) || held.Holder.Grant == path.Base(nodes[1]) {
			t.Errorf("%v, %+v: the writer waits itself", one.err, held)
		}
		for _, node := range nodes {
			s.delete(t, node)
		}
		s.clean(t)
	})
}

// Z1 for readers: the node of a reader is found by its guid as any other is.
func TestSharedCreateReplyLost(t *testing.T) {
	t.Parallel()
	for what, lose := range losses {
		t.Run(what, func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				s.queueOf(t, handReader)
				lost := lose(s.proxy, faultproxy.OpCreate, s.parent)
				got := s.acquiring(limited(t), holdfast.WithShared())
				receive(t, "loss", lost)
				lock := granted(t, got)
				node := s.newest(t, 2)
				if !strings.Contains(node, "-shared-lock-") || node != nodeOf(t, s.client, lock) {
					t.Errorf("the lock is %s, and the queue ends with %s", nodeOf(t, s.client, lock), node)
				}
				release(t, lock)
				holds(t, s.conn, s.parent, 1)
			})
		})
	}
}

// Z40. Who shares a lock refuses a path on which somebody stands that would not see its node; so does a client of
// Curator's read-write lock, whatever it wants. It leaves nothing, and takes the lock when the other is gone.
func TestNamesThatDoNotFit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		names zklock.Names
		node  string
		fits  bool
	}{
		{zklock.CuratorNames, "-latch-", false},
		{zklock.CuratorNames, "-__READ__", false},
		{zklock.CuratorNames, "-shared-lock-", true},
		{zklock.KazooNames, "-__READ__", false},
		{zklock.KazooNames, "-lock-", false},
		{zklock.KazooNames, "__rlock__", true},
		{zklock.CuratorRWNames, "-shared-lock-", false},
		{zklock.CuratorRWNames, "__rlock__", false},
		{zklock.CuratorRWNames, "-__READ__", true},
	} {
		t.Run(fmt.Sprintf("%v %s", test.names, test.node), func(t *testing.T) {
			play(t, &zklock.Options{Names: test.names}, func(t *testing.T, s *scene) {
				node := s.queueOf(t, "_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0001"+test.node)[0]
				modes := [][]holdfast.Option{{holdfast.WithShared()}}
				if test.names == zklock.CuratorRWNames && !test.fits {
					modes = append(modes, nil)
				}
				for _, opts := range modes {
					_, err := s.client.Acquire(limited(t), s.key, opts...)
					_, tried := s.client.TryAcquire(limited(t), s.key, opts...)
					if test.fits {
						if err != nil || tried != nil {
							t.Errorf("Acquire returns %v, TryAcquire %v", err, tried)
						}
						continue
					}
					for _, err := range []error{err, tried} {
						var misfit *zklock.NamesError
						if !errors.As(err, &misfit) || !errors.Is(err, holdfast.ErrNames) || misfit.Node != path.Base(node) || misfit.Key != s.key || misfit.Names != test.names {
							t.Errorf("error is %v, want a NamesError about %s", err, node)
						}
					}
					holds(t, s.conn, s.parent, 1)
				}
				s.delete(t, node)
				if !test.fits {
					release(t, s.take(t, holdfast.WithShared()))
					release(t, s.take(t))
					s.clean(t)
				}
			})
		})
	}
}

// Curator's LeaderLatch has nothing to share with: refused before any traffic.
func TestLatchNamesShareNothing(t *testing.T) {
	play(t, &zklock.Options{Names: zklock.CuratorLatchNames}, func(t *testing.T, s *scene) {
		s.proxy.ResetCounts()
		var invalid *holdfast.InvalidError
		if _, err := s.client.Acquire(limited(t), s.key, holdfast.WithShared()); !errors.As(err, &invalid) || invalid.Field != "shared" {
			t.Errorf("Acquire returns %v", err)
		}
		if n := s.proxy.Count(faultproxy.ToServer, faultproxy.OpGetChildren2) + s.proxy.Count(faultproxy.ToServer, faultproxy.OpCreate); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

// Z19 for readers: the reader that Curator's writer leaves in its place is one more beside them.
func TestDowngradeBeforeAReader(t *testing.T) {
	play(t, &zklock.Options{Names: zklock.CuratorRWNames}, func(t *testing.T, s *scene) {
		d := &downgrade{scene: s}
		d.write = d.queueOf(t, "_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0001-__WRIT__")[0]
		reader := d.acquiring(limited(t), holdfast.WithShared())
		holds(t, d.conn, d.parent, 2)
		writer := d.acquiring(limited(t))
		holds(t, d.conn, d.parent, 3)
		d.watched(t, d.write)
		d.downgrades(t)
		d.quiet(t)
		d.proxy.ResetCounts()
		d.delete(t, d.write)
		lock := granted(t, reader)
		info, err := d.client.Inspect(limited(t), d.key)
		if err != nil || len(info.Holders) != 2 || len(info.Queue) != 1 || info.Holders[0].Owner != "curator" || info.Holders[1].Token != lock.Token() {
			t.Errorf("Inspect returns %+v, %v; want both readers to hold, and the writer to wait", info, err)
		}
		release(t, lock)
		d.quiet(t)
		silent(t, "grant beside a reader", writer)
		d.delete(t, d.read)
		release(t, granted(t, writer))
		d.clean(t)
	})
}

// Z39. Of several who share a key each is told, and reached by Break and Ask alone; who observes the key learns of all.
func TestSharedHolders(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		observing := observeKey(t, s.client, s.key)
		other := s.other(t)
		first := s.take(t, holdfast.WithShared(), holdfast.WithOwner("first"))
		observing.last(t, first.Token())
		second := take(t, other, s.key, holdfast.WithShared(), holdfast.WithOwner("second"), holdfast.WithData([]byte("data")))
		third := take(t, other, s.key, holdfast.WithShared(), holdfast.WithOwner("third"))
		got := s.acquiring(limited(t))
		holds(t, s.conn, s.parent, 4)
		shown := func(want ...string) holdfast.Info {
			t.Helper()
			info, err := other.Inspect(limited(t), s.key)
			var owners []string
			for _, h := range info.Holders {
				owners = append(owners, h.Owner)
			}
			if err != nil || fmt.Sprint(owners) != fmt.Sprint(want) || !info.Shared || len(info.Queue) != 1 || info.Queue[0].Shared {
				t.Errorf("Inspect returns %+v, %v; want %q to hold", info, err, want)
			}
			eventually(t, fmt.Sprintf("%q are observed", want), func() bool {
				all := observing.all()
				state := all[len(all)-1]
				return len(state.Holders) == len(want) && state.Holders[len(want)-1].Owner == want[len(want)-1]
			})
			return info
		}
		info := shown("first", "second", "third")
		if h := info.Holders[1]; h.Token != second.Token() || string(h.Data) != "data" || info.Owner != "first" {
			t.Errorf("the second is shown as %+v", h)
		}
		must(t, second.SetData(limited(t), []byte("more")))
		eventually(t, "new data is observed", func() bool {
			all := observing.all()
			state := all[len(all)-1]
			return len(state.Holders) == 3 && string(state.Holders[1].Data) == "more"
		})
		i := 0
		for grant := range info.Each() {
			switch i {
			case 1:
				must(t, s.client.Break(limited(t), grant))
				receive(t, "the end of the second", second.Done())
				if err := s.client.Break(limited(t), grant); !errors.Is(err, holdfast.ErrChanged) {
					t.Errorf("Break of what is gone returns %v", err)
				}
			case 2:
				must(t, s.client.Ask(limited(t), grant))
				receive(t, "the wish of the third", third.Asked())
			}
			i++
		}
		if err := second.Err(); !errors.Is(err, holdfast.ErrBroken) {
			t.Errorf("the second has ended with %v", err)
		}
		for _, lock := range []*holdfast.Lock{first, third} {
			must(t, lock.Err())
			must(t, lock.Verify(limited(t)))
		}
		shown("first", "third")
		release(t, first)
		shown("third")
		silent(t, "grant beside a reader", got)
		guard, err := other.Guard(third)
		must(t, err)
		must(t, errOf(other.Conn().Multi(guard)))
		release(t, third)
		lock := granted(t, got)
		observing.last(t, lock.Token())
		release(t, lock)
	})
}
