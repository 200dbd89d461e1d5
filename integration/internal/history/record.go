package history

// Kinds of [Record].
type What string

// Records of client processes. Calls have two: Invoke is taken before the call, Return after it.
const (
	Invoke What = "invoke"
	Return What = "return"
	Held   What = "held" // At was taken, and then Err was nil
	Lost   What = "lost" // At was taken after Err had ceased to be nil, without a release
)

// Records of the process that runs all others.
const (
	Wrote   What = "wrote"   // a register was asked to take a value; registers answer one request after the other
	Begin   What = "begin"   // a fault begins; At is taken before
	End     What = "end"     // it has ended; At is taken after
	Started What = "started" // a process
	Stopped What = "stopped" // by SIGSTOP; At is taken after
	Resumed What = "resumed" // by SIGCONT; At is taken before
	Killed  What = "killed"  // At is taken after the process was gone
	Exited  What = "exited"  // on its own, cleanly
	Calm    What = "calm"    // all faults are over; there are no new ones
)

// The calls of a client.
const (
	Acquire = "acquire"
	Try     = "try"
	Verify  = "verify"
	Release = "release"
	Break   = "break" // Token is that of the grant which is broken
	Jump    = "jump"  // no call of a client: the process sets its wall clock
)

// Outcomes of a call.
const (
	OK      = "ok"      // granted, verified, released, broken
	Refused = "refused" // of Acquire and Try: somebody has it (ErrHeld)
	Gone    = "gone"    // the lock had ended (ErrLost, ErrTTLExpired); of Break: another grant holds the key (ErrChanged)
	Pending = "pending" // of Release: it goes on in the background
	GaveUp  = "gave up" // the ctx of the call ended; of Acquire and Try, no lock; of Verify, no answer
	Closed  = "closed"  // the client was closed
	Failed  = "failed"  // anything else, see Note
)

// Record is one event. Fields that its kind does not use are omitted.
type Record struct {
	At      int64  `json:"at"` // nanoseconds of [Now]
	What    What   `json:"what"`
	Process string `json:"process,omitempty"` // such as "3.2": the second process in slot 3
	Key     string `json:"key,omitempty"`
	Token   uint64 `json:"token,omitempty"` // of the grant that the record is about; of Return of acquire and try, if OK
	Owner   string `json:"owner,omitempty"` // of Return of acquire and try, if OK; of Invoke, if Reclaim

	// Of calls. Op is the same for Invoke and Return, and for no other call of the process.
	Op      int64  `json:"op,omitempty"`
	Call    string `json:"call,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	Reclaim bool   `json:"reclaim,omitempty"` // of Invoke of acquire: earlier grants of its owner are to end
	TTL     int64  `json:"ttl,omitempty"`     // of the same, in nanoseconds
	By      int64  `json:"by,omitempty"`      // of Invoke of jump: nanoseconds forward, or back if it is negative

	// Of Lost, and of calls that have failed: a sentinel's name such as "ErrSessionExpired".
	Cause string `json:"cause,omitempty"`

	// Of Wrote. A fenced register takes no value with a token lower than the highest that it has seen.
	Fenced   bool `json:"fenced,omitempty"`
	Accepted bool `json:"accepted,omitempty"`

	// Of Begin and End. N is the same for both.
	N      int    `json:"n,omitempty"`
	Fault  string `json:"fault,omitempty"`
	Target string `json:"target,omitempty"` // what the fault hits, such as "server 2, client 1"

	Note string `json:"note,omitempty"`
}
