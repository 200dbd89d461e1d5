package holdfast

import "time"

// An EventKind says what an [Event] reports.
type EventKind int

// The kinds of events. [Events] has a channel for each of the first five. OnEvent, in the Options of each engine, receives all.
const (
	Ready        EventKind = iota + 1 // the engine is reachable
	Disconnected                      // the engine is unreachable; locks live on until their Deadline
	TTLExpired                        // a lock reached its TTL
	Lost                              // a lock was lost
	Asked                             // another client asked for a live lock: see [Client.Ask]

	Started      // a call of Acquire, TryAcquire or AcquireAny has begun, or AcquireAll has begun with one of its keys
	Queued       // a waiter read its place in the queue, and others are ahead; never on DynamoDB
	Granted      // the acquisition has its lock
	Failed       // the acquisition has failed
	Released     // Release or Close ended a lock; the engine may not have confirmed it yet
	TermBegan    // an [Election] is about to call lead
	TermEnded    // lead has returned or panicked; not reported if Close gave up the wait for lead
	ObserveBegan // the first of concurrent [Client.Observe] loops for a key has begun
	Observed     // observers receive a state of a key
	ObserveEnded // the last of these loops has ended
	Heartbeat    // a request to keep a lease alive has succeeded or failed; never on memlock
)

var kindNames = [...]string{
	"unknown", "ready", "disconnected", "ttl expired", "lost", "asked", "started", "queued", "granted", "failed", "released",
	"term began", "term ended", "observe began", "observed", "observe ended", "heartbeat",
}

// String returns the name of the kind in lower case.
func (k EventKind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		k = 0
	}
	return kindNames[k]
}

// An Event reports something that happened to a client. Each kind sets Seq, Kind and Time, and these fields:
//
//	Ready, Disconnected          none
//	Started                      ID, Key, Owner, Wait
//	Queued                       ID, Key, Owner, Ahead
//	Granted                      ID, Key, Owner, Wait, Token, Took (since Started)
//	Failed                       ID, Key, Owner, Wait, Err, Took (since Started)
//	Asked                        ID, Key, Owner, Token, Took (since Granted)
//	Released, TTLExpired, Lost   ID, Key, Owner, Token, Err, Took (since Granted)
//	TermBegan                    ID, Key, Owner, Token
//	TermEnded                    ID, Key, Owner, Token, Err, Cause, Took (since TermBegan)
//	ObserveBegan, ObserveEnded   Key
//	Observed                     Key, Holders; Owner and Token of the oldest holder
//	Heartbeat                    Key, Err, Took (since the request was sent)
//
// An OnEvent function receives the events in the order of Seq, one at a time, on a goroutine of the client. Their Times never
// decrease. One Granted or Failed follows each Started, and one Released, TTLExpired or Lost follows each Granted, all before
// [Client.Close] returns. OnEvent may run later than what it reports, and before Dial or New returns. A slow OnEvent delays only
// further events and Close. Pending events stay in memory without limit; if the process exits without Close, they are lost, as are
// log records. OnEvent must not call Close or end its goroutine; a panic in it ends the process.
type Event struct {
	Seq  uint64 // numbers all events of the client
	Kind EventKind
	Time time.Time // on the client's clock

	ID      uint64        // of the acquisition, from 1: the same from Started to the end of the lock
	Key     string        // "" for AcquireAny before Granted, and for a heartbeat of a session
	Owner   string        // the owner name of the hold
	Token   Token         // the fencing token of the hold
	Wait    bool          // the call waits for holders
	Ahead   int           // how many requests are ahead in the queue, holders included
	Holders int           // how many hold the key; 0: the key is free
	Took    time.Duration // since the earlier event that the table names
	Err     error         // why the acquisition, heartbeat or lead failed, or Lock.Err; nil if lead only reports the end of its term
	Cause   error         // what ended the term before lead returned: Lock.Err or the cause of lead's ctx; nil if lead returned first
}
