package faulthttp

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// Errors that a client may see instead of a reply. Silence is not an error: nothing comes until the client's ctx ends.
var (
	Reset   error = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	EOF     error = io.ErrUnexpectedEOF
	Silence error
)

// Fault is what happens to one request.
type Fault struct {
	kind          kind
	before, after time.Duration   // delays of the request and of the reply
	until         <-chan struct{} // closed when a late or stalled request continues
	seen          error           // instead of a reply; nil is silence
	answer        *answer
}

type kind int

const (
	pass kind = iota
	loseRequest
	loseReply
	late
	stalled
	answered
)

// Pass is no fault.
var Pass = Fault{}

func (f Fault) isPass() bool { return f == Pass }

// LoseRequest drops the request: the server never sees it. The client sees an error, such as [Reset], or [Silence].
func LoseRequest(seen error) Fault { return Fault{kind: loseRequest, seen: seen} }

// LoseReply lets the server answer, and then drops the reply: the client sees an error or [Silence]. The server gets the
// request even if the client gives up.
func LoseReply(seen error) Fault { return Fault{kind: loseReply, seen: seen} }

// LateUntil shows the client an error, or [Silence], at once, and delivers the request to the server when a channel is closed.
func LateUntil(released <-chan struct{}, seen error) Fault {
	return Fault{kind: late, seen: seen, until: released}
}

// StallUntil holds the request in flight until a channel is closed. Then it arrives, even if the client has given up; a
// client that still waits gets the reply.
func StallUntil(released <-chan struct{}) Fault { return Fault{kind: stalled, until: released} }

// DelayRequest delivers the request after d. If the client's ctx ends first, the server never sees it.
func DelayRequest(d time.Duration) Fault { return Fault{before: d} }

// DelayReply delivers the server's reply after d.
func DelayReply(d time.Duration) Fault { return Fault{after: d} }

// Delay delivers both the request and the server's reply after d.
func Delay(d time.Duration) Fault { return Fault{before: d, after: d} }

// Answer drops the request and answers in the server's place with an error as DynamoDB would: an HTTP status, an error code
// such as "ThrottlingException", and a text.
func Answer(status int, code, text string) Fault {
	return Fault{kind: answered, answer: &answer{status: status, code: code, text: text}}
}

// Throttled is the answer to a request that exceeds the table's provisioned throughput.
func Throttled() Fault {
	return Answer(400, "ProvisionedThroughputExceededException", "The level of configured provisioned throughput for the table was exceeded.")
}

// RateLimited is the answer to a request that exceeds the service's rate limit.
func RateLimited() Fault {
	return Answer(400, "ThrottlingException", "Rate of requests exceeds the allowed throughput.")
}

// ServerError is the answer of a service with an internal error.
func ServerError() Fault {
	return Answer(500, "InternalServerError", "The request could not be processed because of an internal error.")
}

// Denied is the answer to a client whose policy forbids the operation.
func Denied() Fault {
	return Answer(400, "AccessDeniedException", "User is not authorized to perform this operation.")
}
