package zkconn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// sessionToEnd is a session that the client has to end without go-zookeeper, which has one session at a time and tries to end that
// once. There are three cases:
//
//   - The client has left the session, since its timeout has grown too much (see [zktimes.Times.Longest]). The servers know nothing
//     of that, and keep it with its znodes. The next session deletes those that are not wanted any more, but it cannot know of a
//     creation that is still on its way. The client ends the session when it closes, or when the lease that it had is over, and
//     with it everything that was held in it.
//   - A server has said that the session is over. What was held in it is lost by that, but its znodes may stand: see confirmOver. So
//     the client makes sure, in the background or when it closes.
//   - The client closes, and go-zookeeper has had no answer. If it had one, the session is noted as over.
//
// Of each session that was begun there is one at most, until a server that has a quorum has confirmed its end; and where none has, no
// session begins.
type sessionToEnd struct {
	greeting []byte // a ConnectRequest that resumes it

	// Guarded by the link's mutex.
	timeout  time.Duration  // that it has at the servers
	resumed  driver.Instant // when it was, last
	refusals int            // servers in a row that have hung up instead of greeting
	over     bool           // go-zookeeper may have to be told so yet
	timer    driver.Timer   // of the next try in the background; nil if it was left as the client closed
}

// leaveLocked has a session resumed no more.
func (l *Link) leaveLocked(s *Session, timeout time.Duration) {
	s.left.Store(true)
	l.endLaterLocked(l.noteToEndLocked(s, timeout), s.Times().Session)
}

// saidOverLocked is called when a server has said that the present session is over, or has given another one. It returns that which
// was the present one. The background asks when it should be over by the servers' clocks, too: to end it sooner would take from its
// holders what is left of their leases.
func (l *Link) saidOverLocked() *Session {
	s := l.session
	l.session = nil
	if s != nil && l.toEnd[s.ID] == nil {
		l.endLaterLocked(l.noteToEndLocked(s, l.times.Session), s.Times().Session)
	}
	return s
}

// noteToEndLocked notes that a session is to be ended without go-zookeeper. It has nobody do so yet.
func (l *Link) noteToEndLocked(s *Session, timeout time.Duration) *sessionToEnd {
	one := &sessionToEnd{greeting: s.greeting, timeout: timeout, resumed: l.host.Now()}
	l.toEnd[s.ID] = one
	return one
}

