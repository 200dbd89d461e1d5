package integration_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// interopPeers are all of them.
var interopPeers = []fleetLanguage{peerZklock, peerZklockKazoo, peerCurator, peerGo, peerKazoo, peerKazooExtra, peerRenamed}

// respects says whose locks a peer waits for, according to zklock's documentation and
// docs/zookeeper.md. Every peer waits for its own kind.
var respects = map[fleetLanguage][]fleetLanguage{
	peerZklock:      interopPeers,
	peerZklockKazoo: interopPeers,
	peerGo:          interopPeers,
	peerKazooExtra:  interopPeers,
	// It compares what follows "lock-", and takes kazoo's names for late comers.
	peerCurator: {peerZklock, peerCurator, peerGo, peerRenamed},
	// It recognises only its own names as contenders.
	peerKazoo:   {peerZklockKazoo, peerKazoo, peerKazooExtra},
	peerRenamed: {peerZklock, peerCurator, peerGo, peerRenamed},
}

// TestInterop pairs each peer with each other one, all of them real programs, step by
// step. It checks what the documentation says of sharing locks: what works, and what
// cannot.
func TestInterop(t *testing.T) {
	start(t)
	c := newInteropCell(t, server(t).Addr(), interopPeers...)
	t.Run("Respect", c.respect)
	t.Run("Owners", c.owners)
	t.Run("Revoker", c.revoker)
	t.Run("Strangers", c.strangers)
	t.Run("ShortGUID", c.shortGUID)
}

// respect lets each peer hold a lock for which each other one contends. Peers that
// respect the holder wait, and get the lock with a higher token when it is released; with
// the others, two hold it at once.
func (c *interopCell) respect(t *testing.T) {
	for _, holder := range interopPeers {
		for _, contender := range interopPeers {
			if holder == contender {
				continue
			}
			t.Run(fmt.Sprintf("%s holds, %s contends", holder, contender), func(t *testing.T) {
				c.meet(t, holder, contender, slices.Contains(respects[contender], holder))
			})
			if c.meeting {
				verdict.Inconclusive(t, "they did not part")
			}
		}
	}
}

// interopCell has one peer of each kind, and a witness.
type interopCell struct {
	addr    string
	conn    *zk.Conn
	peers   map[fleetLanguage]*peer
	witness *witness
	path    string // the current path
	meeting bool   // or the peers failed, and are of no more use
}

func newInteropCell(t *testing.T, addr string, who ...fleetLanguage) *interopCell {
	t.Helper()
	c := &interopCell{addr: addr, conn: plain(t, addr), peers: make(map[fleetLanguage]*peer), witness: newWitness(0)}
	var (
		mu  sync.Mutex
		all sync.WaitGroup
	)
	for _, kind := range who {
		all.Go(func() {
			name := strings.ReplaceAll(string(kind), " ", "-")
			p := zkPeer(t, addr, kind, name, options().SessionTimeout, func(r fleetReport) {
				if r.What != fleetReady {
					r.Key = c.path
					c.witness.see(name, kind, r)
				}
			})
			mu.Lock()
			defer mu.Unlock()
			c.peers[kind] = p
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() {
		for _, p := range c.peers {
			p.finish(t)
		}
	})
	return c
}

// meet lets one hold a lock and another contend for it. Their processes are silent when
// it begins and when it ends.
func (c *interopCell) meet(t *testing.T, holder, contender fleetLanguage, respected bool) {
	t.Helper()
	c.meeting = true
	c.path, c.witness = persistent(t, c.conn), newWitness(0)
	h, o := c.peers[holder].in(t), c.peers[contender].in(t)
	held := h.acquire(c.path)
	node := nodeWith(t, c.conn, c.path, held.Token)
	o.do("acquire", c.path)
	granted := contends(t, c.addr, c.conn, c.path, node, o)
	if respected == granted {
		t.Errorf("%s is granted what %s holds: %v, want %v", contender, holder, granted, !respected)
	}
	h.release() // its last stamp comes after both were granted the lock
	if !granted {
		if r := o.says(fleetAcquired); r.Token <= held.Token {
			t.Errorf("token %d after %d", r.Token, held.Token)
		}
	}
	o.release()
	c.meeting = false
	noResidue(t, c.conn, c.path)
	noWatches(t, c.addr, c.path)
	violations := c.witness.violations(true)
	switch {
	case respected && len(violations) > 0:
		t.Error(violations)
	case !respected && (len(violations) != 1 || !strings.Contains(violations[0], "two hold")):
		t.Errorf("the witness saw %q, want two holders", violations)
	}
}

// in returns the peer for use in a subtest.
func (p *peer) in(t *testing.T) *peer {
	q := *p
	q.t = t
	return &q
}

// contends waits until a peer that was ordered to acquire a lock either has it, which is
// the result, or waits for the holder's node to be deleted.
func contends(t *testing.T, addr string, conn *zk.Conn, parent, node string, o *peer) (granted bool) {
	t.Helper()
	_, stat, err := conn.Get(node)
	must(t, err)
	holder := stat.EphemeralOwner
	eventually(t, fmt.Sprintf("%s is granted %s, or waits", o.language, parent), func() bool {
		select {
		case r := <-o.answers:
			if r.What != fleetAcquired {
				verdict.Fatalf(t, "%s answers %s %q", o.language, r.What, r.Note)
			}
			granted = true
			return true
		default:
		}
		watches, err := zkserver.Watches(limited(t), addr)
		must(t, err)
		return slices.ContainsFunc(watches[node], func(session int64) bool { return session != holder })
	})
	return granted
}

// persistent returns a new znode for a lock that no server removes while
// the lock is free.
func persistent(t *testing.T, conn *zk.Conn) string {
	t.Helper()
	p := "/" + newKey(t)
	must(t, errOf(conn.Create(p, nil, 0, zk.WorldACL(zk.PermAll))))
	return p
}

// nodeWith returns the child of a znode with a token.
func nodeWith(t *testing.T, conn *zk.Conn, parent string, token uint64) string {
	t.Helper()
	for _, name := range list(t, conn, parent) {
		node := path.Join(parent, name)
		if found, stat, err := conn.Exists(node); err == nil && found && uint64(stat.Czxid) == token {
			return node
		}
	}
	verdict.Fatalf(t, "no child of %s has token %d", parent, token)
	return ""
}
