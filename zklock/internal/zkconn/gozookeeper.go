package zkconn

import (
	"context"
	"sync"
	"time"
)

// What is assumed of go-zookeeper 1.0.4, beyond its documentation. TestGoZooKeeper has a case for each, by the same name, against the
// version in go.mod; after an upgrade it tells which of them has changed.
//
//	frames       It writes each frame by one Write, and reads the length of a frame by a Read of its own. See wire.go.
//	session-id   It stores the id of a session before it sends anything under it, and before it reports the session. See InSession.
//	later        What it is handed without a connection it sends on the next one, in whatever session that has. See batches.drop.
//	answers      When a connection ends, it answers all that it has sent there, and when it is closed, all that it was handed.
//	order        It reports an event before it answers what was answered after it. See own znodes: Owner.
//	renewal      After a reconnection it renews all watches that it has, from the zxid of the last reply on, and by one request if they
//	             are few; it hands itself that request and does not wait for it. See opened, and settle.
//	unrenewed    If a server refuses that, it goes on as if nothing had happened. See errNotRewatched.
//	credentials  After a reconnection it sends credentials before anything else, and waits for their answers. See settle.
//	twice        A request that it cannot write it answers twice; credentials, which have room for one answer, make it stand still for
//	             ever. So a Write never fails, but for the first: see Wire.Write.
//	expired      When it is told that its session is over, it reports so, drops all watches, and leaves the connection open. See Wire.Read.
//	rounds       It looks whether it is to be closed only between two rounds of servers, and pauses for a second there. See ring.
//	unsent       It answers what it has not sent as a round ends, and not when it stops. See ring.rest.
//	closing      It asks a server to end the session when it is closed, last of all, and begins no session after that. See EndSession.
//	unnamed      It makes an error of a code that it does not know, and says so by a text. See named.

// ring is a zk.HostProvider for which the link picks the server. It leaves the delays to dial.
type ring struct {
	servers []string
	pick    func() string // nil: the first, always
	closing context.Context

	rests    chan struct{}   // closed when go-zookeeper wants a server, and is to be given none; nil if nobody waits for that
	restOnce sync.Once       // for that
	quitting <-chan struct{} // closed as it is told to quit
}

func (r *ring) Init(servers []string) error {
	r.servers = servers
	return nil
}

func (r *ring) Len() int { return len(r.servers) }

// Next returns the next server. Saying that a round is over makes go-zookeeper
// look whether it is being closed, which it does nowhere else.
func (r *ring) Next() (server string, roundOver bool) {
	server = r.servers[0]
	roundOver = r.closing.Err() != nil
	switch {
	case roundOver && r.rests != nil:
		r.rest()
	case r.pick != nil:
		server = r.pick()
	}
	return server, roundOver
}

// rest returns when go-zookeeper has been handed the end of the session. It then answers that, as all that it has not sent, before it
// stops. If that came later, nobody would answer it, and zk.Conn.Close waits for a second.
func (r *ring) rest() {
	r.restOnce.Do(func() { close(r.rests) })
	<-r.quitting
	time.Sleep(handTime)
}

// handTime is long for what zk.Conn.Close does before it waits.
const handTime = 5 * time.Millisecond

func (r *ring) Connected() {}

// discard keeps go-zookeeper from writing to stderr.
type discard struct{}

func (discard) Printf(string, ...any) {}
