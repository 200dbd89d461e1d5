package integration_test

import (
	"path"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// downgrade does what Curator's read-write lock, from 5.5 on, does on one thread: it
// acquires the lock for writing, then for reading, and releases it for writing. The read
// node gets the number of the write node by hand.
type downgrade struct {
	conn        *zk.Conn
	write, read string
}

func (d *downgrade) create(t *testing.T, name string, flags int32) string {
	t.Helper()
	made, err := d.conn.Create(name, []byte("curator"), flags, zk.WorldACL(zk.PermAll))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (d *downgrade) delete(t *testing.T, name string) {
	t.Helper()
	if err := d.conn.Delete(name, -1); err != nil {
		t.Fatal(err)
	}
}

// writes begins a downgrade.
func writes(t *testing.T, conn *zk.Conn, parent string) *downgrade {
	t.Helper()
	d := &downgrade{conn: conn}
	d.write = d.create(t, parent+"/_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0001-__WRIT__", zk.FlagEphemeral|zk.FlagSequence)
	return d
}

// reads continues it.
func (d *downgrade) reads(t *testing.T) {
	t.Helper()
	number := d.write[strings.LastIndex(d.write, "_")+1:]
	d.read = d.create(t, path.Dir(d.write)+"/_c_9d2c1a4e-6a77-4a0e-8d42-0f2d9b6b0002-__READ__"+number, zk.FlagEphemeral)
}

// watched waits until somebody watches a node.
func watched(t *testing.T, node string) {
	t.Helper()
	eventually(t, "there is a watch on "+path.Base(node), func() bool {
		watches, err := zkserver.Watches(limited(t), server(t).Addr())
		return err == nil && len(watches[node]) > 0
	})
}

// Z19. The read node appears in the middle of the queue, before contenders that already
// wait.
func TestDowngradeBeforeAWaiter(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, _ := proxied(t, nil)
	key := newKey(t)
	theirs := writes(t, conn, prepare(t, conn, key))
	got := acquiring(limited(t), client, key)
	watched(t, theirs.write)
	theirs.reads(t)
	theirs.delete(t, theirs.write)
	silent(t, "grant beside a reader", got)
	watched(t, theirs.read)
	if info, err := client.Inspect(limited(t), key); err != nil || info.Grant != path.Base(theirs.read) {
		t.Errorf("Inspect returns %+v, %v; want %s to hold", info, err, theirs.read)
	}
	theirs.delete(t, theirs.read)
	release(t, granted(t, got))
	checkClean(t, conn, key)
}

// Z19. A contender that lists the queue while both are there finds the reader right
// behind the writer, although the reader came later, and waits for it.
func TestDowngradeSeenByAWaiter(t *testing.T) {
	start(t)
	conn := plain(t, server(t).Addr())
	client, _ := proxied(t, nil)
	key := newKey(t)
	theirs := writes(t, conn, prepare(t, conn, key))
	between := theirs.create(t, under(key)+"/lock-", zk.FlagEphemeral|zk.FlagSequence)
	got := acquiring(limited(t), client, key)
	watched(t, between)
	theirs.reads(t)
	theirs.delete(t, between) // the waiter looks again
	watched(t, theirs.read)
	info, err := client.Inspect(limited(t), key)
	if err != nil || info.Grant != path.Base(theirs.write) || len(info.Queue) != 2 || info.Queue[0].Owner != "curator" {
		t.Errorf("Inspect returns %+v, %v; want the writer to hold, and the reader to be next", info, err)
	}
	theirs.delete(t, theirs.write)
	silent(t, "grant beside a reader", got)
	theirs.delete(t, theirs.read)
	release(t, granted(t, got))
	checkClean(t, conn, key)
}
