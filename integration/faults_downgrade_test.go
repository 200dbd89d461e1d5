package integration_test

import (
	"path"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
)

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

// writes begins a downgrade.
func (s *scene) writes(t *testing.T) *downgrade {
	t.Helper()
	d := &downgrade{scene: s}
	d.prepare(t)
	d.write = d.create(t, "_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0001-__WRIT__", zk.FlagEphemeral|zk.FlagSequence)
	return d
}

// downgrades continues it.
func (d *downgrade) downgrades(t *testing.T) {
	t.Helper()
	number := d.write[strings.LastIndex(d.write, "_")+1:]
	d.read = d.create(t, "_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0002-__READ__"+number, zk.FlagEphemeral)
}

// watched waits until somebody watches a node.
func (s *scene) watched(t *testing.T, node string) {
	t.Helper()
	eventually(t, "there is a watch on "+path.Base(node), func() bool { return len(s.watches(t, node)[node]) > 0 })
}

// Z19. The read node appears in the middle of the queue, before contenders that already wait.
func TestDowngradeBeforeAWaiter(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		d := s.writes(t)
		got := d.acquiring(limited(t))
		d.watched(t, d.write)
		d.downgrades(t)
		d.delete(t, d.write)
		silent(t, "grant beside a reader", got)
		d.watched(t, d.read)
		if info, err := d.client.Inspect(limited(t), d.key); err != nil || info.Grant != path.Base(d.read) {
			t.Errorf("Inspect returns %+v, %v; want %s to hold", info, err, d.read)
		}
		d.delete(t, d.read)
		release(t, granted(t, got))
		d.clean(t)
	})
}

// Z19. A contender that lists the queue while both are there finds the reader right behind the writer, although the reader
// came later, and waits for it.
func TestDowngradeSeenByAWaiter(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		d := s.writes(t)
		between := d.create(t, "lock-", zk.FlagEphemeral|zk.FlagSequence)
		got := d.acquiring(limited(t))
		d.watched(t, between)
		d.downgrades(t)
		d.delete(t, between) // the waiter looks again
		d.watched(t, d.read)
		info, err := d.client.Inspect(limited(t), d.key)
		if err != nil || info.Grant != path.Base(d.write) || len(info.Queue) != 2 || info.Queue[0].Owner != "curator" {
			t.Errorf("Inspect returns %+v, %v; want the writer to hold, and the reader to be next", info, err)
		}
		d.delete(t, d.write)
		silent(t, "grant beside a reader", got)
		d.delete(t, d.read)
		release(t, granted(t, got))
		d.clean(t)
	})
}
