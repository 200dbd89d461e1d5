package zkconn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/holdfast-go/holdfast/internal/jute"
	"github.com/holdfast-go/holdfast/internal/network"
)

// A visit is a connection to one server, beside go-zookeeper's, on which one request is made after the other.
type visit struct {
	net.Conn
	auth     []Auth
	patience time.Duration // for an answer
	last     int32         // xid
	leave    func()        // closes it, as the end of ctx does
}

// visit connects to a server, for as long as ctx lasts.
func (l *Link) visit(ctx context.Context, s *server) (*visit, error) {
	patience := l.Times().FirstReply
	within, cancel := context.WithTimeout(network.Of(ctx, l.closing), patience)
	defer cancel()
	conn, err := l.reach(within, "tcp", s)
	if err != nil {
		return nil, err
	}
	closed := make(chan struct{})
	unlessCut := context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = conn.Close()
	})
	return &visit{Conn: conn, auth: l.config.Auth, patience: patience, leave: func() {
		if unlessCut() {
			_ = conn.Close()
		} else {
			<-closed
		}
	}}, nil
}

// greeting is a server's answer to a ConnectRequest.
type greeting struct {
	session int64 // 0 if the one that was asked for is over
	timeout time.Duration
}

var errNoGreeting = errors.New("this is no greeting of a server that was asked for a session")

// greet sends a ConnectRequest.
func (v *visit) greet(request []byte) (greeting, error) {
	answer, err := v.exchange(request)
	if err != nil {
		return greeting{}, err
	}
	_, timeout, session := answer.Int32(), answer.Int32(), answer.Int64()
	if answer.Bad {
		return greeting{}, errNoGreeting
	}
	return greeting{session, time.Duration(timeout) * time.Millisecond}, nil
}

// sessionIn returns the session that a ConnectRequest asks for.
func sessionIn(request []byte) int64 {
	const at = 20
	return int64(binary.BigEndian.Uint64(request[at:]))
}

// begin begins a session of a timeout.
func (v *visit) begin(timeout time.Duration) error {
	g, err := v.greet(jute.Frame(func(e *jute.Encoder) {
		e.Int32(0)
		e.Int64(0)
		e.Int32(int32(timeout.Milliseconds()))
		e.Int64(0)
		e.Bytes(make([]byte, passwordBytes))
	}))
	if err == nil && g.session == 0 {
		err = errNoGreeting
	}
	if err != nil {
		return err
	}
	return v.authenticate()
}

// authenticate presents the credentials: a server may serve nobody else.
func (v *visit) authenticate() error {
	for _, auth := range v.auth {
		code, err := v.request(xidAuth, opSetAuth, func(e *jute.Encoder) {
			e.Int32(0)
			e.String(auth.Scheme)
			e.Bytes([]byte(auth.Credentials))
		})
		if err == nil && code != 0 {
			err = fmt.Errorf("credentials of scheme %q: %w: %w", auth.Scheme, errRefused, codeError(code))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// end ends the session, or reports that the server says that it was over.
func (v *visit) end() (over bool, err error) {
	v.last++
	code, err := v.request(v.last, opCloseSession, func(*jute.Encoder) {})
	if err == nil && code != 0 && code != codeSessionExpired {
		err = fmt.Errorf("the end of the session: %w: %w", errRefused, codeError(code))
	}
	return code == codeSessionExpired, err
}

// part asks for the end of the session, and does not wait for the answer.
func (v *visit) part() {
	v.last++
	_ = v.send(jute.Frame(func(e *jute.Encoder) {
		e.Int32(v.last)
		e.Int32(opCloseSession)
	}))
}

// write makes a write that changes nothing: it deletes a znode that is not there, or not in this version. The leader asks a majority to
// agree to its error, whichever of those that a deletion can have.
func (v *visit) write() error {
	const (
		path    = "/holdfast-no-such-znode"
		version = -2 // which no znode has
	)
	v.last++
	code, err := v.request(v.last, opDelete, func(e *jute.Encoder) {
		e.String(path)
		e.Int32(version)
	})
	if err != nil {
		return err
	}
	switch codes[code] {
	case "NONODE", "NOAUTH", "BADVERSION", "NOTEMPTY":
		return nil
	}
	return codeError(code)
}

// request returns the code of the reply to a request.
func (v *visit) request(xid, op int32, rest func(e *jute.Encoder)) (code int32, err error) {
	reply, err := v.exchange(jute.Frame(func(e *jute.Encoder) {
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
		reply, err = v.read() // that was an event, say
	}
	return 0, err
}

// exchange sends one frame and reads one.
func (v *visit) exchange(frame []byte) (*jute.Decoder, error) {
	if err := v.send(frame); err != nil {
		return nil, err
	}
	return v.read()
}

func (v *visit) send(frame []byte) error {
	if err := v.SetDeadline(time.Now().Add(v.patience)); err != nil {
		return err
	}
	_, err := v.Write(frame)
	return err
}

func (v *visit) read() (*jute.Decoder, error) {
	const most = 1 << 16
	var length [4]byte
	if _, err := io.ReadFull(v, length[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(length[:])
	if size > most {
		return nil, fmt.Errorf("an answer of %d bytes, which no server would give", size)
	}
	b := make([]byte, size)
	_, err := io.ReadFull(v, b)
	return &jute.Decoder{Rest: b}, err
}
