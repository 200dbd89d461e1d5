package integration_test

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/zklock"
)

// owners tests what other programs see of us, and we of them: the owner name is where
// kazoo's contenders and Curator's participants look for it, in the order of the queue,
// and Inspect shows what they wrote there.
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

	// kazoo takes all data for text, and shows nobody if one node has other data.
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
			// Curator's node has the address of its machine; the others have their given
			// names.
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
