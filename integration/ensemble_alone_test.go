package integration_test

import (
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/internal/jute"
)

// aloneLeader is what zklock assumes of a leader that has lost its followers and does not know it yet (hazard Z60): it says that a
// session is over which it was asked to end, although the others know nothing of that, and resume it; it answers no write, not even
// one that is refused; and it breaks its connections before it serves again.
func aloneLeader(t *testing.T, e *zkserver.Ensemble) {
	leader, _ := leaderAndFollowers(t, e)
	at := func(i int) *rawServer {
		return &rawServer{t: t, name: "a server", ids: make(map[int64]int), dial: func() (net.Conn, error) {
			return net.DialTimeout("tcp", e.Servers()[i].Addr(), patience)
		}}
	}
	witness, ended := &rawSession{server: at(leader)}, &rawSession{server: at(leader)}
	for _, s := range []*rawSession{witness, ended} {
		s.begin()
		t.Cleanup(s.hangUp)
	}
	const nowhere, noNode = "/no-such-znode", ": -101"
	read := func() string { return witness.call(rawExists, zkOperation{kind: "exists", path: nowhere}.write) }
	write := func() string {
		return witness.call(rawDelete, zkOperation{kind: "delete", path: nowhere, version: -2}.write)
	}
	if got := write(); !strings.HasSuffix(got, noNode) {
		t.Fatalf("a refused deletion, with a majority: %q", got)
	}

	e.Isolate(leader)
	id, password := ended.id, ended.password
	for word := ""; word != sessionIsOver; {
		ended.xid++
		ended.send(func(e *jute.Encoder) {
			e.Int32(ended.xid)
			e.Int32(rawClose)
		})
		if word = ended.connect(); word == "hung up" {
			verdict.Inconclusive(t, "the leader did not lead any more when it was asked to end a session")
		}
	}
	version, err := zkserver.Version(t.Context(), e.Servers()[leader].Addr())
	must(t, err)
	// Up to 3.5 a server answers nobody behind a write that waits for the majority.
	if !zkserver.Before(version, 3, 6) {
		if got := read(); !strings.HasSuffix(got, noNode) {
			verdict.Inconclusive(t, "the leader did not lead any more when it was asked to read: %q", got)
		}
	}
	if got := write(); got != "hung up" {
		t.Errorf("a refused deletion, without a majority: %q", got)
	}

	ended.hangUp()
	next := majorityLeader(t, e, leader)
	ended.server, ended.id, ended.password = at(next), id, password
	if got := ended.connect(); !strings.HasPrefix(got, "a session of") {
		t.Errorf("the session that was said to be over, at the next leader: %q", got)
	}
	must(t, e.HealAll())
}

// closeAtAloneLeader tests the cure of hazard Z60: Close does not believe such a leader, and says nil only when the session's znodes
// are gone.
func closeAtAloneLeader(t *testing.T, e *zkserver.Ensemble) {
	leader, _ := leaderAndFollowers(t, e)
	p := proxy(t, e.Servers()[leader].Addr())
	client := dial(t, p.Addr(), nil)
	path := nodeOf(t, client, take(t, client, newKey(t)))

	asked, word := make(chan struct{}), make(chan struct{})
	var once, twice sync.Once
	p.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
		const session = 8
		switch {
		case f.Op == faultproxy.OpClose && f.Dir == faultproxy.ToServer:
			once.Do(func() {
				e.Isolate(leader) // so that nobody else hears of it
				close(asked)
			})
		case f.Kind == faultproxy.KindConnect && f.Dir == faultproxy.ToClient && binary.BigEndian.Uint64(f.Payload[session:]) == 0:
			twice.Do(func() { close(word) })
		}
		return faultproxy.Pass
	})
	closed := async(func() error { return client.Close(limited(t)) })
	receive(t, "the request to end the session", asked)
	p.Drop()
	next := majorityLeader(t, e, leader)
	select {
	case <-word:
	default:
		verdict.Inconclusive(t, "the leader was not asked about the session while it was alone")
	}
	there, _, err := plain(t, e.Servers()[next].Addr()).Exists(path)
	must(t, err)
	if !there {
		verdict.Inconclusive(t, "the session was over: the leader was right")
	}
	select {
	case err := <-closed:
		unlessTooLate(t, err)
		t.Fatalf("Close returned %v, and the next leader has %s", err, path)
	default:
	}

	must(t, e.HealAll())
	err = receive(t, "Close returns", closed)
	unlessTooLate(t, err)
	check(t, err)
	conn := plain(t, e.Servers()[next].Addr())
	must(t, errOf(conn.Sync(path)))
	if there, _, err := conn.Exists(path); err != nil || there {
		t.Errorf("after Close there is %s: %v, %v", path, there, err)
	}
}

// unlessTooLate ends a test whose Close has said that it could not be sure within the lease: servers may take long to elect a leader.
func unlessTooLate(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, holdfast.ErrReleasePending) {
		verdict.Inconclusive(t, "there was no leader for a lease: %v", err)
	}
}

// majorityLeader waits until the servers other than one have another leader, and that one leads no more.
func majorityLeader(t *testing.T, e *zkserver.Ensemble, alone int) (leader int) {
	t.Helper()
	must(t, e.WaitModes(limited(t), func(modes []string) bool {
		leader = slices.Index(modes, "leader")
		return leader >= 0 && modes[alone] == "" && slices.Contains(modes, "follower")
	}))
	return leader
}
