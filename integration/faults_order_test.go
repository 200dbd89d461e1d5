package integration_test

import (
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

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

const downgradeGUID = "_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0001-"

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
				d := &downgrade{scene: s, write: s.create(t, downgradeGUID+"__WRIT__", zk.FlagEphemeral|zk.FlagSequence)}
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
