// Package zktimes computes all durations that follow from a ZooKeeper session timeout, for
// zklock, holdfast doctor and the benchmarks.
package zktimes

import "time"

// Times are the durations that follow from a session timeout, T. They change when it is
// renegotiated.
type Times struct {
	Session time.Duration // T itself

	// To keep the session alive, and to prove that it is.
	Heartbeat time.Duration // between heartbeats of a session that holds locks
	Idle      time.Duration // between heartbeats of one that holds none; just more than window, or half as much
	Window    time.Duration // between the reply to a request and the sync that confirms it
	Grain     time.Duration // replies closer together than this count as one
	Enough    time.Duration // least remainder of the lease at a grant
	Again     time.Duration // until a grant tries again to prove that much
	MaxMargin time.Duration // for clocks: with more, a lease would run out between two heartbeats

	// To leave a server in time to find another.
	Silence    time.Duration // a server that sends nothing for this long is left
	Answer     time.Duration // so is one that does not answer a heartbeat, or the last request of a session
	FirstReply time.Duration // to connect, and until the first reply
	Redial     time.Duration // longest pause between two rounds of dialling
	Longest    time.Duration // a session resumed with a longer timeout is given up

	// For the recipe.
	HangUp   time.Duration // a server that hangs up on a creation sooner than this has not tried it
	Late     time.Duration // how long a creation whose reply was lost may still take effect
	Doubt    time.Duration // until the leader is asked about a blocking node; the pause doubles
	MaxDoubt time.Duration // the longest pause between two questions
}

// Of computes the times of a session timeout. heartbeat, tick and margin are zklock's
// Options.Heartbeat, Options.TickTime and Options.Margin; 0 means the default.
func Of(session, heartbeat, tick, margin time.Duration) *Times {
	t := &Times{
		Session: session,

		Heartbeat: session / 6,
		Idle:      session / 3,
		Window:    max(session/4, tick/2),
		Grain:     session / 64,
		Enough:    session / 6,
		Again:     session / 16,

		Silence:    session / 2,
		Answer:     session / 4,
		FirstReply: min(max(session/4, 250*time.Millisecond), 5*time.Second),
		Redial:     min(max(session/10, 20*time.Millisecond), time.Second),
		Longest:    session * 3 / 2, // beyond that, the window leaves too little of the lease

		HangUp:   session / 4,
		Late:     64 * session, // a follower that is stopped for syncLimit ticks is left by its leader
		Doubt:    2 * session,
		MaxDoubt: 16 * session,
	}
	t.Window += t.Window / 8 // leaders ping twice a tick, and a bit later
	if heartbeat > 0 {
		t.Heartbeat = min(heartbeat, session/4)
	}
	// A heartbeat proves the first one that was answered a window before it, and the next proof comes one later.
	beat := max(t.Heartbeat, 1) // a session that has ended has no timeout
	beats := (t.Window+beat-1)/beat*beat + beat
	// The first heartbeats of a session that has only waited prove no more than its last sync but a window did.
	waited := t.Window + t.Again
	if margin > session-t.Idle-waited {
		t.Idle /= 2
	}
	t.MaxMargin = max(0, min(session-beats-t.Enough, session-session/6-waited))
	return t
}
