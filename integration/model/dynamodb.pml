/*
 * The lease of package dynamolock, on one item of a DynamoDB table. The runs are in
 * dynamodb.cases. Most switches remove one cure.
 *
 * Each client acquires the key once, and takes each step whenever it likes: the
 * periods of polls, heartbeats and retries, and a process that is stopped, are all
 * "some time later". Only what the client's own clock forbids is forbidden.
 *
 * Time is in ticks: a lease is 3, the margin 1. A clock may lose a tick, at most one in any
 * three. Only the validity of a lock is counted on that clock. Of a guid, the model keeps who
 * has seen it: every write of a new guid clears "seen". Break names the guid that it replaces.
 * FAULTS requests get no answer: the request or its answer is lost, or the request arrives at
 * any later time. With FLIGHT, requests and answers take any time.
 *
 * Left out: the FailClosed modes, which have no clocks; reclaim, which ends a grant as BreakNow
 * does; items that are deleted or written by others; a monotonic clock that stands still while
 * the wall clock is set back; TrustLocalTime; reads (a refused write shows the item and is the
 * only look); Close; throttled requests; copies of requests, except of heartbeats; more than
 * three clients, two faults and one break. Clients are alike, so they begin in the order of
 * their numbers.
 */

#ifndef CLIENTS
#define CLIENTS 3
#endif
#ifndef LEASE
#define LEASE 3 /* ticks */
#endif
#ifndef MARGIN
#define MARGIN 1 /* ticks: what a clock may lose in a lease, and what a holder gives up for it */
#endif
#ifndef FAULTS
#define FAULTS 1 /* requests that get no answer or arrive twice, in a run */
#endif
#ifndef BREAKS
#define BREAKS 0 /* calls of Break and BreakNow, in a run */
#endif

#ifndef BOUND
#define BOUND (LEASE + CLIENTS - 1) /* ticks, until everybody is served once all is calm */
#endif

#define WINDOW   (LEASE - MARGIN) /* how long one write keeps a lock valid for its holder */
#define NOBODY   CLIENTS          /* a guid that begins with no client's grant */
#define STRANGER (CLIENTS + 1)    /* the guid that Break writes */

mtype = { None, Acquire, Heartbeat, Release, Clear };                   /* requests */
mtype = { Sent, Done, Mine, Freed, Marked, Others };                    /* answers */
mtype = { Idle, Trying, Holding, Releasing, Clearing, Cleaning, Gone }; /* phases */

/*
 * The item. Its guid begins with a grant, which is a client's number, and ends
 * with a touch. A touch is only ever compared with what somebody has seen before;
 * so it is modelled by who has: each write of a new one clears "seen" everywhere.
 */
bool live;           /* the lease is a lease, and not 1 */
byte grant = NOBODY;
byte token;

typedef Client {
	mtype phase = Idle;
	byte token;       /* of its grant */
	byte window;      /* how long the lock is valid by the client's clock */

	mtype req = None; /* the request under way, */
	mtype ans = None; /* its outcome, */
	byte gain;        /* and how long the lock is valid if it succeeds */
	bool takes;       /* it takes a held item that nobody has touched since "seen" */
	bool fresh;       /* its answer shows an item that had not been seen before */
	bool final;       /* it is the last question of the cleaner */

	bool seen;        /* the item is still as this client saw it last */
	byte watch;       /* how long it has to stay so until it may be taken */

	bool doubt;       /* a request to acquire has got no answer */
	byte first;       /* how long the first of those would be good for */
	byte settle;      /* a lease, from when the last of them was given up */
	bool unanswered;  /* a request to release has got no answer */

	byte steady;      /* ticks until the clock may lose another one */

	bool ended;       /* somebody else has ended the grant, */
	bool excused;     /* by BreakNow, and the client has not been told yet */
	bool tried;       /* in this tick, once all is calm */
	bool tardy;       /* a request took the item when "settle" had run down */
#ifdef WATCH_FROM_SENDING
	byte early;
#endif
#ifdef HEARTBEAT_BY_WHOLE_GUID
	bool unknown;     /* the guid is that of a heartbeat without an answer */
#endif
}
Client client[CLIENTS];

/* Requests that were given up before they arrived. They may arrive yet. */
typedef Late {
	mtype req = None;
	byte from;
	byte token;
	bool takes;
}
Late late[FAULTS + 1];
byte faults;
byte breaks;
byte last;   /* the token of the last lock that somebody was given */
bool calm;   /* no more faults, breaks and pauses; clients that have not crashed act at once */
byte waited; /* ticks since then */

