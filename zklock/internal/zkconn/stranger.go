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

// unanswered notes why a server gave no session, and says more about it if it can.
func (l *Link) unanswered(s *server, err error) error {
	err = fmt.Errorf("%s: %w", s, explain(err))
	l.noteCause(s, err)
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

// stranger tells from its first bytes what answers.
func stranger(begins []byte) error {
	text, _, _ := bytes.Cut(begins, []byte("\r"))
	text, _, _ = bytes.Cut(text, []byte("\n"))
	printable := !bytes.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) })
	switch {
	case bytes.HasPrefix(begins, []byte("HTTP")):
		return strangerError{errors.New("it is an HTTP server, such as ZooKeeper's AdminServer, and not a port for ZooKeeper's clients")}
	case (begins[0] == 0x15 || begins[0] == 0x16) && begins[1] == 3: // an alert, or a part of a handshake
		return strangerError{errors.New("it speaks TLS, which this client was not told to use")}
	case len(text) >= 4 && printable:
		return strangerError{fmt.Errorf("it does not speak ZooKeeper's protocol: its answer begins with %q", text)}
	}
	return strangerError{errors.New("it does not speak ZooKeeper's protocol")}
}

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
