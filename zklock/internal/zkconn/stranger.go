package zkconn

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"time"
	"unicode"

	"github.com/holdfast-go/holdfast/internal/network"
)

// Frames are bounded before go-zookeeper sees their length: it allocates what
// that says, and what is not a ZooKeeper server says anything ("HTTP" is 1.2 GB).
// The last bound leaves room for servers whose jute.maxbuffer was raised from 1 MB,
// and for the names of a quarter of a million waiters, which no such bound is for.
const (
	leastGreeting = 20 // bytes of a ConnectResponse with no password
	mostGreeting  = 256
	leastReply    = 16 // bytes of a reply's header
	mostReply     = 16 << 20
)

// checkLength refuses a frame by its length, when that has come.
func (w *Wire) checkLength() error {
	size := binary.BigEndian.Uint32(w.header[:])
	switch greeted := w.greeted(); {
	case !greeted && (size < leastGreeting || size > mostGreeting):
		begins := w.header[:4:4]
		if b, ok := w.Conn.(*buffered); ok {
			begins = append(begins, b.ahead(mostShown-len(begins))...)
		}
		return stranger(begins)
	case greeted && (size < leastReply || size > mostReply):
		return fmt.Errorf("zookeeper: a reply of %d bytes: those from %d bytes to %d MiB are read", size, leastReply, mostReply>>20)
	}
	return nil
}

// greeted reports whether a ZooKeeper server has answered.
func (w *Wire) greeted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trust != nil
}

// explain says more about the end of a connection on which nobody has answered,
// and notes it.
func (w *Wire) explain(err error) error {
	if w.greeted() {
		return err
	}
	ctx, cancel := context.WithTimeout(w.link.closing, time.Second)
	defer cancel()
	return w.link.unanswered(ctx, w.server, err)
}

// unanswered notes why a server has not come to answer, and says it better if it can.
func (l *Link) unanswered(ctx context.Context, s *server, err error) error {
	l.mu.Lock()
	before := l.times == nil // the first session
	l.mu.Unlock()
	if before {
		err = explain(ctx, s.at, l.config.TLS != nil, err)
	}
	err = fmt.Errorf("%s: %w", s, err)
	l.noteCause(s, err)
	return err
}

// A strangerError says what has answered instead of a ZooKeeper server with which
// this client could talk. Waiting makes nothing better.
type strangerError struct {
	what string
	err  error // may be nil
}

func (e *strangerError) Error() string {
	if e.err == nil {
		return e.what
	}
	return e.what + ": " + e.err.Error()
}

func (e *strangerError) Unwrap() error { return e.err }

const (
	wantsTLS  = "it speaks TLS, which this client was not told to use"
	wantsNone = "it is a ZooKeeper server that does not speak TLS, which this client was told to use"
)

// stranger tells by its first bytes what answers.
func stranger(begins []byte) error {
	switch {
	case bytes.HasPrefix(begins, []byte("HTTP")):
		return &strangerError{what: "it is an HTTP server, such as ZooKeeper's own AdminServer, and not at a port for ZooKeeper's clients"}
	case (begins[0] == 0x15 || begins[0] == 0x16) && begins[1] == 3: // an alert, or a part of a handshake
		return &strangerError{what: wantsTLS}
	}
	text, _, _ := bytes.Cut(begins, []byte("\r"))
	text, _, _ = bytes.Cut(text, []byte("\n"))
	if len(text) >= 4 && !bytes.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) }) {
		return &strangerError{what: fmt.Sprintf("it does not speak ZooKeeper's protocol: its answer begins with %q", text)}
	}
	return &strangerError{what: "it does not speak ZooKeeper's protocol"}
}

// mostShown is how much of a stranger's answer is shown.
const mostShown = 24

// explain says more about the end of a connection, or of a TLS handshake, before a
// server has answered. A port that speaks TLS hangs up on a client that does not,
// and the reverse, without a word. So it is asked in the other way, by what leaves
// nothing behind there: the beginning of a handshake, or a word that every ZooKeeper
// server answers, if only to say that it must not. A port that answers both ways
// (client.portUnification) has hung up for another reason.
func explain(ctx context.Context, address string, secure bool, err error) error {
	var header tls.RecordHeaderError
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &header):
		return stranger(header.RecordHeader[:])
	case errors.As(err, &cert):
		return &strangerError{what: "its certificate is not accepted", err: err}
	case errors.As(err, &op) && op.Op == "remote error": // a TLS alert
		return &strangerError{what: "it refuses this client", err: err}
	case !hungUp(err):
		return err
	case secure && answersPlain(ctx, address) && !answersTLS(ctx, address):
		return &strangerError{what: wantsNone}
	case !secure && answersTLS(ctx, address) && !answersPlain(ctx, address):
		return &strangerError{what: wantsTLS}
	}
	return fmt.Errorf("it has hung up without an answer, as a server without a quorum does: %w", err)
}

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func answersTLS(ctx context.Context, address string) bool {
	conn, err := network.Dial(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	// It is not going to be trusted with anything.
	err = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx)
	if err == nil {
		return true
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

func answersPlain(ctx context.Context, address string) bool {
	conn, err := network.Dial(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return false
	}
	answer, _ := io.ReadAll(io.LimitReader(conn, 256))
	return slices.ContainsFunc([]string{"Zookeeper version", "ZooKeeper instance", "srvr is not executed"}, func(text string) bool {
		return bytes.Contains(answer, []byte(text))
	})
}
