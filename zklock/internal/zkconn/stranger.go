package zkconn

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"unicode"
)

// A strangerError says what answered in place of a ZooKeeper server that this client can use. A retry would not help.
type strangerError struct{ error }

func (e strangerError) Unwrap() error { return e.error }

// unanswered notes why a server gave no session after a connection was made, and says more about it if it can.
func (l *Link) unanswered(s *server, err error) error {
	err = fmt.Errorf("%s: %w", s, explain(err))
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.cause = err; hungUp(err) {
		l.refusals++
	}
	return err
}

// explain says more about the end of a connection, or of a TLS handshake, before a server has answered.
func explain(err error) error {
	var header tls.RecordHeaderError
	var op *net.OpError
	switch {
	case errors.As(err, &header):
		return stranger(header.RecordHeader[:])
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return strangerError{fmt.Errorf("its certificate is not accepted: %w", err)}
	case errors.As(err, &op) && op.Op == "remote error": // a TLS alert
		return strangerError{fmt.Errorf("it refuses this client: %w", err)}
	case hungUp(err):
		return fmt.Errorf("it closed the connection without a reply, as a server does without a quorum, or if one side only speaks TLS: %w", err)
	}
	return err
}

// mostShown is how many bytes of a stranger's answer an error shows.
const mostShown = 24

// stranger shows the first bytes of what answers.
func stranger(begins []byte) error {
	if i := bytes.IndexFunc(begins, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) }); i >= 0 {
		begins = begins[:i]
	}
	return strangerError{fmt.Errorf("it does not speak ZooKeeper's protocol, or only over TLS: its answer begins with %q", begins)}
}

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