/* The properties. Each is asserted where it could cease to hold. */
bool exclusion = true, one_end = true, token_order = true, no_orphan = true;
bool no_false_loss = true, break_is_told = true, own_is_known = true, all_served = true;

/* For use within a step. Between steps they have these values. */
byte k = 0, good = 0;
mtype result = None;

#define me client[c]
#define may_fail (faults < FAULTS && !calm)
#define knows(i) (client[i].phase != Gone) /* whether it has the grant */

#ifdef NO_CLOCK_CHECK
#define believes(i) (client[i].phase == Holding && !client[i].excused)
#else
#define believes(i) (client[i].phase == Holding && client[i].window > 0 && !client[i].excused)
#endif

inline check_exclusion(i) {
	for (k : 0 .. CLIENTS - 1) {
		if
		:: k != i && believes(k) -> exclusion = false
		:: else
		fi
	}
	k = 0;
	assert(exclusion)
}

/* changed: the item has another token, or is free. */
inline changed() {
	for (k : 0 .. CLIENTS - 1) {
		client[k].seen = false;
		client[k].watch = 0;
		client[k].takes = false
	}
	for (k : 0 .. FAULTS) {
		late[k].takes = false
	}
	k = 0
}

/* marked: the item has the guid of a break, and names the one before it: whoever saw that one
 * goes on counting. */
inline marked() {
	for (k : 0 .. CLIENTS - 1) {
#ifdef BREAK_UNNAMED
		client[k].seen = client[k].phase == Trying;
#endif
		client[k].takes = false
	}
	for (k : 0 .. FAULTS) {
		late[k].takes = false
	}
	k = 0
}

/* touched: the item has another guid. */
inline touched() {
#ifndef HEARTBEAT_KEEPS_GUID
	for (k : 0 .. CLIENTS - 1) {
#if !defined(WATCH_TIME_ONLY) && !defined(TAKE_BY_TOKEN)
		client[k].seen = false;
		client[k].watch = 0;
#endif
#ifndef TAKE_BY_TOKEN
		client[k].takes = false
#else
		skip
#endif
	}
#ifndef TAKE_BY_TOKEN
	for (k : 0 .. FAULTS) {
		late[k].takes = false
	}
#endif
	k = 0
#else
	skip
#endif
}

#ifdef ACQUIRE_FORGETS
#define not_own(i) true
#else
#define not_own(i) (grant != i)
#endif
#ifdef HEARTBEAT_BY_PREFIX_ONLY
#define same_token(t) true
#else
#define same_token(t) (token == t)
#endif
#ifdef HEARTBEAT_BY_WHOLE_GUID
#define same_guid(i) (grant == i && !client[i].unknown)
#else
#define same_guid(i) (grant == i)
#endif
#ifdef HEARTBEAT_REVIVES
#define not_released true
#else
#define not_released live
#endif

/* apply carries out a request of client i, as the table does, and sets result. */
inline apply(kind, i, its_token, takeover) {
	if
	:: kind == Acquire && not_own(i) && (!live || takeover) ->
		check_exclusion(i);
		own_is_known = !(live && grant == i);
		assert(own_is_known);
		if
		:: live && grant < CLIENTS && knows(grant) -> client[grant].ended = true
		:: else
		fi;
		if
		:: client[i].phase == Trying -> client[i].ended = false
		:: else
		fi;
#ifdef TAKEOVER_KEEPS_TOKEN
		token = (live -> token : token + 1);
#else
		token++;
#endif
		live = true;
		grant = i;
		changed();
		result = Done
	:: kind == Acquire && grant == i && live && !(not_own(i) && takeover) -> result = Mine
	:: kind == Heartbeat && not_released && same_guid(i) && same_token(its_token) ->
		break_is_told = !client[i].ended;
		assert(break_is_told);
		no_orphan = knows(i);
		assert(no_orphan);
		live = true;
		touched();
		result = Done
	:: kind == Release && live && grant == i ->
		live = false;
#ifdef RELEASE_DELETES
		token = 0;
		grant = NOBODY;
#endif
		changed();
		result = Done
	:: kind == Release && !live && grant == i -> result = Freed
	:: kind == Clear && live && grant == STRANGER && token == its_token ->
		live = false;
		changed();
		result = Done
	:: else ->
		result = (live && grant == STRANGER && token == its_token -> Marked : Others)
	fi
}

