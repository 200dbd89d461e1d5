package zklock

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/jute"
	"github.com/holdfast-go/holdfast/internal/network"
)

// A session whose timeout has grown too much is left (see [zktimes.Times.Longest]), but the servers keep it, with its
// znodes, until that timeout is over. While the client is open, the next session deletes those that are not wanted any more.
// A client that closes goes back to each session that it has left, and ends it: the next one cannot know of a
// creation that is still on its way. go-zookeeper has one session at a time, so that is done without it.

// leaveLocked has a session resumed no more. w is a connection on which it was.
func (l *link) leaveLocked(s *session, w *wire) {
	l.left[s.id] = w.greeting
	s.left.Store(true)
}

// endLeft ends the sessions that were left. It tries the server at an address first, if that is not "". It returns nil if all
// are over; else it goes on trying until ctx ends.
func (l *link) endLeft(ctx context.Context, first string) error {
	l.mu.Lock()
	left := maps.Clone(l.left)
	l.mu.Unlock()
	for id, greeting := range left {
		if err := l.returnAndEnd(ctx, greeting, first); err != nil {
			return fmt.Errorf("zookeeper: the end of session %#x, which was left as its timeout had grown, is not confirmed: %w: %w",
				id, holdfast.ErrDisconnected, err)
		}
		l.mu.Lock()
		delete(l.left, id)
		l.mu.Unlock()
	}
	return nil
}

// returnAndEnd ends one of them, on one server after the other.
func (l *link) returnAndEnd(ctx context.Context, greeting []byte, first string) error {
	ctx = network.Of(ctx, l.closing)
	t := l.negotiated()
	servers := l.servers
	if first != "" {
		servers = append([]string{first}, servers...)
	}
	for failures := 0; ; {
		err := l.endAt(ctx, servers[failures%len(servers)], greeting, t.FirstReply)
		if err == nil {
			return nil
		}
		failures++
		if !backoff.Sleep(ctx, jittered(dialDelay(failures, t.Redial)), nil) {
			return err
		}
	}
}

// endAt ends one at one server, which may take so long for each answer. greeting is the ConnectRequest that resumes the session.
func (l *link) endAt(ctx context.Context, address string, greeting []byte, patience time.Duration) error {
	dialling, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := l.reach(dialling, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	ask := func(request []byte) (*jute.Decoder, error) {
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			return nil, err
		}
		if _, err := conn.Write(request); err != nil {
			return nil, err
		}
		return readFrame(conn)
	}

	greeted, err := ask(greeting)
	if err != nil {
		return err
	}
	_, _ = greeted.Int32(), greeted.Int32() // protocol, timeout
	if id := greeted.Int64(); id == 0 && !greeted.Bad {
		return nil // it is over
	}
	const xid = 1
	requests := make([][]byte, 0, len(l.opts.Auth)+1)
	for _, auth := range l.opts.Auth { // a server may serve nobody else
		requests = append(requests, jute.Frame(func(e *jute.Encoder) {
			e.Int32(xidAuth)
			e.Int32(opSetAuth)
			e.Int32(0)
			e.String(auth.Scheme)
			e.Bytes([]byte(auth.Credentials))
		}))
	}
	requests = append(requests, jute.Frame(func(e *jute.Encoder) {
		e.Int32(xid)
		e.Int32(opCloseSession)
	}))
	for _, request := range requests {
		reply, err := ask(request)
		if err != nil {
			return err
		}
		_, _ = reply.Int32(), reply.Int64() // xid, zxid
		if code := reply.Int32(); code != 0 && code != codeSessionExpired || reply.Bad {
			return fmt.Errorf("%s answers with error %d", address, code)
		}
	}
	return nil
}

// readFrame reads one short frame.
func readFrame(conn net.Conn) (*jute.Decoder, error) {
	const most = 1 << 16
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(length[:])
	if size > most {
		return nil, fmt.Errorf("an answer of %d bytes, which ZooKeeper would not give", size)
	}
	b := make([]byte, size)
	_, err := io.ReadFull(conn, b)
	return &jute.Decoder{Rest: b}, err
}
