package zklock

import "time"

// times are all the durations that follow from a session timeout, T. They are computed
// again when that is renegotiated.
type times struct {
	session time.Duration // T itself

	// To keep the session alive, and to prove it: see heartbeat and trust.
	heartbeat time.Duration // between heartbeats of a session that holds locks
	idle      time.Duration // between heartbeats of one that holds none; just more than window
	window    time.Duration // between the answer to a request and the sync that shows what became of it
	grain     time.Duration // answers that are closer together than this count as one
	enough    time.Duration // what is left of a lease at a grant
	again     time.Duration // until a grant tries once more to prove that much

	// To leave a server while there is time to find another.
	silence    time.Duration // a server that sends nothing for this long is left
	answer     time.Duration // so is one that does not answer a heartbeat, or the last request of a session
	firstReply time.Duration // to connect, and until the first reply
	redial     time.Duration // the longest pause between two rounds of dialling
	rewatch    time.Duration // until go-zookeeper has sent its watches to a new server
	longest    time.Duration // a session that is resumed with a longer timeout is given up

	// For the recipe.
	ownWatch time.Duration // until the watch on a node that is missing says what became of it
	hangUp   time.Duration // a server that hangs up on a creation sooner than this has not even tried
	look     time.Duration // until the first look for nodes to remove; the pause doubles
	maxLook  time.Duration // the longest pause between two looks
	late     time.Duration // how long a creation whose reply was lost may still be carried out
	doubt    time.Duration // until the leader is asked about a node that is in the way; the pause doubles
	maxDoubt time.Duration // the longest pause between two questions
}

func timesOf(session time.Duration, opts *Options) *times {
	t := &times{
		session: session,

		heartbeat: session / 6,
		idle:      session / 3,
		window:    max(session/4, opts.TickTime/2),
		grain:     session / 64,
		enough:    session / 6,
		again:     session / 16,

		silence:    session / 2,
		answer:     session / 4,
		firstReply: min(max(session/4, 250*time.Millisecond), 5*time.Second),
		redial:     min(max(session/10, 20*time.Millisecond), time.Second),
		rewatch:    min(max(session/10, reconnectGrace), 250*time.Millisecond),
		longest:    session * 3 / 2, // beyond that, the window leaves too little of the lease

		ownWatch: session / 4,
		hangUp:   session / 4,
		look:     session / 4,
		maxLook:  2 * session,
		late:     64 * session, // a follower that is stopped for syncLimit ticks is left by its leader
		doubt:    2 * session,
		maxDoubt: 16 * session,
	}
	t.window += t.window / 8 // leaders ping twice a tick, and a bit later
	if opts.Heartbeat > 0 {
		t.heartbeat = min(opts.Heartbeat, session/4)
	}
	return t
}
