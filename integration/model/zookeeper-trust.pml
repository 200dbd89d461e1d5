/*
 * The trust window of the ZooKeeper engine (docs/design/zookeeper.md; zklock/internal/zkconn/trust.go): a client never trusts its
 * session after the ensemble has ended it.
 *
 * Three servers. Server 0 leads; 1 and 2 follow it. The links 0-1 and 0-2 can be cut, each for good. A follower that is
 * cut off answers its clients until it notices, at any time; when both have noticed, they go on as a second ensemble,
 * which server 1 leads. Server 0 does not know that, and may go on answering for ever.
 *
 * One client, with one session, sends pings, syncs and writes as it likes, through one server at a time. Any message may
 * take any time, between servers too, where order is kept. Time is counted in whole units: T is 4, and a quarter of T,
 * the window, and half a tick are 1. That loses nothing, because the rule only says that two moments are at least, at most, or
 * less than some units apart, and at most one of these conditions is strict. The other strict condition is an assumption: the
 * leader queues pings for a follower less than T/4 apart. So the model queues a ping before anything else when it is due.
 *
 * Left out: more than one unanswered request; clocks at different rates, for which the lease has a margin; touches that are
 * lost with a connection, which only makes sessions shorter; a third leader; how a write is committed; local sessions and
 * observers; timeouts that change at a resumption.
 *
 * All constants are in these units:
 */
#define T      4	/* session timeout: what the leader counts, and the client's lease without margin */
#ifndef WINDOW
#define WINDOW 1	/* T/4: trust.window */
#endif
#ifndef GAP
#define GAP    1	/* the leader queues pings for a follower less than this apart: half a tick, T being two ticks */
#endif
#ifndef K
#define K      2	/* requests without an answer */
#endif

/*
 * Switches that remove a cure or an assumption; each has a counterexample:
 *
 *   PINGS_COUNT       an answer to any request renews the lease (as in other clients)
 *   ONE_STAGE         a write renews from what was answered a window before it (as in earlier versions of this library)
 *   SYNC_RENEWS       a sync is as good as a write: a leader may answer it that has lost its followers
 *   OVERLAP           the write may be sent before the sync is answered
 *   WINDOW=0          a request counts that was answered just before the sync
 *   GAP=2             the leader queues pings more than T/4 apart: an assumption
 *   COUNT_RESUMPTION  a resumed session renews the lease
 *   NO_CLOCK_CHECK    a lock ends only when the timer fires, however late
 *   RENEWAL_REVIVES   a renewal does not ask the clock first
 *
 * For counterexamples that are easier to read: ONE_LOCK looks only at the lock that is held from the beginning; with
 * PROMPT, messages between connected servers take no time; with STAYS, the client is at server 1 and loses no connection.
 *
 * REACH=n shows that the proof is not vacuous: see unreached, below.
 */

/* The properties, each asserted where it could cease to hold. */
bit lease_is_true = 1;		/* while the lease runs, the session has not been ended */
bit holder_is_right = 1;	/* so the lock that was granted under it is nobody else's */
bit no_revival = 1;		/* a lock that has ended is never live again */
bit unreached = 1;		/* not a property: what REACH asks for has not happened */

/* Ages saturate at OLD, which proves nothing. */
#define OLD T
#define older(a) a = (a < OLD -> a + 1 : OLD)

/* The ensemble. */
bit cut[3];		/* the link between server 0 and this one; that of 0 is not used */
bit noticed[3];		/* ... and the follower has noticed, and hung up on its clients */
bit second;		/* there is the second ensemble */
byte timer = T;		/* until the leader that has a quorum ends the session */
bit gone;		/* it has ended it: others are granted its locks */