#ifdef ACQUIRE_FORGETS
#define granting(answer) (answer == Done)
#else
#define granting(answer) (answer == Done || answer == Mine)
#endif

/* serve: the request under way arrives. */
inline serve() {
	d_step {
		apply(me.req, c, me.token, me.takes);
		me.ans = result;
		if
		:: me.req == Acquire && granting(result) -> me.token = token
		:: me.req == Acquire && !granting(result) ->
			me.ans = Others;
			me.fresh = live && !me.seen;
			me.seen = live
		:: else
		fi;
		result = None
	}
}

/* arrive: a request that was given up arrives. */
inline arrive(s) {
	d_step {
		printf("client %d: a late %e arrives\n", late[s].from, late[s].req);
		apply(late[s].req, late[s].from, late[s].token, late[s].takes);
		if
		:: late[s].req == Acquire && result == Done ->
			printf("client %d: it takes the item, token %d\n", late[s].from, token);
			if
			:: client[late[s].from].settle == 0 -> client[late[s].from].tardy = true
			:: else
			fi;
			no_orphan = knows(late[s].from) || client[late[s].from].tardy;
			assert(no_orphan)
#ifdef HEARTBEAT_BY_WHOLE_GUID
		:: late[s].req == Heartbeat && result == Done -> client[late[s].from].unknown = true
#endif
		:: else
		fi;
		result = None;
		late[s].req = None;
		late[s].from = 0;
		late[s].token = 0;
		late[s].takes = false
	}
}

inline send(kind) {
	printf("client %d: sends %e\n", c, kind);
	me.req = kind;
	me.ans = Sent;
	me.gain = (kind == Acquire || kind == Heartbeat -> WINDOW : 0);
#ifdef WATCH_FROM_SENDING
	me.early = LEASE;
#endif
}

inline answered() {
	me.req = None;
	me.ans = None;
	me.gain = 0;
	me.takes = false;
	me.fresh = false;
	me.final = false
}

inline doubted() {
	if
	:: !me.doubt && me.phase == Trying -> me.first = me.gain
	:: else
	fi;
	me.doubt = true;
	me.settle = LEASE
}

/* forsake gives up the request under way: it is late, or lost, or its answer is. */
inline forsake() {
	d_step {
		printf("client %d: no answer to %e: %e\n", c, me.req, me.ans);
		if
		:: me.ans == Sent ->
			late[faults].req = me.req;
			late[faults].from = c;
			late[faults].token = me.token;
			late[faults].takes = me.takes
		:: me.ans != Sent && me.fresh -> me.seen = false
#ifdef HEARTBEAT_BY_WHOLE_GUID
		:: me.req == Heartbeat && me.ans == Done -> me.unknown = true
#endif
		:: else
		fi;
		faults++;
		if
		:: me.req == Acquire -> doubted(); me.token = 0
		:: me.req == Release && me.phase == Releasing -> me.unanswered = true
		:: else
		fi;
		answered()
	}
}

#ifdef COUNT_FROM_LAST_TRY
#define from_first(answer) false
#else
#define from_first(answer) (answer == Mine && me.doubt)
#endif

/* If a release is refused because of what others have done, and one before it got
 * no answer, that one was carried out, or came too late to matter. */
#ifdef RELEASE_FORGETS
#define released(answer) (answer == Done)
#else
#define released(answer) (answer == Done || answer == Freed || (answer == Others && me.unanswered))
#endif

/* receive: the answer arrives. */
inline receive() {
	d_step {
		printf("client %d: %e: %e\n", c, me.req, me.ans);
#ifdef COUNT_FROM_ANSWER
		me.gain = WINDOW;
#endif
		if
		:: me.phase == Trying && granting(me.ans) ->
			good = (from_first(me.ans) -> me.first : me.gain);
			granted()
		:: me.phase == Trying && !granting(me.ans) -> looked()
		:: me.phase == Holding && me.ans == Done -> renewed()
		:: me.phase == Cleaning && me.req == Acquire -> seen_through()
		:: me.phase == Cleaning && me.req == Release -> asked()
		:: me.phase == Clearing || (me.phase == Releasing && released(me.ans)) ->
			answered();
			finish()
		:: else -> told()
		fi
	}
}

