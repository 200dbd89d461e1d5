// Package nemesis plans the faults of a chaos run. A plan depends only on its seed and the shape of the run: the same seed
// gives the same faults at the same times, for the same clients, servers and keys.
package nemesis

import "time"

// Kind is a kind of fault.
type Kind string

// Between one client and its servers.
const (
	LostReply   Kind = "lost reply"   // the server carries out a request, but its reply is lost
	LostRequest Kind = "lost request" // the connection ends with the request
	LateRequest Kind = "late request" // the client gets an error, the request arrives later
	Duplicated  Kind = "duplicated"   // a copy of a request arrives later
	Cut         Kind = "cut"          // connections are reset, new ones refused
	BlackHole   Kind = "black hole"   // nothing gets through, no connection is closed
	OneWayIn    Kind = "one way in"   // requests get through, replies do not
	OneWayOut   Kind = "one way out"  // replies get through, requests do not
	HalfOpen    Kind = "half open"    // a server accepts connections and never answers
	Stall       Kind = "stall"        // everything is late, nothing is lost
	Throttled   Kind = "throttled"    // the service throttles requests
	HungUpOn    Kind = "hung up on"   // each connection ends behind the greeting
	EventsLost  Kind = "events lost"  // the servers do not send what watches report
	Broken      Kind = "broken"       // the service answers 500
)

// Of the servers.
const (
	FollowerCutOff Kind = "follower cut off" // from the other servers, with its clients
	LeaderCutOff   Kind = "leader cut off"   // from its followers, with its clients
	LinkCut        Kind = "link cut"         // between two servers
	LinkTurned     Kind = "link turned"      // the leader's messages to a follower arrive late, and then the replies are lost
	LeaderKilled   Kind = "leader killed"
	LeaderPaused   Kind = "leader paused"
	FollowerPaused Kind = "follower paused"
	ServerPaused   Kind = "server paused"   // the only one
	PrimaryLags    Kind = "primary lags"    // some clients' reads that need not be the latest show earlier states
	PrimaryDeposed Kind = "primary deposed" // some clients are left with it: it shows an earlier state, and confirms no write
	RollingRestart Kind = "rolling restart"
	LimitsChanged  Kind = "limits changed" // a rolling restart, with other ticks and bounds of session timeouts
)

// Of the client processes, and of the operator.
const (
	ClientPaused  Kind = "client paused"  // for longer than its lease
	ClientKilled  Kind = "client killed"  // another process replaces it
	ClientClosed  Kind = "client closed"  // by its process, which is busy with it; another replaces it
	ClockJump     Kind = "clock jump"     // the wall clock of a client is set, forward or back
	BreakHolder   Kind = "break"          // the operator breaks a grant
	WaiterDeleted Kind = "waiter deleted" // the operator deletes the znode of a waiter
)

// OfServers reports whether a fault hits the servers, and with them all clients. A plan never has two of these at a time.
func (k Kind) OfServers() bool {
	switch k {
	case FollowerCutOff, LeaderCutOff, LinkCut, LeaderKilled, LeaderPaused, FollowerPaused, ServerPaused, RollingRestart,
		LinkTurned, LimitsChanged, PrimaryLags, PrimaryDeposed:
		return true
	}
	return false
}

// Fault is one fault of a plan. All fields are drawn for every fault, even if its kind ignores them.
type Fault struct {
	N      int           // from 1, in order of At
	At     time.Duration // since the start of the run
	For    time.Duration // how long it lasts, if its kind does
	Kind   Kind
	Client int           // the slot of a client process
	Server int           // an index among the servers, or among the followers
	Key    int           // the index of a key
	Pick   uint32        // for choices within the kind, such as which operation
	Jump   time.Duration // of a clock
}
