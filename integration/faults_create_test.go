package integration_test

import (
	"encoding/binary"
	"path"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
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

// createdPath is the path in the reply to a create, or to a transaction that begins with one.
func createdPath(f faultproxy.Frame) string {
	body := f.Payload[16:]
	if f.Op == faultproxy.OpMulti {
		body = body[9:] // what kind of member comes first
	}
	n := int(binary.BigEndian.Uint32(body))
	return string(body[4 : 4+n])
}

// guid is a node's name without its number.
func guid(name string) string { return name[:len(name)-10] }

// checkOwn fails the test unless a lock's node is the only one, belongs to the client's session, and has the lock's
// token. It returns the node's name.
func (s *scene) checkOwn(t *testing.T, lock *holdfast.Lock) string {
	t.Helper()
	name := holds(t, s.conn, s.parent, 1)[0]
	if stat := checkToken(t, s.conn, lock, s.parent+"/"+name); stat.EphemeralOwner != s.client.Conn().SessionID() {
		t.Errorf("node is owned by %#x, session is %#x", stat.EphemeralOwner, s.client.Conn().SessionID())
	}
	return name
}

// Z1. The client finds its node by the guid, and creates no other. The token is that of the node.
func TestCreateReplyLost(t *testing.T) {
	t.Parallel()
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			playOnBoth(t, &zklock.Options{Names: form}, func(t *testing.T, s *scene) {
				for range 5 { // the list that follows a create may overtake it
					s.key = newKey(t)
					s.parent = prepare(t, s.conn, s.key)
					lost := s.proxy.LoseReply(faultproxy.OpCreate, s.parent)
					lock := s.take(t)
					first := createdName(t, receive(t, "loss", lost))
					if kept := s.checkOwn(t, lock); kept != first {
						t.Errorf("the client uses %q, and not the node that it created, %q", kept, first)
					}
					release(t, lock)
					s.clean(t)
				}
			})
		})
	}
}

// Z1. The client keeps its place, even with another contender behind it.
func TestCreateReplyLostWithWaiterBehind(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		lost, mine, reconnect := s.loseCreation(limited(t), t, losses["reply"])
		first := createdName(t, lost)
		theirs := acquiring(limited(t), s.other(t), s.key)
		holds(t, s.conn, s.parent, 2)
		reconnect()
		lock := granted(t, mine)
		names := holds(t, s.conn, s.parent, 2)
		checkToken(t, s.conn, lock, s.parent+"/"+first)
		silent(t, "grant to the second", theirs)
		release(t, lock)
		next := granted(t, theirs)
		if next.Token() <= lock.Token() {
			t.Errorf("tokens fall from %v to %v; queue was %q", lock.Token(), next.Token(), names)
		}
		release(t, next)
		s.clean(t)
	})
}

// Z1, Z2. In another session the client creates with another guid.
func TestCreateReplyLostThenSessionExpired(t *testing.T) {
	t.Parallel()
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			play(t, &zklock.Options{Names: form}, func(t *testing.T, s *scene) {
				lost, mine, reconnect := s.loseCreation(limited(t), t, losses["reply"])
				first := createdName(t, lost)
				before := s.client.Conn().SessionID()
				s.expire()
				reconnect()
				lock := granted(t, mine)
				node := s.checkOwn(t, lock)
				if before == s.client.Conn().SessionID() {
					t.Errorf("session %#x goes on", before)
				}
				if guid(node) == guid(first) {
					t.Errorf("the guid of the previous session is used again: %q, %q", first, node)
				}
				release(t, lock)
				s.clean(t)
			})
		})
	}
}

// Z2. A client does not take a node with its own guid for its own if another session owns it: reading the node shows the
// owner.
func TestGhostWithOwnGuid(t *testing.T) {
	t.Parallel()
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			play(t, &zklock.Options{Names: form}, func(t *testing.T, s *scene) {
				// The create never arrives, so a node that another session creates under the
				// same name comes first.
				request, mine, reconnect := s.loseCreation(limited(t), t, losses["request"])
				ghost, err := s.conn.Create(request.Path, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
				must(t, err)
				reconnect()
				// The client has noticed once there is a node with another guid.
				eventually(t, "the client is in the queue under another guid", func() bool {
					for _, n := range list(t, s.conn, s.parent) {
						if !strings.HasPrefix(n, path.Base(request.Path)) {
							return true
						}
					}
					return false
				})
				silent(t, "grant on a ghost", mine)
				s.delete(t, ghost)
				lock := granted(t, mine)
				s.checkOwn(t, lock)
				release(t, lock)
				s.clean(t)
			})
		})
	}
}

// queueUp fills the buffers between go-zookeeper's queue and the server until the sender blocks and further requests
// stay in the queue.
func (s *scene) queueUp(t *testing.T) {
	t.Helper()
	s.proxy.Stall(faultproxy.ToServer)
	ballast := make([]byte, 48<<10)
	for range 1100 { // more than the proxy takes; some end only with the client, and start waits for that
		go func() { _, _ = s.client.Conn().Set("/nowhere", ballast, -1) }()
	}
	runs(t, "zk.(*Conn).queueRequest")
}

// runs waits until a goroutine of the test is in a function.
func runs(t *testing.T, function string) {
	t.Helper()
	eventually(t, "a goroutine is in "+function, func() bool { return strings.Contains(goroutines(t.Name()), function) })
}

// Z2. The client compares the session before a create and after its reply. go-zookeeper sends a create that it queued in
// one session in the next. If the reply is lost there, the client looks for the node.
func TestCreateQueuedUnderDeadSession(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"reply comes": false, "reply is lost too": true} {
		t.Run(name, func(t *testing.T) {
			// The session is to outlast what is in the queue.
			play(t, &zklock.Options{SessionTimeout: longest}, func(t *testing.T, s *scene) {
				s.prepare(t)
				s.queueUp(t)
				mine := s.acquiring(limited(t))
				runs(t, "zkconn.(*Link).Create.")
				dead := s.client.Conn().SessionID()
				if lost {
					s.proxy.LoseReply(faultproxy.OpCreate, s.parent)
				}
				s.proxy.Cut()
				s.expire()
				must(t, s.proxy.Heal())
				lock := granted(t, mine)
				s.checkOwn(t, lock)
				if dead == s.client.Conn().SessionID() {
					t.Errorf("session %#x goes on", dead)
				}
				release(t, lock)
				s.clean(t)
			})
		})
	}
}

// Z2. A proxy holds a create until its session has expired: the server does not carry it out, and the client creates
// again.
func TestCreateHeldPastSession(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		s.prepare(t)
		held, pass := s.proxy.HoldRequest(faultproxy.OpCreate, s.parent)
		defer pass()
		mine := s.acquiring(limited(t))
		receive(t, "creation", held)
		s.expire()
		pass()
		lock := granted(t, mine)
		s.checkOwn(t, lock)
		release(t, lock)
		s.clean(t)
	})
}