/* looks: a client that has seen the item looks again when that has changed, and
 * writes when it has not for its lease. Looks that show nothing new are left out. */
#define looks(i) (!client[i].seen || client[i].watch == 0)

/* granted: the item is of this grant, and good for so long. */
inline granted() {
	if
	:: good > 0 ->
		check_exclusion(c);
		token_order = me.token > last;
		assert(token_order);
		last = me.token;
		me.window = good;
		me.phase = Holding
	:: else -> me.phase = Releasing
	fi;
	good = 0;
	me.first = 0;
	me.seen = false;
	me.watch = 0;
	answered()
}

/* looked: it is not, and is looked at. */
inline looked() {
	if
	:: me.fresh && me.seen ->
#ifdef WATCH_FROM_SENDING
		me.watch = me.early
#else
		me.watch = LEASE
#endif
	:: else
	fi;
	answered()
}

/* renewed: a heartbeat was carried out. What is over stays over. */
inline renewed() {
	if
	:: me.window > 0 && me.gain > me.window -> me.window = me.gain
#ifdef RENEWAL_REVIVES
	:: me.window == 0 -> one_end = (me.gain == 0); assert(one_end)
#else
	:: me.window == 0 -> me.phase = Releasing
#endif
	:: else
	fi;
	answered()
}

/* told: the client learns that somebody has ended its grant. */
inline told() {
	no_false_loss = me.ended;
	assert(no_false_loss);
	me.window = 0;
#ifdef LOSS_LEAVES_DOUBT
	me.doubt = false;
#endif
	if
	:: me.ans == Marked -> answered(); me.phase = Clearing
	:: else -> answered(); finish()
	fi
}

/* seen_through: the outcome of a request after its caller had given up. */
inline seen_through() {
	if
	:: me.ans == Done || me.ans == Mine -> doubted()
	:: else
	fi;
	me.seen = false;
	me.watch = 0;
	me.token = 0;
	answered()
}

/* asked: the cleaner has its answer. */
inline asked() {
	if
#ifdef CLEANER_STOPS_EARLY
	:: me.final || me.ans == Done || me.settle == 0 -> answered(); leave()
#else
	:: me.final -> answered(); leave()
#endif
	:: else -> answered()
	fi
}

/* finish: the client has done with the lock; its doubt is left to the cleaner. */
inline finish() {
	me.window = 0;
	me.first = 0;
	me.seen = false;
	me.watch = 0;
	me.ended = false;
	me.excused = false;
	me.unanswered = false;
	me.token = 0;
	me.steady = 0;
#ifdef NO_CLEANER
	me.doubt = false;
#endif
	if
	:: me.doubt || me.req != None -> me.phase = Cleaning
	:: else -> leave()
	fi
}

inline leave() {
	no_orphan = !(live && grant == c) || me.tardy;
	assert(no_orphan);
	me.phase = Gone;
	me.doubt = false;
	for (k : 0 .. FAULTS) {
		if
		:: late[k].req == Acquire && late[k].from == c -> good = 1
		:: else
		fi
	}
	me.settle = (good == 0 -> 0 : me.settle);
	good = 0;
	k = 0
}

proctype Run(byte c) {
	do
	:: me.phase == Gone -> break
	:: atomic {
		if
		/* Acquire, until it is granted or the caller gives up. Clients are alike:
		 * beginning in this order loses nothing. */
		:: me.phase == Idle && (c == 0 || client[c - 1].phase != Idle) ->
			me.phase = Trying;
			send(Acquire)
		:: me.phase == Trying && me.req == None && looks(c) && !me.tried ->
			me.tried = calm;
			me.takes = me.seen;
			send(Acquire)
		:: me.phase == Trying && (me.req == None || me.ans == Sent) && !calm ->
			printf("client %d: its caller gives up\n", c);
			d_step { finish() }
		:: me.phase == Trying && me.req == None && looks(c) && !calm ->
			printf("client %d: its caller gives up, with a request under way\n", c);
			me.takes = me.seen;
			me.phase = Cleaning;
			me.first = 0;
			send(Acquire)

		/* Hold, and release at any time: in particular when the clock says so. */
		:: me.phase == Holding && me.window > 0 && me.req == None && !calm ->
			send(Heartbeat)
		:: me.phase == Holding && me.req == None ->
			printf("client %d: its lock ends\n", c);
			me.window = 0;
			me.phase = Releasing
		:: me.phase == Releasing && me.req == None -> send(Release)
		:: me.phase == Clearing && me.req == None -> send(Clear)

		/* The cleaner. */
		:: me.phase == Cleaning && me.req == None && me.doubt && !me.tried ->
			me.tried = calm;
			me.final = me.settle == 0;
			send(Release)
		:: me.phase == Cleaning && me.req == None && !me.doubt -> d_step { leave() }

#ifdef FLIGHT
		/* Requests and answers take their time. */
		:: me.ans == Sent -> serve()
		:: me.req != None && me.ans != Sent -> receive()
		:: me.req != None && may_fail -> forsake()
		fi
#else
		fi;
		if
		:: me.req == None
		:: me.req != None -> serve()
		:: me.req != None && may_fail /* it has not arrived */
		fi;
		if
		:: me.req == None
		:: me.req != None && me.ans != Sent -> receive()
		:: me.req != None && may_fail -> forsake()
		fi
#endif
	}
	od
}

