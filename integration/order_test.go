package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// logged is a log that tests can read while clients write it.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// TestSequenceCounter tests the cure of hazard Z6: once the counter of a lock's parent sticks at its end, all nodes have the same
// number, or negative ones, and czxids decide the order.
func TestSequenceCounter(t *testing.T) {
	start(t)
	server := zkserver.New(t, zkserver.Config{Controlled: true, MaxSessionTimeout: longest})
	const clients, each = 8, 12
	for name, begin := range map[string]int32{
		"at the end":      math.MaxInt32,
		"across the end":  math.MaxInt32 - 20,
		"before warnings": math.MaxInt32 - 1<<27 - 1000,
		"at the warning":  math.MaxInt32 - 1<<27,
	} {
		t.Run(name, func(t *testing.T) {
			key := newKey(t)
			var log logged
			opts := zklock.Options{SessionTimeout: options().SessionTimeout, PersistentParents: true, Logger: log.logger()}
			first := dialServers(t, opts, server.Addr())
			lock := take(t, first, key)
			parent := path.Dir(nodeOf(t, first, lock))
			release(t, lock)
			must(t, server.SetCversion(parent, begin))
			a := &audit{}
			a.granted(t, lock)
			var wg sync.WaitGroup
			var last atomic.Int64
			for range clients {
				client := dialServers(t, opts, server.Addr())
				wg.Go(func() {
					for range each {
						lock, err := client.Acquire(limited(t), key)
						if err != nil {
							t.Error(err)
							return
						}
						a.granted(t, lock)
						if guard, err := client.Guard(lock); err == nil {
							sequence, _ := strconv.ParseInt(guard.Path[strings.LastIndex(guard.Path, "-lock-")+len("-lock-"):], 10, 64)
							last.Store(sequence)
						}
						check(t, lock.Release(context.Background()))
					}
				})
			}
			wg.Wait()
			if got, want := a.count(), clients*each+1; got != want {
				t.Errorf("%d grants, want %d", got, want)
			}
			atTheEnd := last.Load() < 0 || last.Load() == math.MaxInt32
			if last.Load() < int64(begin) && !atTheEnd || strings.HasSuffix(name, "the end") != atTheEnd {
				t.Errorf("the last sequence is %d after %d", last.Load(), begin)
			}
			warned := strings.Count(log.String(), "sequence counter")
			if name == "before warnings" {
				if warned != 0 {
					t.Errorf("warned too early:\n%s", log.String())
				}
			} else if warned == 0 || warned > clients+1 || !strings.Contains(log.String(), "path="+parent) {
				t.Errorf("%d warnings that name %s, want one for each client that saw it:\n%s", warned, parent, log.String())
			}
			noResidue(t, plain(t, server.Addr()), parent)
		})
	}
}

// TestSequenceCounterWithPeers shows a documented limit: once the counter of a lock's parent has reached its end, a lock shared with
// Curator, kazoo or go-zookeeper does not exclude. These programs order contenders by a number that is then equal for all: go-zookeeper is
// granted the key beside any holder, and the others depend on the random order of the server's list. Our clients still wait for them.
func TestSequenceCounterWithPeers(t *testing.T) {
	start(t)
	embedded := zkserver.New(t, zkserver.Config{Controlled: true, MaxSessionTimeout: longest})
	c := newInteropCell(t, embedded.Addr(), interopPeers...)
	// meet returns how a contender behaves at the end of the counter.
	meet := func(t *testing.T, holder, contender fleetLanguage) manners {
		key, h, o := persistent(t, c.conn), c.peers[holder].in(t), c.peers[contender].in(t)
		must(t, embedded.SetCversion(key, math.MaxInt32))
		h.acquire(key)
		held := ephemerals(t, c.conn, key)
		if len(held) != 1 || !strings.HasSuffix(held[0].path, strconv.Itoa(math.MaxInt32)) {
			t.Fatalf("the nodes are %v: the counter was not set", held)
		}
		o.do("acquire", key)
		did := c.does(t, key, held, o)
		h.release()
		if did == waiting {
			o.says(fleetAcquired)
		}
		o.release()
		return did
	}
	for _, pair := range [][2]fleetLanguage{
		{peerZklock, peerCurator},
		{peerZklock, peerGo},
		{peerZklock, peerKazooExtra},
		{peerZklock, peerRenamed},
		{peerZklockKazoo, peerGo},
		{peerZklockKazoo, peerKazoo},
	} {
		t.Run(fmt.Sprintf("%s and %s", pair[0], pair[1]), func(t *testing.T) {
			tries := 1
			for tries < 64 && meet(t, pair[0], pair[1]) != passing {
				tries++
			}
			t.Logf("granted to both at try %d", tries)
			if tries == 64 || pair[1] == peerGo && tries > 1 {
				t.Errorf("%s has waited %d times: the documentation says that it does not", pair[1], tries)
			}
			if meet(t, pair[1], pair[0]) != waiting {
				t.Errorf("%s is granted what %s holds", pair[0], pair[1])
			}
		})
	}
}

