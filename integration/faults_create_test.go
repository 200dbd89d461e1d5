package integration_test

import (
	"encoding/binary"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/zklock"
)

// createdName returns the name of the node in the reply to a create.
func createdName(t *testing.T, f faultproxy.Frame) string {
	t.Helper()
	if f.Err != 0 || len(f.Payload) < 20 {
		t.Fatalf("not the reply to a successful create: %v", f)
	}
	return path.Base(createdPath(f))
}

// createdPath is the path in the reply to a create.
func createdPath(f faultproxy.Frame) string {
	n := int(binary.BigEndian.Uint32(f.Payload[16:]))
	return string(f.Payload[20 : 20+n])
}

// Z1. The client repeats a create with the same guid, keeps the lowest node with that
// guid and deletes the others. The token is that of the node it kept.
func TestCreateReplyLost(t *testing.T) {
	t.Parallel()
	for name, form := range forms {
		for _, losses := range []int{1, 2} {
			t.Run(name+map[int]string{1: "/once", 2: "/twice"}[losses], func(t *testing.T) {
				start(t)
				conn := plain(t, server(t).Addr())
				opts := options()
				opts.Names = form
				client, p := proxied(t, opts)
				for range 5 { // the list that follows a create may overtake it
					checkCreateReplyLost(t, conn, client, p, losses)
				}
			})
		}
	}
}

func checkCreateReplyLost(t *testing.T, conn *zk.Conn, client *zklock.Client, p *faultproxy.Proxy, losses int) {
	t.Helper()
	key := newKey(t)
	parent := prepare(t, conn, key)
	var lost []<-chan faultproxy.Frame
	for range losses {
		lost = append(lost, p.LoseReply(faultproxy.OpCreate, parent))
	}
	lock := granted(t, acquiring(limited(t), client, key))
	first := createdName(t, receive(t, "loss", lost[0]))
	for _, more := range lost[1:] {
		again := createdName(t, receive(t, "loss", more))
		if again[:len(again)-10] != first[:len(first)-10] {
			t.Errorf("repeated as %q after %q", again, first)
		}
	}
	if names := holds(t, conn, parent, 1); names[0] != first {
		t.Errorf("kept %q of the created nodes, not the first, %q", names[0], first)
	}
	checkToken(t, conn, lock, parent+"/"+first)
	release(t, lock)
	noResidue(t, conn, parent)
	noWatches(t, server(t).Addr(), parent)
}

// Z1. The lowest of the client's own nodes counts, even with another contender in
// between.
func TestCreateReplyLostWithWaiterBehind(t *testing.T) {
	start(t)
	addr := server(t).Addr()
	conn := plain(t, addr)
	client, p := proxied(t, nil)
	other := dial(t, addr, nil)
	key := newKey(t)
	parent := prepare(t, conn, key)
	lost := p.LoseReply(faultproxy.OpCreate, parent)
	reconnecting, reconnect := p.HoldRequest(faultproxy.OpConnect, "")
	defer reconnect()
	mine := acquiring(limited(t), client, key)
	first := createdName(t, receive(t, "loss", lost))
	receive(t, "reconnection", reconnecting)
	theirs := acquiring(limited(t), other, key)
	holds(t, conn, parent, 2)
	reconnect()
	lock := granted(t, mine)
	names := holds(t, conn, parent, 2)
	checkToken(t, conn, lock, parent+"/"+first)
	silent(t, "grant to the second", theirs)
	release(t, lock)
	next := granted(t, theirs)
	if next.Token() <= lock.Token() {
		t.Errorf("tokens fall from %v to %v; queue was %q", lock.Token(), next.Token(), names)
	}
	release(t, next)
	noResidue(t, conn, parent)
	noWatches(t, addr, parent)
}

// Z1, Z2. In another session the client creates with another guid.
func TestCreateReplyLostThenSessionExpired(t *testing.T) {
	t.Parallel()
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			start(t)
			conn := plain(t, server(t).Addr())
			opts := options()
			opts.Names = form
			client, p, expire := expirable(t, opts)
			key := newKey(t)
			parent := prepare(t, conn, key)
			lost := p.LoseReply(faultproxy.OpCreate, parent)
			reconnecting, reconnect := p.HoldRequest(faultproxy.OpConnect, "")
			defer reconnect()
			mine := acquiring(limited(t), client, key)
			first := createdName(t, receive(t, "loss", lost))
			receive(t, "reconnection", reconnecting)
			before := client.Conn().SessionID()
			expire()
			reconnect()
			lock := granted(t, mine)
			names := holds(t, conn, parent, 1)
			stat := checkToken(t, conn, lock, parent+"/"+names[0])
			if stat.EphemeralOwner == before || stat.EphemeralOwner != client.Conn().SessionID() {
				t.Errorf("node is owned by %#x; session was %#x, is %#x", stat.EphemeralOwner, before, client.Conn().SessionID())
			}
			if names[0][:len(names[0])-10] == first[:len(first)-10] {
				t.Errorf("the guid of the previous session is used again: %q, %q", first, names[0])
			}
			release(t, lock)
			noResidue(t, conn, parent)
			noWatches(t, server(t).Addr(), parent)
		})
	}
}

