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
// A call that gets no reply blocks until its ctx ends, unless the fault has an error,
// which the client sees at once.
type Fault struct {
	lost      bool // the request does not arrive in time for an answer
	late      bool // but it arrives later
	mute      bool // the answer does not arrive
	delay     time.Duration
	backDelay time.Duration
	connect   time.Duration // time to get a connection; below 0: there is none
	err       error
}

// Fail makes the call fail at once; the service never sees the request.
func Fail(err error) Fault { return Fault{lost: true, err: err} }

// Refuse refuses the connection: nothing is sent.
func Refuse() Fault { return Fault{connect: -1, err: refused()} }

// Connect delays the connection. If ctx ends first, nothing is sent.
func Connect(d time.Duration) Fault { return Fault{connect: d} }

// Drop loses the request.
func Drop() Fault { return Fault{lost: true} }

// LoseReply lets the service carry out the request and loses the reply. If err is not
// nil, the call fails with it when the reply would have come.
func LoseReply(err error) Fault { return Fault{mute: true, err: err} }

// Delay delays the request. It arrives even if the call has given up.
func Delay(d time.Duration) Fault { return Fault{delay: d} }

// DelayReply delays the reply.
func DelayReply(d time.Duration) Fault { return Fault{backDelay: d} }

// DeliverLate delivers the request after d, when nobody waits for it: the call fails at
// once with err, or gets no reply. Cut does not stop the request. After a retry it is a
// delayed duplicate.
func DeliverLate(d time.Duration, err error) Fault {
	return Fault{lost: true, late: true, delay: d, err: err}
}