// Z7. The server deletes parents as fast as it can. A create that finds no parent creates the parents again; a list that
// finds none starts over.
func TestParentsReapedAllTheTime(t *testing.T) {
	start(t)
	s := zkserver.New(t, reaping())
	conn := plain(t, s.Addr())
	clients := []*zklock.Client{dial(t, s.Addr(), nil), dial(t, s.Addr(), nil)}
	for _, key := range []string{"plain", "/deep/in/the/tree"} {
		var wg sync.WaitGroup
		var a audit
		for _, client := range clients {
			wg.Go(func() {
				for range 25 {
					lock, err := client.Acquire(limited(t), key)
					if err != nil {
						t.Errorf("%q: %v", key, err)
						return
					}
					a.granted(t, lock)
					check(t, lock.Release(limited(t)))
					time.Sleep(12 * time.Millisecond) // lets the reaper come in between
				}
			})
		}
		wg.Wait()
	}
	eventually(t, "parents are gone", func() bool {
		return len(list(t, conn, zklock.DefaultRoot)) == 0 && len(list(t, conn, "/deep")) == 0
	})
	noWatches(t, s.Addr(), "")
}

// reaping is the configuration of a server that removes empty containers as fast as it can.
func reaping() zkserver.Config {
	return zkserver.Config{
		TickTime: tick, MaxSessionTimeout: longest, ContainerCheckInterval: 10 * time.Millisecond,
		Props: map[string]string{"znode.container.maxPerMinute": "1000000000"},
	}
}

// downgrade does what Curator's read-write lock, from 5.5 on, does on one thread: it acquires the lock for writing, then
// for reading, and releases it for writing. The read node gets the number of the write node by hand.
type downgrade struct {
	*scene
	write, read string
}

func (s *scene) create(t *testing.T, name string, flags int32) string {
	t.Helper()
	made, err := s.conn.Create(s.parent+"/"+name, []byte("curator"), flags, zk.WorldACL(zk.PermAll))
	must(t, err)
	return made
}

// downgrades creates the read node.
func (d *downgrade) downgrades(t *testing.T) {
	t.Helper()
	d.read = d.create(t, strings.Replace(path.Base(d.write), "__WRIT__", "__READ__", 1), zk.FlagEphemeral)
}

// watched waits until a session watches a node.
func (s *scene) watched(t *testing.T, node string) {
	t.Helper()
	eventually(t, "there is a watch on "+path.Base(node), func() bool { return len(s.watches(t, node)[node]) > 0 })
}

// Z19. The read node appears in the middle of the queue, before contenders that already wait. No exclusive request is granted
// beside the reader; a reader is.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		names zklock.Names
		run   func(t *testing.T, d *downgrade)
	}{
		"before a waiter": {zklock.CuratorNames, func(t *testing.T, d *downgrade) {
			got := d.acquiring(limited(t))
			d.watched(t, d.write)
			d.downgrades(t)
			d.delete(t, d.write)
			d.watched(t, d.read)
			d.keepsOut(t, got, d.read)
		}},
		// A contender that lists the queue while both are there finds the reader right behind the writer.
		"seen by a waiter": {zklock.CuratorNames, func(t *testing.T, d *downgrade) {
			between := d.create(t, "lock-", zk.FlagEphemeral|zk.FlagSequence)
			got := d.acquiring(limited(t))
			d.watched(t, between)
			d.downgrades(t)
			d.delete(t, between) // the waiter looks again
			d.watched(t, d.read)
			if info, err := d.client.Inspect(limited(t), d.key); err != nil || info.Grant != path.Base(d.write) || len(info.Queue) != 2 {
				t.Errorf("Inspect returns %+v, %v; want the writer to hold, and the reader to be next", info, err)
			}
			d.delete(t, d.write)
			d.keepsOut(t, got, d.read)
		}},
		"before a reader": {zklock.CuratorRWNames, func(t *testing.T, d *downgrade) {
			reader := d.acquiring(limited(t), holdfast.WithShared())
			holds(t, d.conn, d.parent, 2)
			writer := d.acquiring(limited(t))
			holds(t, d.conn, d.parent, 3)
			d.watched(t, d.write)
			d.downgrades(t)
			d.quiet(t)
			d.delete(t, d.write)
			release(t, granted(t, reader))
			d.quiet(t)
			d.keepsOut(t, writer, d.read)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, &zklock.Options{Names: test.names}, func(t *testing.T, s *scene) {
				s.prepare(t)
				d := &downgrade{scene: s, write: s.create(t, "_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0001-__WRIT__", zk.FlagEphemeral|zk.FlagSequence)}
				test.run(t, d)
				d.clean(t)
			})
		})
	}
}

// keepsOut checks that a contender waits for the reader, and is granted the key when the reader goes.
func (d *downgrade) keepsOut(t *testing.T, got <-chan outcome, reader string) {
	t.Helper()
	silent(t, "grant beside a reader", got)
	if info, err := d.client.Inspect(limited(t), d.key); err != nil || info.Grant != path.Base(reader) || info.Owner != "curator" {
		t.Errorf("Inspect returns %+v, %v; want %s to hold", info, err, reader)
	}
	d.delete(t, reader)
	release(t, granted(t, got))
}