#define down(timer) timer = (timer > 0 -> timer - 1 : 0)

/* age: a tick passes for client c. Its clock may lose it, once in a lease. */
inline age() {
	if
	:: true ->
		down(me.window);
		down(me.gain);
		down(me.first);
		down(me.steady)
	:: me.steady == 0 && (me.window > 0 || me.gain > 0 || me.first > 0) ->
		printf("client %d: its clock loses a tick\n", c);
		me.steady = LEASE - 1
	fi;
	me.tried = false;
	down(me.watch);
	down(me.settle)
#ifdef WATCH_FROM_SENDING
	;
	down(me.early)
#endif
}

/* pass: a tick passes. */
inline pass() {
	printf("a tick\n");
	do
	:: c < CLIENTS -> age(); c++
	:: else -> break
	od;
	c = 0
}

/* Once all is calm, time passes only when nobody has anything left to do, and ends
 * with the last client. If one of them could not go on, that would be a deadlock. */
#define rests(i) (client[i].phase == Gone || client[i].tried || (client[i].phase == Trying && !looks(i)))
#define gone(i)  (client[i].phase == Gone)
#if CLIENTS > 2
#define all_rest (rests(0) && rests(1) && rests(2))
#define all_gone (gone(0) && gone(1) && gone(2))
#else
#define all_rest (rests(0) && rests(1))
#define all_gone (gone(0) && gone(1))
#endif

proctype Clock() {
	byte c = 0;
	do
	:: atomic { !calm -> pass() }
	:: atomic { calm && all_rest && !all_gone ->
		pass();
		waited++;
		all_served = waited <= BOUND;
		assert(all_served)
	}
	:: calm && all_gone -> break
	od
}

#ifdef CALM
proctype Calm() {
	byte c = 0;
	atomic {
		printf("all is calm\n");
		calm = true;
		do
		:: c < CLIENTS ->
			if
			:: true
			:: me.phase != Gone ->
				printf("client %d: has crashed\n", c);
				me.phase = Gone;
				me.window = 0
			fi;
			c++
		:: else -> break
		od
	}
}
#endif

proctype Network() {
	byte s = 0;
end:
	do
	:: atomic {
		if
		:: late[0].req != None && !calm -> s = 0
#if FAULTS > 1
		:: late[1].req != None && !calm -> s = 1
#endif
#if FAULTS > 2
		:: late[2].req != None && !calm -> s = 2
#endif
		fi;
		arrive(s);
		s = 0
	}
	od
}

proctype Operator() {
	do
	:: atomic { breaks < BREAKS && !calm && live && grant < CLIENTS && client[grant].phase != Gone ->
		breaks++;
		client[grant].ended = true;
		if
		:: true ->
			printf("client %d: its lock is broken\n", grant);
			grant = STRANGER;
			d_step { marked() }
		:: true ->
			printf("client %d: its lock is broken now\n", grant);
			live = false;
#ifndef BREAK_FREES
			client[grant].excused = true;
#endif
			grant = STRANGER;
			d_step { changed() }
		fi
	}
	:: breaks == BREAKS || calm -> break
	od
}

init {
	byte c;
	atomic {
		for (c : 0 .. CLIENTS - 1) {
			run Run(c)
		}
		c = 0;
		run Clock();
		run Network();
		run Operator()
#ifdef CALM
		;
		run Calm()
#endif
	}
}
