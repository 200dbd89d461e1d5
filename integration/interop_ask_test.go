package integration_test

import (
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast"
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

// revoker tests asks between programs: Curator's Revoker asks our holders, and Ask reaches a revocable holder of
// Curator's. Others' holders, which nobody can ask, keep their locks and notice nothing.
func (c *interopCell) revoker(t *testing.T) {
	addr, conn := c.addr, c.conn
	for _, names := range []zklock.Names{zklock.CuratorNames, zklock.KazooNames} {
		t.Run("the Revoker asks us, "+names.String()+" names", func(t *testing.T) {
			key, curator := persistent(t, conn), c.peers[peerCurator].in(t)
			opts := options()
			opts.Names = names
			client := dial(t, addr, opts)
			events := client.Events()
			lock := take(t, client, key, holdfast.WithOwner("worker"), holdfast.WithData([]byte("data")))
			curator.do("revoke", nodeOf(t, client, lock))
			curator.says("asked")
			receive(t, "Asked", lock.Asked())
			if event := receive(t, "the event", events.Asked()); event.Key != key || event.Token != lock.Token() {
				t.Errorf("the event is %+v", event)
			}
			must(t, lock.SetData(limited(t), []byte("new"))) // the wish stays
			if data, _, err := conn.Get(nodeOf(t, client, lock)); err != nil || string(data) != "worker\x00new\x00__REVOKE__" {
				t.Errorf("the node has %q, %v", data, err)
			}
			release(t, lock)
			noResidue(t, conn, key)
		})
	}

	t.Run("we ask Curator", func(t *testing.T) {
		key, curator := persistent(t, conn), c.peers[peerCurator].in(t)
		curator.do("acquire", key, "revocable")
		token := holdfast.Token(curator.says(fleetAcquired).Token)
		client := dial(t, addr, nil)
		next := acquiring(limited(t), client, key)
		holds(t, conn, key, 2)
		asks(t, client, key)
		curator.says("revoked")
		info := asks(t, client, key) // once more, which is nothing new
		if info.Token != token || info.Owner != "" || len(info.Data) > 0 {
			t.Errorf("Inspect returns %+v, want token %d", info, token)
		}
		silent(t, "grant before Curator lets go", next)
		curator.release()
		lock := granted(t, next)
		if lock.Token() <= token {
			t.Errorf("token %d after %d", lock.Token(), token)
		}
		release(t, lock)
	})

	for _, who := range []fleetLanguage{peerCurator, peerGo, peerKazoo, peerKazooExtra, peerRenamed} {
		t.Run(string(who)+" cannot be asked", func(t *testing.T) {
			key, other := persistent(t, conn), c.peers[who].in(t)
			other.acquire(key)
			client := dial(t, addr, nil)
			before, err := client.Inspect(limited(t), key)
			must(t, err)
			asks(t, client, key)
			after, err := client.Inspect(limited(t), key)
			must(t, err)
			if after.Owner != before.Owner || !slices.Equal(after.Data, before.Data) || after.Token != before.Token {
				t.Errorf("Inspect returns %+v, and before the ask %+v", after, before)
			}
			if who == peerKazoo || who == peerKazooExtra {
				if got := other.ask("contenders", key); !slices.Equal(got, []string{other.name + "\x00__REVOKE__"}) {
					t.Errorf("kazoo's contenders are %q", got)
				}
			}
			next := acquiring(limited(t), client, key)
			holds(t, conn, key, 2)
			silent(t, "grant", next)
			other.release()
			release(t, granted(t, next))
			noResidue(t, conn, key)
		})
	}
}
