package zkfake

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"time"
)

// A Link is the network between one client and the ensemble: a wire to each member.
type Link struct {
	ensemble *Ensemble
	wires    []*Wire
	fate     func() Fate // of each request, with the ensemble's mu; nil: all arrive
}

// Link returns the network of a further client.
func (e *Ensemble) Link() *Link {
	l := &Link{ensemble: e}
	for _, m := range e.members {
		l.wires = append(l.wires, &Wire{link: l, ensemble: e, member: m})
	}
	return l
}

// Wire is the way to one member.
func (l *Link) Wire(member int) *Wire { return l.wires[member] }

// Cut holds all frames of the link, in both directions. Nothing is refused, and no connection ends.
func (l *Link) Cut() { l.hold(true) }

// Heal delivers the frames that Cut has held.
func (l *Link) Heal() { l.hold(false) }

func (l *Link) hold(held bool) {
	for _, w := range l.wires {
		w.Hold(held, held)
	}
}

// holdRequests holds all requests to the members, with the ensemble's mu.
func (l *Link) holdRequests() {
	for _, w := range l.wires {
		w.toServer = true
		for _, c := range w.conns() {
			c.arrange()
		}
	}
}

// IsCut reports whether the link is cut.
func (l *Link) IsCut() bool {
	l.ensemble.mu.Lock()
	defer l.ensemble.mu.Unlock()
	return l.wires[0].toServer
}

// Break ends all connections. Frames on their way are lost.
func (l *Link) Break() {
	for _, w := range l.wires {
		w.Break()
	}
}

// A Wire is the way from one client to one member, with the faults in force on it.
type Wire struct {
	link     *Link
	ensemble *Ensemble
	member   *Member

	// With the ensemble's mu.
	toServer, toClient bool          // held
	late               time.Duration // a further delay of each frame, either way
	silent             bool
	refused            bool
	dismissed          bool
	eventless          bool
	throttles          func(kind int32) bool // nil: none
	losses             []loss
}

// Hold holds or delivers the frames to the member, and from it. No connection is made meanwhile.
func (w *Wire) Hold(toServer, toClient bool) {
	w.ensemble.locked(func() {
		w.toServer, w.toClient = toServer, toClient
		for _, c := range w.conns() {
			c.arrange()
		}
	})
}

// Delay delays all later frames, either way.
func (w *Wire) Delay(late time.Duration) { w.ensemble.locked(func() { w.late = late }) }

// latency is that of a message that is sent now, with the ensemble's mu.
func (w *Wire) latency() time.Duration { return w.ensemble.config.Latency() + w.late }

// Silence holds the frames from the member, but connections are made.
func (w *Wire) Silence(silent bool) {
	w.ensemble.locked(func() {
		w.silent = silent
		for _, c := range w.conns() {
			c.arrange()
		}
	})
}

// Refuse refuses new connections, or takes them again.
func (w *Wire) Refuse(refused bool) { w.ensemble.locked(func() { w.refused = refused }) }

// Dismiss has the member end each new connection right behind its greeting, as servers do that want another way of authentication.
// Later requests of the client are lost.
func (w *Wire) Dismiss(dismissed bool) { w.ensemble.locked(func() { w.dismissed = dismissed }) }

// LoseEvents loses the events of watches. No server should; a client must not wait for ever if one does.
func (w *Wire) LoseEvents(lost bool) { w.ensemble.locked(func() { w.eventless = lost }) }

// Throttle has requests answered without being carried out, as an overloaded member does, if refuse returns true for
// their kind. With nil none are. (zookeeper.throttled_op_wait_time, from ZooKeeper 3.7 on: RequestThrottler.)
func (w *Wire) Throttle(refuse func(kind int32) bool) {
	w.ensemble.locked(func() { w.throttles = refuse })
}

// throttled reports whether a request is answered so. Pings and the end of a session never are, and credentials are looked at
// before that: Request.isThrottlable.
func (w *Wire) throttled(kind int32) bool {
	return w.throttles != nil && kind != opPing && kind != opCloseSession && kind != opSetAuth && w.throttles(kind)
}

// Break ends all connections. Frames on their way are lost.
func (w *Wire) Break() { w.end((*conn).gone) }

// Sever ends all connections for the client, as the end of its process does: frames that it has sent arrive.
func (w *Wire) Sever() { w.end((*conn).sever) }

func (w *Wire) end(end func(*conn)) {
	w.ensemble.locked(func() {
		for _, c := range w.conns() {
			end(c)
		}
	})
}

// Used reports whether the client is connected to the member.
func (w *Wire) Used() bool {
	w.ensemble.mu.Lock()
	defer w.ensemble.mu.Unlock()
	return slices.ContainsFunc(w.conns(), func(c *conn) bool { return c.session != 0 && !c.closed })
}

func (w *Wire) conns() []*conn {
	return slices.DeleteFunc(slices.Collect(maps.Keys(w.ensemble.conns)), func(c *conn) bool { return c.wire != w })
}