// endLaterLocked has the background try to end one, after a while, at each server once. A try that fails may have begun its
// timeout anew, and is repeated when that must be over, ever more seldom.
func (l *Link) endLaterLocked(one *sessionToEnd, after time.Duration) {
	if l.dialling.Err() != nil {
		return
	}
	// Clients that have left their sessions together are not to come back together.
	one.timer = l.host.AfterFunc(after+rand.N(after/4+1), func() {
		l.tasks.Go(func(context.Context) {
			servers := l.resolve(l.dialling)
			for _, i := range rand.Perm(len(servers)) {
				if l.endAt(l.dialling, servers[i], one) == nil {
					return
				}
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.endLaterLocked(one, max(2*one.timeout, 2*after))
		})
	})
}

// forgetEndedLocked is called when a session begins. go-zookeeper knows by then that those before it are over, and asks for none of
// them any more.
func (l *Link) forgetEndedLocked() {
	maps.DeleteFunc(l.toEnd, func(_ int64, one *sessionToEnd) bool { return one.over })
}

// endAll ends the sessions that are to be ended. It goes on until all are
// over, ctx ends, or all servers refuse. It returns nil if all are over. The background has ceased to try by now: see noMore.
func (l *Link) endAll(ctx context.Context) error {
	l.mu.Lock()
	all := maps.Clone(l.toEnd)
	for _, one := range all {
		if one.timer != nil {
			one.timer.Stop()
		}
	}
	l.mu.Unlock()
	var sides sync.WaitGroup
	ids := slices.Sorted(maps.Keys(all))
	failures := make([]error, len(ids))
	for i, id := range ids { // at the same time: one that cannot be ended keeps no other
		one := all[id]
		sides.Go(func() {
			if err := l.endOne(ctx, one); err != nil {
				l.mu.Lock()
				defer l.mu.Unlock()
				failures[i] = fmt.Errorf("zookeeper: the end of session %#x is not confirmed; its nodes go when the servers have not heard of it for %v: %w: %w",
					id, one.timeout, driver.ErrDisconnected, err)
			}
		})
	}
	sides.Wait()
	return errors.Join(failures...)
}

// errRefused is why a session that a server has resumed cannot be ended there. Nothing is resumed by what another session cannot do.
var errRefused = errors.New("refused")

// endOne ends one of them, at one server after the other. The first is the one that the client was connected to last.
func (l *Link) endOne(ctx context.Context, one *sessionToEnd) error {
	l.mu.Lock()
	over := one.over
	servers := slices.SortedFunc(slices.Values(l.servers), func(a, b *server) int { return b.turn - a.turn })
	l.mu.Unlock()
	refusals, tried := 0, 0
	for failures := 0; !over; {
		if tried == len(servers) {
			servers, tried = l.resolve(ctx), 0
		}
		err := l.endAt(ctx, servers[tried], one)
		tried++
		if err == nil {
			break
		}
		if errors.Is(err, errRefused) {
			refusals++
		}
		failures++
		// Each server that resumes the session begins its timeout anew.
		if refusals >= len(servers) || !backoff.Sleep(ctx, backoff.Jittered(dialDelay(failures, l.Times().Redial)), nil) {
			return err
		}
	}
	return nil
}

// resumption returns the ConnectRequest that resumes a session. Where all servers hang up on a client that has seen more than they have,
// for longer than the session can last, they have lost their data (see rewriteConnect): then it says that it has seen nothing.
func (l *Link) resumption(one *sessionToEnd) []byte {
	const zxid = 8
	l.mu.Lock()
	defer l.mu.Unlock()
	if one.refusals < 2*len(l.servers) || l.host.Now().Sub(one.resumed) <= 2*one.timeout {
		return one.greeting
	}
	b := bytes.Clone(one.greeting)
	binary.BigEndian.PutUint64(b[zxid:], 0)
	return b
}

// endAt ends a session at one server.
func (l *Link) endAt(ctx context.Context, s *server, one *sessionToEnd) error {
	over, err := l.resumeAndEnd(ctx, s, one)
	if err == nil && over {
		err = l.confirmOver(ctx, s, one)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one.over = true
	if id := sessionIn(one.greeting); l.session != nil && l.session.ID != id {
		delete(l.toEnd, id) // go-zookeeper has the next one
	}
	return nil
}

// confirmOver is for a session of which a server has said that it is over. A leader says so as soon as it has been asked to end it, or
// lets it expire (SessionTracker.setSessionClosing), and may have lost its majority: then the next leader brings the session back,
// with all of its timeout.
//
// So the client begins another session there, asks again, and then makes a write in that other session, on the same connection.
// A server breaks its connections before it follows another leader. So the write was made by the leader that has answered the
// question, with a majority, and the end of the session, which comes before it, was too.
//
// That assumes that two connections to one IP address and port lead to one server, and not to any behind a balancer; and that a leader
// which lets a session expire has asked for its end by the time that it takes the write. It does so right behind the step by which the
// session is over for those who ask (SessionTrackerImpl.run), and the write comes a round trip to the client later; but what a follower
// passes on takes another way than that (LeaderZooKeeperServer.submitLearnerRequest).
func (l *Link) confirmOver(ctx context.Context, s *server, one *sessionToEnd) error {
	witness, err := l.visit(ctx, s)
	if err != nil {
		return err
	}
	defer witness.leave()
	defer witness.part()                                     // whatever comes of it: it has nothing
	if err := witness.begin(l.Times().Session); err != nil { // shorter, it might end before the question is answered
		return fmt.Errorf("another session: %v", err) // and not errRefused
	}
	over, err := l.resumeAndEnd(ctx, s, one)
	if err != nil {
		return err
	}
	if over {
		if err := witness.write(); err != nil {
			return fmt.Errorf("a write in another session: %w", err)
		}
	}
	return nil
}

// resumeAndEnd resumes a session at one server and ends it, or reports that the server says that it is over.
func (l *Link) resumeAndEnd(ctx context.Context, s *server, one *sessionToEnd) (over bool, err error) {
	v, err := l.visit(ctx, s)
	if err != nil {
		return false, err
	}
	defer v.leave()
	greeting := l.resumption(one)
	g, err := v.greet(greeting)
	if hungUp(err) {
		l.mu.Lock()
		one.refusals++
		l.mu.Unlock()
	}
	if err != nil {
		return false, err
	}
	if g.session != 0 && g.session != sessionIn(greeting) {
		return false, errNoGreeting
	}
	l.mu.Lock()
	one.refusals = 0
	if g.session != 0 {
		one.resumed, one.timeout = l.host.Now(), g.timeout
	}
	l.mu.Unlock()
	if g.session == 0 {
		return true, nil
	}
	if err := v.authenticate(); err != nil {
		return false, err
	}
	return v.end()
}
