package dynamofake

import (
	"time"
)

// An Op is a request that a client is about to send.
type Op struct {
	// Name is that of the operation, such as "UpdateItem".
	Name string
	// Input is a copy of the input, such as *dynamodb.UpdateItemInput.
	Input any
}

// A Fault is injected into one request. The zero value injects nothing.
//
// Where a call does not get an answer, it blocks until its ctx ends, as with a
// packet that is lost, unless an error says what the client notices at once.
type Fault struct {
	lost      bool // the request does not arrive in time for an answer
	late      bool // but it arrives some day
	mute      bool // the answer does not arrive
	delay     time.Duration
	backDelay time.Duration
	connect   time.Duration // time to get a connection; below 0: there is none
	err       error
}

// Fail makes the call fail at once; the service never sees the request.
func Fail(err error) Fault { return Fault{lost: true, err: err} }

// Refuse makes the call fail at once for want of a connection: nothing is sent.
func Refuse() Fault { return Fault{connect: -1, err: refused()} }

// Connect makes the call wait for a connection. If its ctx ends before there is one,
// nothing is sent.
func Connect(d time.Duration) Fault { return Fault{connect: d} }

// Drop loses the request.
func Drop() Fault { return Fault{lost: true} }

// LoseReply lets the service carry out the request and loses the reply. With an error,
// the call fails with it when the reply would have come.
func LoseReply(err error) Fault { return Fault{mute: true, err: err} }

// Delay makes the request arrive later. It arrives even if the call has given up
// by then.
func Delay(d time.Duration) Fault { return Fault{delay: d} }

// DelayReply makes the answer arrive later.
func DelayReply(d time.Duration) Fault { return Fault{backDelay: d} }

// DeliverLate makes the request arrive d from now, when nobody waits for it any more: the
// call fails at once with err, or gets no reply. To a retry, the first request is a
// delayed duplicate. It is on its way already: Cut does not stop it.
func DeliverLate(d time.Duration, err error) Fault {
	return Fault{lost: true, late: true, delay: d, err: err}
}