#define leads(s)    ((s) == 0 || (second && (s) == 1))	/* or believes that it does */
#define genuine(s)  ((s) == (second -> 1 : 0))		/* it is the one whose timer counts */
#define linked(s)   ((s) == 2 && second || !noticed[s] && !cut[s] && !second)	/* a follower has its leader */
#ifdef PROMPT
#define knows(s)    (gone && (genuine(s) || !leads(s) && linked(s)))
#else
#define knows(s)    (gone && genuine(s))	/* that the session has ended: it hangs up; followers may hear of it late */
#endif
#ifdef PROMPT
#define all_read (empty(up) && empty(down))
#else
#define all_read true
#endif
#define quorum      (second || !cut[1] || !cut[2])	/* the leader whose timer counts has one */

/* The server through which the client talks. */
bit noted;		/* the follower's table has the session */
byte pinged;		/* since the leader queued its last ping */
mtype = { TABLE, SYNC, WRITE, RESUME }
chan up = [2*K+2] of { mtype }	/* from the follower to its leader */
mtype = { PING, DONE, RESUMED }		/* DONE completes the oldest request that waits */
chan down = [2*K+3] of { mtype }	/* from the leader to the follower; pings in a row are one: the later moment counts, or the earlier */
byte last;			/* the last in down is a ping */

/* The client. */
mtype = { CLOSED, OPENING, OPEN }
mtype conn = OPEN;
byte server;		/* of the present connection */
byte opened;		/* the age of the request that made it: wire.opening */
byte lease = T;		/* what is left of it by the client's clock; 0: it is over */
bit holds = 1;		/* the lock's own state: not ended yet */
bit over;		/* its lease has ended, which it does not know */
bit asked;		/* the follower has asked its leader to resume the session */
bit resumed;		/* it is resumed */

#if K == 1
#define some(x) (stage[0] == x)
#else
#define some(x) (stage[0] == x || stage[1] == x || stage[K-1] == x)
#endif

#ifdef SYNC_RENEWS
#define PROVES(k) ((k) != PING)
#else
#define PROVES(k) ((k) == WRITE)
#endif

/* Its requests, the oldest first. */
mtype = { NONE }		/* or PING, SYNC, WRITE */
mtype = { SENT, WAITS, ANSWERED }		/* WAITS: for the leader */
mtype kind[K] = NONE;
mtype stage[K] = NONE;
byte age[K];
byte since[K];		/* of a sync or a write: the age of what is in the table that will be on its way when it is answered */
byte proof[K];		/* of a write: the age of what it will prove */

/* The newest acknowledged request, by when its reply was read: in this unit of time, before. Ages of the sending. */
byte acked0 = OLD, acked1 = OLD;
byte table = OLD;	/* what is in the newest table that is known to be on its way */

#ifdef NO_CLOCK_CHECK
#define believes holds
#else
#define believes (holds && lease > 0)
#endif

inline verify() {
#ifndef ONE_LOCK
	lease_is_true = !(gone && lease > 0);
	assert(lease_is_true);
#endif
	holder_is_right = !(gone && believes);
	assert(holder_is_right);
	no_revival = !(over && believes);
#ifndef NO_CLOCK_CHECK
	assert(no_revival);
#endif
}

inline least(to, x) { if :: x < to -> to = x :: else fi }

/* renew is Lease.Renew: a is the age of what counts. */
inline renew(a) {
#ifndef RENEWAL_REVIVES
	if
	:: lease == 0 -> holds = 0; over = 0
	:: else
	fi;
#endif
	if
	:: a < OLD && T - a > lease -> lease = T - a; printf("the client's lease runs for another %d\n", lease)
	:: else
	fi
}

/* What the reply to a request sent now will prove: see zklock/internal/zkconn/trust.go. */
inline may_collect(n) {
	since[n] = acked1;
#if WINDOW == 0
	least(since[n], acked0)
#endif
}
inline may_prove(n) {
	proof[n] = opened;
	least(proof[n], table);
#ifdef ONE_STAGE
	least(proof[n], since[n])
#endif
}