// A loss is what happens to the next request of a kind.
type loss struct {
	kind      int32
	ends      bool          // the connection ends with it
	delivered bool          // the request arrives nevertheless
	after     time.Duration // the member passes it on so late
	answered  time.Duration // the answer comes so late
	refusal   code          // by which it is answered without being carried out; 0 if it is carried out
	twice     bool          // it is answered as if it had been carried out a second time
	last      bool          // the connection ends right behind the answer
}

// LoseRequest loses the next request of a kind. The connection ends with it.
func (w *Wire) LoseRequest(kind int32) { w.lose(loss{kind: kind, ends: true}) }

// LoseReply has the next request of a kind carried out. The connection ends before the reply.
func (w *Wire) LoseReply(kind int32) { w.lose(loss{kind: kind, ends: true, delivered: true}) }

// EndBehind ends the connection right behind the answer to the next request of a kind.
func (w *Wire) EndBehind(kind int32) { w.lose(loss{kind: kind, last: true}) }

// Late ends the connection with the next write of a kind, which the member passes on only after a time, as a busy server
// does. It is carried out unless the session has moved to another member.
func (w *Wire) Late(kind int32, after time.Duration) {
	w.lose(loss{kind: kind, ends: true, delivered: true, after: after})
}

// Answer answers the next request of a kind by an error of KeeperException.Code, and does not carry it out.
func (w *Wire) Answer(kind, refusal int32) { w.lose(loss{kind: kind, refusal: code(refusal)}) }

// AppliedTwice has the next request of a kind carried out, and answered as if its transaction had been carried out once more. A member
// that shuts down at that moment does so, because it reads the transaction from its log while it is being committed
// (ZKDatabase.fastForwardDataBase, DataTree.processTxn).
func (w *Wire) AppliedTwice(kind int32) { w.lose(loss{kind: kind, twice: true}) }

func (w *Wire) lose(l loss) { w.ensemble.locked(func() { w.losses = append(w.losses, l) }) }

// Disarm forgets the losses that no request has met.
func (w *Wire) Disarm() { w.ensemble.locked(func() { w.losses = nil }) }

// A Fate is what becomes of a request, whatever it asks for. The zero Fate is that it arrives.
type Fate struct{ loss loss }

// Lost is the fate of a request that does not arrive. The connection ends with it.
func Lost() Fate { return Fate{loss{ends: true}} }

// Unanswered is the fate of a request that is carried out, a write after a time. The connection ends before the reply.
func Unanswered(after time.Duration) Fate {
	return Fate{loss{ends: true, delivered: true, after: after}}
}

// AnsweredLate is the fate of a request whose answer comes after a time. Later requests of the client are held until Heal.
func AnsweredLate(after time.Duration) Fate { return Fate{loss{answered: after}} }

// SetFate asks next for the fate of each request from now on but pings, to whichever member; nil lets all arrive.
func (l *Link) SetFate(next func() Fate) { l.ensemble.locked(func() { l.fate = next }) }

// meets takes the loss that a request meets, if there is one.
func (w *Wire) meets(kind int32) loss {
	if next := w.link.fate; next != nil && kind != opPing {
		if fate := next(); fate != (Fate{}) {
			return fate.loss
		}
	}
	i := slices.IndexFunc(w.losses, func(l loss) bool { return l.kind == kind })
	if i < 0 {
		return loss{}
	}
	met := w.losses[i]
	w.losses = slices.Delete(w.losses, i, i+1)
	return met
}

var errRefused = errors.New("connection refused")

// redial is how long a connection attempt waits before it is sent again. TCP waits for a second or more; the clients of tests
// expect to be back soon after a link has healed.
const redial = 10 * time.Millisecond

// Dial connects to a member by its address, as [net.Dialer.DialContext] does.
func (l *Link) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	e := l.ensemble
	failed := func(err error) (net.Conn, error) { return nil, &net.OpError{Op: "dial", Net: network, Err: err} }
	i := slices.Index(e.Addrs(), address)
	if i < 0 {
		return failed(errRefused)
	}
	w := l.wires[i]
	var wait time.Duration
	e.locked(func() { wait = w.latency() })
	for ; ; wait = redial {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return failed(ctx.Err())
		}
		var c net.Conn
		var err error
		e.locked(func() {
			switch {
			case e.over || w.refused || !w.member.serves():
				err = errRefused
			case !w.toServer && !w.toClient:
				c = w.connect()
			}
		})
		switch {
		case err != nil:
			return failed(err)
		case c != nil:
			return c, nil
		}
	}
}

// connect makes a connection to the member, and returns the client's end.
func (w *Wire) connect() net.Conn {
	client, server := net.Pipe()
	e := w.ensemble
	c := &conn{member: w.member, wire: w, socket: server, in: e.newQueue(w.latency), out: e.newQueue(w.latency)}
	e.conns[c] = struct{}{}
	c.arrange()
	e.running.Go(c.read)
	return client
}
