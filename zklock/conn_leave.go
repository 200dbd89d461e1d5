package zklock

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/jute"
	"github.com/holdfast-go/holdfast/internal/network"
)

// left is a session that the client has left, since its timeout has grown too much (see [zktimes.Times.Longest]). The servers know
// nothing of that, and keep it with its znodes. The next session deletes those that are not wanted any more, but it
// cannot know of a creation that is still on its way. So the client goes back once more and ends it: when it closes, or
// else when the lease is over that the session had, and with that all that was held in it. go-zookeeper
// has one session at a time: this is done without it.
type left struct {
	greeting []byte         // a ConnectRequest that resumes it
	at       driver.Instant // when it was left
	timeout  time.Duration  // that it has at the servers
	timer    driver.Timer
}

// leaveLocked has a session resumed no more. w is a connection on which it was.
func (l *link) leaveLocked(s *session, w *wire, timeout time.Duration) {
	s.left.Store(true)
	l.left[s.id] = &left{
		greeting: w.greeting,
		at:       l.host.Now(),
		timeout:  timeout,
		timer: l.host.AfterFunc(s.times().Session, func() {
			l.tasks.Go(func(context.Context) { _ = l.endLeft(l.closing, "") })
		}),
	}
}

// endLeft ends the sessions that were left. It tries the server at an address first, if that is not "". It returns nil if all
// are over; else it goes on trying until ctx ends.
func (l *link) endLeft(ctx context.Context, first string) error {
	l.mu.Lock()
	all := maps.Clone(l.left)
	l.mu.Unlock()
	for id, one := range all {
		if err := l.endOne(ctx, one, first); err != nil {
			return fmt.Errorf("zookeeper: the end of session %#x, which was left as its timeout had grown to %v, is not confirmed: %w: %w",
				id, one.timeout, holdfast.ErrDisconnected, err)
		}
		l.forget(id)
	}
	return nil
}

// forget is called when a session that was left is over.
func (l *link) forget(id int64) {
	l.mu.Lock()
	if one := l.left[id]; one != nil {
		one.timer.Stop()
		delete(l.left, id)
	}
	s := l.session
	l.mu.Unlock()
	if s != nil && s.id == id { // there has been no server since to say so
		l.expired()
	}
}

// endOne ends one of them, at one server after the other. Where all hang up on a client that has seen more than they have, for
// longer than the session can last, they have lost their data (see ask): then it says that it has seen nothing.
func (l *link) endOne(ctx context.Context, one *left, first string) error {
	const zxid = 8
	ctx = network.Of(ctx, l.closing)
	t := l.negotiated()
	servers := l.servers
	if first != "" {
		servers = append([]string{first}, servers...)
	}
	greeting := one.greeting
	for failures, refusals := 0, 0; ; {
		err := l.endAt(ctx, servers[failures%len(servers)], greeting, t.FirstReply)
		if err == nil {
			return nil
		}
		failures++
		if errors.Is(err, errTurnedAway) {
			refusals++
		}
		if refusals >= 2*len(servers) && l.host.Now().Sub(one.at) > 2*one.timeout {
			greeting = bytes.Clone(greeting)
			binary.BigEndian.PutUint64(greeting[zxid:], 0)
		}
		if !backoff.Sleep(ctx, jittered(dialDelay(failures, t.Redial)), nil) {
			return err
		}
	}
}

// errTurnedAway is the error of a server that hangs up instead of greeting.
var errTurnedAway = errors.New("the server hung up")

// endAt resumes a session at one server and ends it. The server may take so long for each answer.
func (l *link) endAt(ctx context.Context, address string, greeting []byte, patience time.Duration) (err error) {
	const session, xid = 20, 1
	id := int64(binary.BigEndian.Uint64(greeting[session:]))
	conn, err := l.reachWithin(ctx, address, patience)
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
	answer, err := c.exchange(greeting)
	switch {
	case err != nil && hungUp(err):
		return fmt.Errorf("%w: %w", errTurnedAway, err)
	case err != nil:
		return err
	}
	_, _ = answer.Int32(), answer.Int32() // protocol, timeout
	switch resumed := answer.Int64(); {
	case answer.Bad || resumed != id && resumed != 0:
		return errors.New("this is no greeting of a server that was asked for a session")
	case resumed == 0:
		return nil // it is over
	}
	for _, auth := range l.opts.Auth { // a server may serve nobody else
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
	return nil
}

// reachWithin is reach for a limited time.
func (l *link) reachWithin(ctx context.Context, address string, limit time.Duration) (net.Conn, error) {
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