/* remove takes a request out. i is used up. */
inline remove(i) {
	do
	:: i < K-1 -> kind[i] = kind[i+1]; stage[i] = stage[i+1]; age[i] = age[i+1]; since[i] = since[i+1]; proof[i] = proof[i+1]; i++
	:: else -> break
	od;
	kind[i] = NONE; stage[i] = NONE; age[i] = 0; since[i] = 0; proof[i] = 0
}

/* hangup ends the connection and everything on it: a new trust begins with the next one. The lost messages could only have made the leader's timer run longer. */
inline hangup() {
	conn = CLOSED; server = 0; opened = 0; noted = 0; pinged = 0; asked = 0; resumed = 0;
	acked0 = OLD; acked1 = OLD; table = OLD; last = 0;
	do :: up?[_] -> up?_ :: else -> break od;
	do :: down?[_] -> down?_ :: else -> break od;
	i = 0;
	do
	:: i < K -> kind[i] = NONE; stage[i] = NONE; age[i] = 0; since[i] = 0; proof[i] = 0; i++
	:: else -> break
	od;
	i = 0
}

/* touch is the leader's reaction when it hears of the session. */
inline touch(s) { if :: genuine(s) && !gone -> timer = T :: else fi }

/* The leader reads from its follower. */
inline leader_reads() {
	if
	:: up?TABLE -> touch(second); printf("the leader learns from the table that the session was heard of\n")
	:: up?SYNC -> if
		:: gone	/* refused */
		:: !gone -> down!DONE; last = 0; printf("the leader queues the answer to the sync\n")
		fi
	:: up?WRITE -> if
		:: gone
		:: !gone -> down!DONE; last = 0; printf("the leader commits the write, and queues that\n")
		fi
	:: up?RESUME -> if
		:: gone
		:: !gone -> timer = T; down!RESUMED; last = 0; printf("the leader resumes the session\n")
		fi
	fi
}

inline leader_pings() {
	pinged = 0;
	if
	:: !last -> down!PING; last = 1; printf("the leader queues a ping for server %d\n", server)
	:: else
	fi
}

/* The follower reads from its leader, and answers a ping with its table. */
inline follower_reads() {
	down?kind_;
	if
	:: kind_ == PING ->
		kind_ = NONE;
		if
		:: noted && linked(server) -> noted = 0; printf("server %d reads the leader's ping: the table goes back, with the session in it\n", server);
			/* Two in a row are one: the later moment counts. */
			s = len(up); i = 0;
			do :: i < s -> up?kind_; up!kind_; i++ :: else -> break od;
			if :: s > 0 && kind_ == TABLE :: else -> up!TABLE fi
		:: noted && !linked(server) -> noted = 0; printf("server %d reads the leader's ping: the table is lost\n", server)
		:: else
		fi
	:: kind_ == DONE -> i = 0;
		do :: stage[i] != WAITS -> i++ :: else -> break od;
		stage[i] = ANSWERED; printf("server %d reads that, and answers\n", server)
	:: kind_ == RESUMED -> resumed = 1
	fi;
	last = (len(down) == 0 -> 0 : last);
	kind_ = NONE; i = 0; s = 0
}

inline tick() {
	older(opened);
	acked1 = (acked0 < acked1 -> acked0 : acked1); older(acked1);
	acked0 = OLD; older(table);
	i = 0;
	do
	:: i < K && kind[i] != NONE -> older(age[i]);
		if :: kind[i] != PING -> older(since[i]) :: else fi;
		if :: PROVES(kind[i]) -> older(proof[i]) :: else fi;
		i++
	:: else -> break
	od;
	i = 0;
	if :: timer > 0 -> timer-- :: else fi;
	if
	:: lease > 0 -> lease--;
		if :: lease == 0 -> over = holds; printf("... time passes; the client's lease is over\n") :: else -> printf("... time passes\n") fi
	:: else -> printf("... time passes\n")
	fi;
	if
	:: conn != CLOSED && !leads(server) && linked(server) ->
		pinged++;
		/* It does so before whatever else happens at that moment: the next one is less than GAP after it. */
		if :: pinged == GAP -> leader_pings() :: else fi
	:: else
	fi
}

