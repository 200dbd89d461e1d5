package integration_test

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// Hazard Z8: children of a lock's znode that are not contenders.

// strangers tests the known behaviour with children without a sequence number: we and
// kazoo ignore them, go-zookeeper's Lock fails and leaves its node behind, and Curator
// counts each of them, in the order of names.
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
					if contends(t, c.addr, conn, key, stranger, o) {
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

// shortGUID tests the known behaviour with a child whose name begins like Curator's but
// is shorter: go-zookeeper's Lock panics on it once the reply to a create is lost. That
// is why our own names have guids of full length.
func (c *interopCell) shortGUID(t *testing.T) {
	key, p := persistent(t, c.conn), proxy(t, c.addr)
	must(t, errOf(c.conn.Create(key+"/_c_short-lock-0000000000", nil, 0, zk.WorldACL(zk.PermAll))))
	victim := zkPeer(t, p.Addr(), peerGo, "victim", options().SessionTimeout, nil)
	victim.expected.Store(true)
	for tries, r := 0, (peerReport{}); tries == 0 || r.What == peerFailed; tries++ {
		if tries == 20 {
			verdict.Inconclusive(t, "go-zookeeper's Lock fails each time: %s", r.Note)
		}
		lost := p.LoseRequest(faultproxy.OpCreate, key)
		victim.do("acquire", key)
		receive(t, "a creation is lost", lost)
		// It looks for what it has created; and fails, if it does so while it is not connected yet.
		if r = receive(t, "go-zookeeper's Lock fails, or its process ends", victim.answers); r.What == fleetAcquired {
			t.Fatal("go-zookeeper's Lock is granted")
		}
	}
	<-victim.gone
	if log := victim.logged(); !strings.Contains(log, "slice bounds out of range") ||
		!strings.Contains(log, "CreateProtectedEphemeralSequential") {
		t.Errorf("go-zookeeper's process ended with %v:\n%s", victim.Err(), log)
	}
}
