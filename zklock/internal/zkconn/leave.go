package zkconn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/jute"
	"github.com/holdfast-go/holdfast/internal/network"
)

// leftSession is a session that the client has to end without go-zookeeper, which has one session at a time and tries to end that
// once. There are two cases:
//
//   - The client has left the session, since its timeout has grown too much (see [zktimes.Times.Longest]). The servers know nothing
//     of that, and keep it with its znodes. The next session deletes those that are not wanted any more, but it cannot know of a
//     creation that is still on its way. The client ends the session when it closes, or when the lease that it had is over, and
//     with it everything that was held in it.
//   - The client closes, and go-zookeeper has had no answer.
type leftSession struct {
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
	l.endLaterLocked(l.oweLocked(s, timeout), s.Times().Session)
}

// oweLocked notes that a session is to be ended without go-zookeeper.
func (l *Link) oweLocked(s *Session, timeout time.Duration) *leftSession {
	one := &leftSession{greeting: s.greeting, timeout: timeout, resumed: l.host.Now()}
	l.left[s.ID] = one
	return one
}

// endLaterLocked has the background try to end one, after a while, at each server once. A try that fails may have begun its
// timeout anew, and is repeated when that must be over, ever more seldom.
func (l *Link) endLaterLocked(one *leftSession, after time.Duration) {
	if l.dialling.Err() != nil {
		return
	}
	// Clients that have left their sessions together are not to come back together.
	one.timer = l.host.AfterFunc(after+rand.N(after/4+1), func() {
		l.tasks.Go(func(context.Context) {
			for _, i := range rand.Perm(len(l.servers)) {
				if l.endAt(l.dialling, l.servers[i], one) == nil {
					return
				}
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.endLaterLocked(one, max(2*one.timeout, 2*after))
		})
	})
}

// forgetLocked is called when a session begins: go-zookeeper has been told that those before it are over.
func (l *Link) forgetLocked() {
	maps.DeleteFunc(l.left, func(_ int64, one *leftSession) bool { return one.over })
}

// endLeft ends the sessions that were left, and of which nobody has said that they are over. It tries the server at an address first, if
// that is not "". It returns nil if all are over; else it goes on trying until ctx ends. The background tries no more: see noMore.
func (l *Link) endLeft(ctx context.Context, first string) error {
	l.mu.Lock()
	all := maps.Clone(l.left)
	for _, one := range all {
		if one.timer != nil {
			one.timer.Stop()
		}
	}
	l.mu.Unlock()
	for id, one := range all {
		if err := l.endOne(ctx, one, first); err != nil {
			return fmt.Errorf("zookeeper: the end of session %#x is not confirmed; its nodes go when the servers have not heard of it for %v: %w: %w",
				id, one.timeout, driver.ErrDisconnected, err)
		}
	}
	return nil
}

// endOne ends one of them, at one server after the other.
func (l *Link) endOne(ctx context.Context, one *leftSession, first string) error {
	l.mu.Lock()
	over := one.over
	l.mu.Unlock()
	servers := l.servers
	if first != "" {
		servers = append([]string{first}, servers...)
	}
	for failures := 0; !over; {
		err := l.endAt(ctx, servers[failures%len(servers)], one)
		if err == nil {
			break
		}
		failures++
		if !backoff.Sleep(ctx, backoff.Jittered(dialDelay(failures, l.Times().Redial)), nil) {
			return err
		}
	}
	return nil
}

// resumption returns the ConnectRequest that resumes a session. Where all servers hang up on a client that has seen more than they have,
// for longer than the session can last, they have lost their data (see rewriteConnect): then it says that it has seen nothing.
func (l *Link) resumption(one *leftSession) []byte {
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

// endAt resumes a session at one server and ends it.
func (l *Link) endAt(ctx context.Context, address string, one *leftSession) (err error) {
	const xid = 1
	patience := l.Times().FirstReply
	conn, err := l.reachWithin(network.Of(ctx, l.closing), address, patience)
	if err != nil {
		return err
	}
	closed := make(chan struct{})
	unlessCut := context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = conn.Close()
	})
	defer func() {
		if unlessCut() {
			_ = conn.Close()
		} else {
			<-closed
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", address, err)
		}
	}()

	c := plainConn{conn, patience}
	greeting := l.resumption(one)
	answer, err := c.exchange(greeting)
	if err != nil {
		if hungUp(err) {
			l.mu.Lock()
			one.refusals++
			l.mu.Unlock()
		}
		return err
	}
	if over, err := l.greeted(one, greeting, answer); over || err != nil {
		return err
	}
	for _, auth := range l.config.Auth { // a server may serve nobody else
		code, err := c.request(xidAuth, opSetAuth, func(e *jute.Encoder) {
			e.Int32(0)
			e.String(auth.Scheme)
			e.Bytes([]byte(auth.Credentials))
		})
		if err != nil || code != 0 {
			return cmp.Or(err, fmt.Errorf("credentials of scheme %q are refused: error %d", auth.Scheme, code))
		}
	}
	code, err := c.request(xid, opCloseSession, func(*jute.Encoder) {})
	if err != nil || code != 0 && code != codeSessionExpired {
		return cmp.Or(err, fmt.Errorf("the end of the session is refused: error %d", code))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one.over = true
	return nil
}

// greeted takes in the answer to a ConnectRequest, and reports whether the session is over.
func (l *Link) greeted(one *leftSession, greeting []byte, answer *jute.Decoder) (over bool, err error) {
	const session = 20
	_, timeout, id := answer.Int32(), answer.Int32(), answer.Int64()
	if answer.Bad || id != 0 && id != int64(binary.BigEndian.Uint64(greeting[session:])) {
		return false, errors.New("this is no greeting of a server that was asked for a session")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one.refusals = 0
	if one.over = id == 0; !one.over {
		one.resumed, one.timeout = l.host.Now(), time.Duration(timeout)*time.Millisecond
	}
	return one.over, nil
}

// reachWithin is reach for a limited time.
func (l *Link) reachWithin(ctx context.Context, address string, limit time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return l.reach(ctx, "tcp", address)
}

// plainConn is a connection on which one request is made after the other.
type plainConn struct {
	net.Conn
	patience time.Duration // for an answer
}

// request returns the code of the reply to a request.
func (c plainConn) request(xid, op int32, rest func(e *jute.Encoder)) (code int32, err error) {
	reply, err := c.exchange(jute.Frame(func(e *jute.Encoder) {
		e.Int32(xid)
		e.Int32(op)
		rest(e)
	}))
	for err == nil {
		of, _, code := reply.Int32(), reply.Int64(), reply.Int32()
		if reply.Bad {
			return 0, errors.New("a reply without a header")
		}
		if of == xid {
			return code, nil
		}
		reply, err = c.read() // that was an event, say
	}
	return 0, err
}

// exchange sends one frame and reads one.
func (c plainConn) exchange(frame []byte) (*jute.Decoder, error) {
	if err := c.SetDeadline(time.Now().Add(c.patience)); err != nil {
		return nil, err
	}
	if _, err := c.Write(frame); err != nil {
		return nil, err
	}
	return c.read()
}

func (c plainConn) read() (*jute.Decoder, error) {
	const most = 1 << 16
	var length [4]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(length[:])
	if size > most {
		return nil, fmt.Errorf("an answer of %d bytes, which no server would give", size)
	}
	b := make([]byte, size)
	_, err := io.ReadFull(c, b)
	return &jute.Decoder{Rest: b}, err
}
