package integration_test

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestInterop_Permits_LocksOfOthersWaitForThemAndAreWaitedFor lets two permits be held while another program wants its lock, and the
// reverse, with real programs on a real server: to the other program each permit is an exclusive lock.
func TestInterop_Permits_LocksOfOthersWaitForThemAndAreWaitedFor(t *testing.T) {
	start(t)
	c := newInteropCell(t, server(t).Addr(), peerCurator, peerKazoo, peerGo)
	limit := holdfast.WithLimit(2)
	for _, pair := range []struct {
		peer   fleetLanguage
		recipe string
		names  zklock.Names
	}{
		{peerCurator, "InterProcessMutex", zklock.CuratorNames},
		{peerCurator, "InterProcessReadWriteLock.readLock", zklock.CuratorRWNames},
		{peerCurator, "InterProcessReadWriteLock.writeLock", zklock.CuratorRWNames},
		{peerKazoo, "", zklock.KazooNames},
		{peerGo, "", zklock.CuratorNames},
	} {
		t.Run(string(pair.peer)+" "+pair.recipe+" "+pair.names.String(), func(t *testing.T) {
			key, peer := persistent(t, c.conn), c.peers[pair.peer].in(t)
			client := dial(t, c.addr, &zklock.Options{Names: pair.names})
			first, second := take(t, client, key, limit), take(t, client, key, limit)
			held := ephemerals(t, c.conn, key)
			peer.do("acquire", words(key, pair.recipe)...)
			if did := c.does(t, key, held, peer); did != waiting {
				t.Errorf("it does not wait for a permit: %s", did)
			}
			release(t, first)
			release(t, second)
			peer.says(fleetAcquired)

			if _, err := client.TryAcquire(limited(t), key, limit); !errors.Is(err, holdfast.ErrHeld) {
				t.Errorf("a permit beside its lock: %v", err)
			}
			got := acquiring(limited(t), client, key, limit)
			holds(t, c.conn, key, 2)
			silent(t, "permit beside its lock", got)
			peer.release()
			release(t, granted(t, got))
		})
	}
}
