package history

// Kinds of [Record].
type What string

// Records of client processes. Calls have two: Invoke is taken before the call, Return after it.
const (
	Invoke What = "invoke"
	Return What = "return"
	Held   What = "held"  // At was taken, and then Err was nil; in a term, Err of the lock or of the ctx of lead
	Lost   What = "lost"  // At was taken after Err had ceased to be nil, without a release
	Told   What = "told"  // Observe told the holders of the key; Token is of the oldest grant, or 0: it is free
	Asked  What = "asked" // At was taken after the holder was told that its lock is asked for
	Idle   What = "idle"  // only observations are under way; there are no new calls
)

// Records of the run itself.
const (
	Wrote   What = "wrote"   // a client's write has reached the fenced register of its key; At is when
	Begin   What = "begin"   // a fault begins; At is taken before
	End     What = "end"     // it has ended; At is taken after
	Started What = "started" // a process
	Stopped What = "stopped" // by SIGSTOP; At is taken after
	Resumed What = "resumed" // by SIGCONT; At is taken before
	Killed  What = "killed"  // At is taken after the process was gone
	Exited  What = "exited"  // on its own, cleanly
	Calm    What = "calm"    // all faults are over; there are no new ones
	Quiet   What = "quiet"   // no client acquires or holds a key any more, and observers have had time to be told of it
)

// The calls of a client.
const (
	Acquire = "acquire"
	Try     = "try"
	Verify  = "verify"
	Release = "release"
	Break   = "break" // Token is of the broken grant
	Jump    = "jump"  // no call of a client: the process sets its wall clock
	Lead    = "lead"  // not by a client, but of its lead, by Election.Run; its candidacy is an Acquire, its end a Release
	Resign  = "resign"
	Observe = "observe"
	Ask     = "ask"      // Token is of the grant whose holder is asked
	SetData = "set data" // Data is the data, different each time
	Close   = "close"    // of the client, with all its locks and calls
)

// ByClose is the Cause of a lock that ended because its client was closed.
const ByClose = "closed"

// Outcomes of a call.
const (
	OK      = "ok"      // success; of Close, that all locks were released; of Lead, that the lock was live to the end
	Refused = "refused" // of Acquire and Try: the key is held (ErrHeld)
	Gone    = "gone"    // the lock had ended (ErrLost, ErrTTLExpired); of Break: another grant holds the key (ErrChanged)
	Pending = "pending" // of Release and Resign: it continues in the background; of Close: the rest ends with its lease
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
	Owner   string `json:"owner,omitempty"` // of Invoke of acquire and try, of their Return, if OK, and of Told

	// Of calls. Op is the same for Invoke and Return, and for no other call of the process.
	// Told has the Op of the observation.
	Op      int64  `json:"op,omitempty"`
	Call    string `json:"call,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	Now     bool   `json:"now,omitempty"`     // of Invoke of break: without waiting for the holder, on an engine that is Watched
	Reclaim bool   `json:"reclaim,omitempty"` // of Invoke of acquire: it ends earlier grants of its owner
	Stands  bool   `json:"stands,omitempty"`  // of the same: it stands for election, and need not ask all the time
	All     bool   `json:"all,omitempty"`     // of the same: with other keys, of which it may have some while it waits for the next
	TTL     int64  `json:"ttl,omitempty"`     // of the same, in nanoseconds; of Invoke of close, how long its ctx lasts
	Mode    Mode   `json:"mode,omitzero"`     // of Invoke of acquire and try, of Wrote, of Told, and of the holder that Named names
	By      int64  `json:"by,omitempty"`      // of Invoke of jump: nanoseconds forward, or back if it is negative

	// Of Told: the data of the oldest grant, and the other holders, in the order that was told. Data is of Invoke of set data, too.
	Data   string   `json:"data,omitempty"`
	Others []Holder `json:"others,omitempty"`

	// Of Return of acquire and try: the holder that the error names.
	Named *Holder `json:"named,omitempty"`

	// Of Lost, and of Return of release that found the lock gone: the name that outcome.End gives, such as "session_expired",
	// or ByClose.
	Cause string `json:"cause,omitempty"`

	// Of Wrote. The fenced register of a key refuses a token that is lower than the highest token of an exclusive lock that it has seen.
	Accepted bool `json:"accepted,omitempty"`

	// Of Begin and End. N is the same for both.
	N      int    `json:"n,omitempty"`
	Fault  string `json:"fault,omitempty"`
	Target string `json:"target,omitempty"` // such as "server 2, client 1"

	Note string `json:"note,omitempty"`
}

// Holder is a holder of a key.
type Holder struct {
	Token uint64 `json:"token"`
	Owner string `json:"owner,omitempty"`
	Data  string `json:"data,omitempty"`
}