active proctype World() {
	byte i, s;
	mtype kind_ = NONE;

	/* The session has just been made, through any server. */
#ifdef STAYS
	server = 1;
#else
	if :: server = 0 :: server = 1 fi;
#endif
	printf("a session begins at server %d; its client is granted a lock\n", server);

end:	do
	/* Time. While a follower has its leader, the leader queues pings in time. */
	:: d_step { all_read -> tick(); verify() }

	/* The network between servers. */
	:: d_step { !second && !cut[1] -> cut[1] = 1;
		if :: conn != CLOSED && server == 1 -> do :: up?[_] -> up?_ :: else -> break od; pinged = 0 :: else fi;
		printf("server 1 is cut off from server 0\n") }
	:: d_step { !second && !cut[2] -> cut[2] = 1;
		if :: conn != CLOSED && server == 2 -> do :: up?[_] -> up?_ :: else -> break od; pinged = 0 :: else fi;
		printf("server 2 is cut off from server 0\n") }
	:: d_step { !second && cut[1] && !noticed[1] -> noticed[1] = 1;
		printf("server 1 notices that it has no leader, and hangs up\n");
		if :: conn != CLOSED && server == 1 -> hangup() :: else fi }
	:: d_step { !second && cut[2] && !noticed[2] -> noticed[2] = 1;
		printf("server 2 notices that it has no leader, and hangs up\n");
		if :: conn != CLOSED && server == 2 -> hangup() :: else fi }
	:: d_step { !second && noticed[1] && noticed[2] -> second = 1;
		if :: !gone -> timer = T :: else fi;
		printf("servers 1 and 2 go on without server 0; server 1 leads\n") }

	/* The leader. */
	:: d_step { timer == 0 && !gone && quorum && all_read -> gone = 1; printf("the leader ends the session, and grants the lock to another\n"); verify() }
	:: d_step { conn != CLOSED && !leads(server) && linked(server) && (!last || pinged > 0) -> leader_pings() }
	:: d_step { conn != CLOSED && !leads(server) && linked(server) && nempty(up) && len(down) < 2*K+2 -> leader_reads() }
	/* What was sent before a link was cut may come at any time, or never. */
	:: d_step { conn != CLOSED && !leads(server) && nempty(down) -> follower_reads() }

	/* The client sends. During a resumption it must wait. */
	:: d_step { conn == OPEN && kind[K-1] == NONE ->
		do :: kind[i] != NONE -> i++ :: else -> break od;
		kind[i] = PING; stage[i] = SENT; i = 0; printf("the client sends a ping\n") }
	:: d_step { conn == OPEN && kind[K-1] == NONE ->
		do :: kind[i] != NONE -> i++ :: else -> break od;
		kind[i] = SYNC; stage[i] = SENT; may_collect(i);
#ifdef SYNC_RENEWS
		may_prove(i);
#endif
		i = 0; printf("the client sends a sync\n") }
	:: d_step { conn == OPEN && kind[K-1] == NONE ->
		do :: kind[i] != NONE -> i++ :: else -> break od;
		kind[i] = WRITE; stage[i] = SENT; may_collect(i); may_prove(i);
		i = 0; printf("the client sends a write\n") }

	/* Its server reads, in order. */
	:: d_step { conn == OPEN && !knows(server) && some(SENT) ->
		do :: stage[i] != SENT -> i++ :: else -> break od;
		if
		:: leads(server) -> touch(server)
		:: else -> noted = 1
		fi;
		if
		:: kind[i] == PING -> stage[i] = ANSWERED; printf("server %d answers the ping\n", server)
		:: else -> stage[i] = WAITS;
			if
			:: leads(server) && kind[i] == SYNC -> stage[i] = ANSWERED; printf("server %d, a leader, answers the sync\n", server)
			:: leads(server) && kind[i] == WRITE -> printf("server %d, a leader, has the write\n", server)
			:: linked(server) -> up!kind[i]; printf("server %d forwards the %e\n", server, kind[i])
			:: else -> printf("server %d forwards the %e, to nobody\n", server, kind[i])
			fi
		fi;
		i = 0 }
	/* A leader has a write of its own client committed, if there is a quorum. */
	:: d_step { conn == OPEN && leads(server) && genuine(server) && quorum && !gone && some(WAITS) ->
		do :: stage[i] != WAITS -> i++ :: else -> break od;
		stage[i] = ANSWERED; i = 0; printf("the leader commits the write\n") }

	/* The client reads an answer: wire.noteReply. */
	:: atomic { conn == OPEN && stage[0] == ANSWERED ->
		d_step {
			printf("the client reads the answer to its %e\n", kind[0]);
			least(acked0, age[0]);
			if :: kind[0] != PING -> least(table, since[0]) :: else fi;
#ifdef OVERLAP
			i = 1;
			do :: i < K -> if :: kind[i] == WRITE -> least(proof[i], table) :: else fi; i++ :: else -> break od;
			i = 0;
#endif
#ifdef PINGS_COUNT
			renew(age[0]);
#endif
#ifdef SYNC_RENEWS
			if :: kind[0] == SYNC -> renew(proof[0]) :: else fi;
#endif
			if
			:: kind[0] == WRITE -> s = lease; renew(proof[0]);
#if REACH == 1
				unreached = !(resumed && s == 0 && lease > 0 && second)	/* a session was saved across the change of leaders */
#endif
#if REACH == 2
				unreached = !(lease > s && proof[0] < opened && server == 2 && !second && cut[1])	/* the window was of use, at a follower that is not alone */
#endif
			:: else
			fi;
			assert(unreached);
			s = 0;
			remove(i);
			i = 0;
			verify()
		} }

#ifndef STAYS
	/* The connection is lost at either end; the client connects to another server, or to the same. */
	:: d_step { conn != CLOSED -> hangup(); printf("the client loses its connection\n") }
	:: atomic { conn == CLOSED && !noticed[1] -> d_step { conn = OPENING; server = 1; printf("the client asks server 1 to resume the session\n") } }
	:: atomic { conn == CLOSED && !noticed[2] -> d_step { conn = OPENING; server = 2; printf("the client asks server 2 to resume the session\n") } }
	:: atomic { conn == CLOSED && second -> d_step { conn = OPENING; server = 1; printf("the client asks server 1 to resume the session\n") } }
	:: atomic { conn == CLOSED && second -> d_step { conn = OPENING; server = 2; printf("the client asks server 2 to resume the session\n") } }
	:: atomic { conn == CLOSED -> d_step { conn = OPENING; server = 0; printf("the client asks server 0 to resume the session\n") } }
	:: d_step { conn == OPENING && !resumed && empty(up) && !leads(server) && linked(server) && !asked -> up!RESUME; asked = 1; printf("server %d asks its leader\n", server) }
	/* A leader resumes a session on its own unless it knows that it has ended. */
	:: d_step { conn == OPENING && !resumed && leads(server) && (!gone || !genuine(server)) -> touch(server); resumed = 1;
		printf("server %d, a leader, resumes the session\n", server) }
	:: d_step { conn == OPENING && resumed -> conn = OPEN; asked = 0; printf("the client reads that its session is resumed\n");
#ifdef COUNT_RESUMPTION
		renew(opened);
#endif
		verify() }
#endif

	/* The client's timer. */
	:: d_step { holds && lease == 0 -> holds = 0; over = 0; printf("the client's timer ends the lock\n") }
	od
}