// Z2. A client does not take a node with its own guid for its own if another session owns
// it: reading the node shows the owner.
func TestGhostWithOwnGuid(t *testing.T) {
	t.Parallel()
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			start(t)
			addr := server(t).Addr()
			conn := plain(t, addr)
			opts := options()
			opts.Names = form
			client, p := proxied(t, opts)
			key := newKey(t)
			parent := prepare(t, conn, key)
			// The create never arrives, so a node that another session creates under the
			// same name comes first.
			lost := p.LoseRequest(faultproxy.OpCreate, parent)
			reconnecting, reconnect := p.HoldRequest(faultproxy.OpConnect, "")
			defer reconnect()
			mine := acquiring(limited(t), client, key)
			request := receive(t, "loss", lost)
			receive(t, "reconnection", reconnecting)
			ghost, err := conn.Create(request.Path, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
			if err != nil {
				t.Fatal(err)
			}
			reconnect()
			// The client has noticed once there is a node with another guid.
			eventually(t, "the client is in the queue under another guid", func() bool {
				for _, n := range list(t, conn, parent) {
					if !strings.HasPrefix(n, path.Base(request.Path)) {
						return true
					}
				}
				return false
			})
			silent(t, "grant on a ghost", mine)
			if err := conn.Delete(ghost, -1); err != nil {
				t.Fatal(err)
			}
			lock := granted(t, mine)
			names := holds(t, conn, parent, 1)
			stat := checkToken(t, conn, lock, parent+"/"+names[0])
			if stat.EphemeralOwner != client.Conn().SessionID() {
				t.Errorf("node is owned by %#x, session is %#x", stat.EphemeralOwner, client.Conn().SessionID())
			}
			release(t, lock)
			noResidue(t, conn, parent)
			noWatches(t, addr, parent)
		})
	}
}

// Z2. The client compares the session before a create and after its reply. go-zookeeper
// sends a create that it queued in one session in the next. If the reply is lost there,
// the client looks for the node.
func TestCreateQueuedUnderDeadSession(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		t.Run(map[bool]string{false: "reply comes", true: "reply is lost too"}[lost], func(t *testing.T) {
			checkCreateQueued(t, lost)
		})
	}
}

func checkCreateQueued(t *testing.T, lost bool) {
	start(t)
	addr := server(t).Addr()
	conn := plain(t, addr)
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait) // once the client and its proxy are gone: only then does everything in the queue end
	opts := options()
	opts.SessionTimeout = longest // the queue is to last
	client, p, expire := expirable(t, opts)
	key := newKey(t)
	parent := prepare(t, conn, key)

	// Fill the buffers between go-zookeeper's queue and the server until the sender blocks
	// and further requests stay in the queue.
	p.Stall(faultproxy.ToServer)
	ballast := make([]byte, 800<<10)
	for range 60 {
		wg.Go(func() { _, _ = client.Conn().Set("/nowhere", ballast, -1) })
	}
	eventually(t, "sender and queue are full", func() bool {
		return strings.Contains(goroutines(t.Name()), "zk.(*Conn).queueRequest")
	})
	mine := acquiring(limited(t), client, key)
	eventually(t, "the creation is queued", func() bool {
		return strings.Contains(goroutines(t.Name()), "zklock.(*link).createAndList")
	})
	dead := client.Conn().SessionID()
	if lost {
		p.LoseReply(faultproxy.OpCreate, parent)
	}
	p.Cut()
	expire()
	if err := p.Heal(); err != nil {
		t.Fatal(err)
	}
	lock := granted(t, mine)
	names := holds(t, conn, parent, 1)
	stat := checkToken(t, conn, lock, parent+"/"+names[0])
	if stat.EphemeralOwner == dead || stat.EphemeralOwner != client.Conn().SessionID() {
		t.Errorf("node is owned by %#x; session was %#x, is %#x", stat.EphemeralOwner, dead, client.Conn().SessionID())
	}
	release(t, lock)
	noResidue(t, conn, parent)
	noWatches(t, addr, parent)
}

// Z2. A proxy holds a create until its session has expired: the server does not carry it
// out, and the client creates again.
func TestCreateHeldPastSession(t *testing.T) {
	start(t)
	addr := server(t).Addr()
	conn := plain(t, addr)
	client, p, expire := expirable(t, nil)
	key := newKey(t)
	parent := prepare(t, conn, key)
	held, pass := p.HoldRequest(faultproxy.OpCreate, parent)
	defer pass()
	mine := acquiring(limited(t), client, key)
	receive(t, "creation", held)
	expire()
	pass()
	lock := granted(t, mine)
	names := holds(t, conn, parent, 1)
	checkToken(t, conn, lock, parent+"/"+names[0])
	release(t, lock)
	noResidue(t, conn, parent)
	noWatches(t, addr, parent)
}
