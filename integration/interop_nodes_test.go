package integration_test

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/zklock"
)

// asks makes a client ask for the lock of a key, and returns the holder.
func asks(t *testing.T, client *zklock.Client, key string) holdfast.Info {
	t.Helper()
	info, err := client.Inspect(limited(t), key)
	must(t, err)
	must(t, client.Ask(limited(t), info))
	return info
}

// revoker tests asks between programs: Curator's Revoker asks our holders, and Ask reaches a revocable holder of
// Curator's. Others' holders cannot be asked. They keep their locks and notice nothing.
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

// owners tests what other programs see of us, and we of them: the owner name is where kazoo's contenders and Curator's
// participants look for it, in the order of the queue, and Inspect shows what they wrote there.
func (c *interopCell) owners(t *testing.T) {
	addr, conn := c.addr, c.conn
	t.Run("ours", func(t *testing.T) {
		for _, test := range []struct {
			names zklock.Names
			who   fleetLanguage
			what  string // the client asks them
			mark  string // of the leader
		}{
			{zklock.CuratorNames, peerCurator, "participants", ""},
			{zklock.CuratorNames, peerCurator, "leaders", "*"},
			{zklock.CuratorNames, peerKazooExtra, "contenders", ""},
			{zklock.KazooNames, peerKazooExtra, "contenders", ""},
			{zklock.KazooNames, peerKazoo, "contenders", ""},
		} {
			t.Run(test.names.String()+" names, "+string(test.who)+" "+test.what, func(t *testing.T) {
				key, other := persistent(t, conn), c.peers[test.who].in(t)
				opts := options()
				opts.Names = test.names
				opts.Owner = "holder"
				lock := take(t, dial(t, addr, opts), key)
				opts.Owner = "zoë, who waits"
				next := acquiring(limited(t), dial(t, addr, opts), key, holdfast.WithData([]byte("of hers")))
				holds(t, conn, key, 2)
				want := []string{"holder" + test.mark, "zoë, who waits\x00of hers"}
				got := other.ask(test.what, key)
				if test.what == "leaders" {
					slices.SortFunc(got, func(a, b string) int { return strings.Compare(a, b) })
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s answers %q, want %q", test.who, got, want)
				}
				release(t, lock)
				release(t, granted(t, next))
				noResidue(t, conn, key)
			})
		}
	})

	// kazoo decodes all data as text, and shows no contender if the data of one node is not UTF-8.
	t.Run("data that is not UTF-8", func(t *testing.T) {
		key, kazoo := persistent(t, conn), c.peers[peerKazooExtra].in(t)
		lock := take(t, dial(t, addr, nil), key, holdfast.WithData([]byte{0xff}))
		kazoo.do("contenders", key)
		if r := kazoo.says(peerFailed); !strings.Contains(r.Note, "UnicodeDecodeError") {
			t.Errorf("kazoo's contenders ends with %s", r.Note)
		}
		release(t, lock)
	})

	t.Run("theirs", func(t *testing.T) {
		client := dial(t, addr, nil)
		for _, who := range []fleetLanguage{peerCurator, peerKazoo, peerRenamed, peerGo, peerZklockKazoo} {
			key, other := persistent(t, conn), c.peers[who].in(t)
			token := holdfast.Token(other.acquire(key).Token)
			info, err := client.Inspect(limited(t), key)
			must(t, err)
			// Curator's node has the address of its machine; the others have their given names.
			named := info.Owner == other.name
			if who == peerCurator {
				named = net.ParseIP(info.Owner) != nil
			}
			if !info.Held || info.Token != token || !named {
				t.Errorf("%s holds %s with token %d, and Inspect returns %+v", who, key, token, info)
			}
			other.release()
		}
	})
}

// Hazard Z8: children of a lock's znode that are not contenders.

// strangers tests the known behaviour with children without a sequence number: we and kazoo ignore them, go-zookeeper's Lock
// fails and leaves its node behind, and Curator counts each of them, in the order of names.
func (c *interopCell) strangers(t *testing.T) {
	conn := c.conn
	for _, child := range []string{"README", "!"} {
		for who, o := range c.peers {
			t.Run(child+", "+string(who), func(t *testing.T) {
				key, o := persistent(t, conn), o.in(t)
				stranger, err := conn.Create(key+"/"+child, nil, 0, zk.WorldACL(zk.PermAll))
				must(t, err)
				o.do("acquire", key)
				switch {
				case who == peerGo:
					if r := o.says(peerFailed); !strings.Contains(r.Note, "invalid syntax") {
						t.Errorf("go-zookeeper's Lock ends with %s", r.Note)
					}
					if left := list(t, conn, key); len(left) != 2 {
						t.Errorf("go-zookeeper leaves %q, want a node of its own", left)
					}
					o.acquire(persistent(t, conn)) // in a new session
				case who == peerCurator && child == "!":
					if c.does(t, key, []ephemeral{{path: stranger}}, o) != waiting {
						t.Error("Curator is granted a lock behind a stranger")
					}
					must(t, conn.Delete(stranger, -1))
					o.says(fleetAcquired)
				default:
					o.says(fleetAcquired)
				}
				o.release()
			})
		}
	}
}
