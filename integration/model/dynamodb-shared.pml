/*
 * A key that is shared, on one item of a DynamoDB table: readers, or the holders of
 * permits, who each have an entry in the item; a writer; and a client of npm's
 * dynamodb-lock-client, which knows of neither. The runs are in dynamodb-shared.cases. Most
 * switches remove one cure.
 *
 * That a lease holds for one grant is what dynamodb.pml proves, with clocks that drift.
 * Here all clocks run alike, and there is no margin.
 *
 * Left out: leases longer than the item's, reclaims and breaks of one entry, limits that differ.
 * The exception to late_refused: a copy of an Open that arrives when the key is free and another
 * client was its last holder takes the key for nobody, for a lease.
 */

#ifndef SHARERS
#define SHARERS 2
#endif
#ifndef WRITERS
#define WRITERS 1 /* 0 or 1: an exclusive client of holdfast */
#endif
#ifndef NPMS
#define NPMS 1    /* 0 or 1: a client that replaces whole items and knows their guid only */
#endif
#ifndef CAP
#define CAP SHARERS /* so many may share */
#endif
#ifndef LEASE
#define LEASE 2   /* ticks */
#endif
#ifndef FAULTS
#define FAULTS 1  /* requests that are late, or lost, or sent twice, or without their answer */
#endif

#define CLIENTS (SHARERS + WRITERS + NPMS)
#define WRITER  SHARERS
#define NPM     (SHARERS + WRITERS)
#define NOBODY  CLIENTS

#ifndef BOUND
#define BOUND (LEASE + CLIENTS) /* ticks, until everybody is served once all is calm */
#endif

mtype = { None, Open, Join, Beat, Leave, Take, Intent, Free };        /* requests */
mtype = { Idle, Trying, Holding, Leaving, Cleaning, Gone };           /* phases */

/* The item. */
bool live;            /* the lease is a lease, and not 1 */
bool maps;            /* it has a map of holders, */
bool mine;            /* which was written together with its guid */
bool entry[SHARERS];  /* the holders in the map, */
byte tokens[SHARERS]; /* and their tokens */
byte guid = NOBODY;   /* whose grant it begins with */
byte token;
byte freed;           /* no grant that has seen a smaller token only may join */
bool intent;          /* a writer waits */

#ifdef IGNORE_VOIDING
#define shared (live && maps)
#else
#define shared (live && maps && mine)
#endif

/*
 * What a client has seen. A guid, the value of an entry, and an intent are new with each
 * write, and are only ever compared with what was seen. So each write clears "seen".
 */
typedef Seen {
	bool item;
	byte wait;            /* how long it has to stay so */
	bool holder[SHARERS];
	byte waits[SHARERS];
	bool intent;
	byte waiti;
}

typedef Client {
	mtype phase = Idle;
	byte window;          /* how long the lock is valid for it */
	byte token;
	Seen seen;
	byte known;           /* the token that it saw last */
	bool doubt;           /* a request to acquire has got no answer */
	bool asked;           /* a request to acquire was sent that may arrive again, */
	byte first;           /* and so long would the first of those be good for */
	byte settle;
	bool removed;         /* it was in the map, and is not any more */
	byte standing;        /* of a writer: how long its intent must count */
	bool stays;           /* once all is calm: it holds on */
	bool tried;
}
Client client[CLIENTS];

/* Requests that may arrive yet. */
typedef Late {
	mtype kind = None;
	byte from;
	byte known;
	bool takes;           /* the item has the guid that the sender saw */
	bool after;           /* of a heartbeat: there was none later; */
	byte good;            /* how long the lock is valid if it is answered */
	byte dead = NOBODY;   /* whose entry is as the sender saw it */
}
Late late[FAULTS + 1];
byte faults;
byte lastX, lastS;        /* the greatest tokens of exclusive and of shared grants */
bool calm;
byte waited;

bool exclusion = true, never_more = true, late_refused = true, tokens_rise = true;
bool writer_first = true, no_false_loss = true, all_served = true;

byte k = 0, n = 0;
bool ok = false, over = false;

#define me client[c]
#define may_fail (faults < FAULTS && !calm)
#define believes(i) (client[i].phase == Holding && client[i].window > 0)

#if SHARERS > 2
#define entries (entry[0] + entry[1] + entry[2])
#else
#define entries (entry[0] + entry[1])
#endif

inline rewritten() { /* the guid is new */
	for (k : 0 .. CLIENTS - 1) {
		client[k].seen.item = false;
		client[k].seen.wait = 0
	}
	for (k : 0 .. FAULTS) {
		late[k].takes = false
	}
	k = 0
}

inline touched(e) { /* the value of an entry is new */
	for (k : 0 .. CLIENTS - 1) {
		client[k].seen.holder[e] = false;
		client[k].seen.waits[e] = 0
	}
	for (k : 0 .. FAULTS) {
		if
		:: late[k].dead == e -> late[k].dead = NOBODY; late[k].kind = None
		:: else
		fi;
		if
		:: late[k].kind == Beat && late[k].from == e -> late[k].after = false
		:: else
		fi
	}
	k = 0
}

inline withdrawn() { /* the intent is new, or gone */
	for (k : 0 .. CLIENTS - 1) {
		client[k].seen.intent = false;
		client[k].seen.waiti = 0
	}
	k = 0
}

inline cleared() { /* the map is gone */
	for (n : 0 .. SHARERS - 1) {
		if
		:: entry[n] ->
			entry[n] = false;
			tokens[n] = 0;
			client[n].removed = true;
			touched(n)
		:: else
		fi
	}
	n = 0;
	maps = false
}

inline no_exclusive(i) {
	for (k : SHARERS .. CLIENTS - 1) {
		if
		:: k != i && believes(k) -> exclusion = false
		:: else
		fi
	}
	k = 0;
	assert(exclusion)
}

inline nobody_else(i) {
	for (k : 0 .. CLIENTS - 1) {
		if
		:: k != i && believes(k) -> exclusion = false
		:: else
		fi
	}
	k = 0;
	assert(exclusion)
}

inline not_too_many(i) {
	n = 0;
	for (k : 0 .. SHARERS - 1) {
		n = n + (k != i && believes(k) -> 1 : 0)
	}
	k = 0;
	never_more = n < CAP;
	assert(never_more);
	n = 0
}

/* enter: sharer i is in the map. */
inline enter(i) {
#if WRITERS > 0
	writer_first = !(intent && client[WRITER].standing > 0);
	assert(writer_first);
#endif
	no_exclusive(i);
	not_too_many(i);
	token++;
	tokens[i] = token;
	entry[i] = true;
	client[i].removed = false;
	guid = i;
	mine = true;
	rewritten();
	touched(i);
	if
	:: intent -> intent = false; withdrawn()
	:: else
	fi
}

/* out: sharer i is not in the map any more. */
inline out(i) {
	entry[i] = false;
	tokens[i] = 0;
	client[i].removed = true;
#ifndef FORGET_FREED
	freed = token;
#endif
	touched(i)
}

#ifdef NO_INTENT
#define kept_out(expired) false
#else
#define kept_out(expired) (intent && !(expired))
#endif
#ifdef ANY_TIME
#define not_late(its_token) true
#else
#define not_late(its_token) (freed <= its_token)
#endif

/*
 * apply carries out a request of client i, as the table does. its_token is the token that
 * the sender saw; takeover, that the item has the guid that it saw; replaced, an entry to be
 * replaced, which has the value that it saw; expired, that it may pass the intent.
 */
inline apply(request, i, its_token, takeover, replaced, expired) {
	ok = false;
	if
	:: request == Open && guid != i && (!live || takeover) && !kept_out(expired) ->
		cleared();
#ifndef OPEN_KEEPS_FREED
		freed = token;
#endif
		maps = true;
		live = true;
		enter(i);
		ok = true
	:: request == Join && shared && !entry[i] && !kept_out(expired) && not_late(its_token) ->
		if
		:: replaced == NOBODY && entries < CAP -> enter(i); ok = true
		:: replaced != NOBODY && entry[replaced] -> out(replaced); enter(i); ok = true
		:: else
		fi
	:: request == Beat && shared && entry[i] ->
#if !defined(SHARED_TOUCH) && !defined(REPLACE_BY_TOKEN)
		touched(i);
#endif
#ifndef KEEP_TOP
		guid = i;
		mine = true;
		rewritten();
#endif
		ok = true
	:: request == Leave && shared && entry[i] ->
		out(i);
		if
		:: entries == 0 -> live = false; maps = false
		:: else
		fi;
		guid = i;
		mine = true;
		rewritten();
		ok = true
	:: request == Take && guid != i && (!live || takeover) ->
		nobody_else(i);
#ifndef OLD_CLIENT
		cleared();
		freed = 0;
		if
		:: intent -> intent = false; withdrawn()
		:: else
		fi;
#endif
		token++;
		live = true;
		guid = i;
		mine = false;
		rewritten();
		ok = true
	:: request == Intent && shared && (!intent || client[i].standing > 0) ->
		intent = true;
		withdrawn();
		ok = true
	:: request == Free && live && !shared && guid == i ->
		live = false;
		rewritten();
		ok = true
	:: else
	fi
}

/* look: client c reads the item. */
inline look() {
	d_step {
		me.known = token;
		if
		:: live && !me.seen.item -> me.seen.item = true; me.seen.wait = LEASE
		:: else
		fi;
		for (k : 0 .. SHARERS - 1) {
			if
			:: maps && entry[k] && !me.seen.holder[k] ->
				me.seen.holder[k] = true;
				me.seen.waits[k] = LEASE
			:: else
			fi
		}
		k = 0;
		if
		:: intent && !me.seen.intent -> me.seen.intent = true; me.seen.waiti = LEASE
		:: else
		fi
	}
}

/* whether a look would show anything new */
#if SHARERS > 2
#define new_entry (entry[0] && !me.seen.holder[0] || entry[1] && !me.seen.holder[1] || entry[2] && !me.seen.holder[2])
#define all_dead  ((!entry[0] || dead(0)) && (!entry[1] || dead(1)) && (!entry[2] || dead(2)))
#else
#define new_entry (entry[0] && !me.seen.holder[0] || entry[1] && !me.seen.holder[1])
#define all_dead  ((!entry[0] || dead(0)) && (!entry[1] || dead(1)))
#endif
#define news (me.known != token || live && !me.seen.item || maps && new_entry || intent && !me.seen.intent)

/* what client c may take for dead, by what it has seen */
#ifdef SHARED_TOUCH
#define dead(e) (me.seen.item && me.seen.wait == 0)
#else
#define dead(e) (me.seen.holder[e] && me.seen.waits[e] == 0)
#endif
#define silent (me.seen.item && me.seen.wait == 0)
#define left (me.seen.item && (shared -> all_dead : silent))
#ifdef INTENT_STAYS
#define lapsed false
#else
#define lapsed (me.seen.intent && me.seen.waiti == 0)
#endif

/* send: client c sends a request. heard: and has its answer, ok. */
bool heard, abandoned, pass_intent;
byte victim = NOBODY;
inline send(request) {
	d_step {
		heard = true;
		me.removed = me.removed && request != Open && request != Join;
		abandoned = left;
		pass_intent = lapsed;
		apply(request, c, me.known, abandoned, victim, pass_intent);
		abandoned = false;
		pass_intent = false
	}
}

/* fail: the same, and something goes wrong. */
inline fail(request) {
	me.removed = me.removed && request != Open && request != Join;
	late[faults].kind = request;
	late[faults].from = c;
	late[faults].known = me.known;
	late[faults].takes = left;
	late[faults].after = true;
	late[faults].good = (request == Beat -> LEASE : 0);
	late[faults].dead = victim;
	faults++;
	heard = false;
	if
	:: !me.asked && me.phase == Trying -> me.asked = true; me.first = LEASE
	:: else
	fi;
	printf("client %d: %e goes wrong\n", c, request);
	if
	:: true ->
		d_step {
			pass_intent = lapsed;
			apply(request, c, me.known, late[faults - 1].takes, victim, pass_intent);
			pass_intent = false
		};
		printf("client %d: %e: %d\n", c, request, ok);
		if
		:: true -> heard = true /* it will arrive once more */
		:: true
		fi
	:: true -> ok = false
	fi
}

/* admit: sharer c has the key, and counts from so long ago. */
inline admit(good) {
	d_step {
		printf("client %d: shares the key, token %d, for %d\n", c, tokens[c], good);
		me.window = good;
#ifdef TOKEN_OF_ITEM
		me.token = token;
#else
		me.token = tokens[c];
#endif
		me.phase = (good > 0 -> Holding : Leaving);
		if
		:: good > 0 ->
			for (k : 0 .. SHARERS - 1) {
				if
				:: k != c && me.token == client[k].token -> tokens_rise = false
				:: else
				fi
			}
			k = 0;
			tokens_rise = tokens_rise && me.token > lastX;
			assert(tokens_rise);
			lastS = (me.token > lastS -> me.token : lastS)
		:: else
		fi
	}
}

inline ask_in() { /* what came of an Open or a Join */
	if
	:: heard && ok -> admit(LEASE)
	:: heard && !ok -> look()
	:: else ->
		me.doubt = true;
		me.settle = LEASE
	fi;
	heard = false;
	ok = false;
	victim = NOBODY
}

inline finish() {
	d_step {
		me.phase = Gone;
		me.window = 0;
		me.doubt = false;
		me.asked = false;
		me.first = 0;
		me.settle = 0;
		me.token = 0;
		me.standing = 0;
		me.known = 0;
		me.seen.item = false;
		me.seen.wait = 0;
		me.seen.intent = false;
		me.seen.waiti = 0;
		for (k : 0 .. SHARERS - 1) {
			me.seen.holder[k] = false;
			me.seen.waits[k] = 0
		}
		k = 0
	}
}

/* Who has seen its own entry asks no more: it would say that it has seen its token. */
#ifdef ASK_AGAIN
#define own_seen false
#else
#define own_seen (entry[c] && me.known >= tokens[c])
#endif
#define joinable (shared && !entry[c] && not_late(me.known) && !kept_out(lapsed))
#define gone_by(e) (c != e && entry[e] && dead(e))
#if SHARERS > 2
#define some_dead (gone_by(0) || gone_by(1) || gone_by(2))
#else
#define some_dead (gone_by(0) || gone_by(1))
#endif

proctype Sharer(byte c) {
end:
	do
	:: me.phase == Gone -> break
	:: atomic {
		if
		:: me.phase == Idle && (c == 0 || client[c - 1].phase != Idle) -> me.phase = Trying
		:: me.phase == Trying && news -> look()

		/* An answer that was lost: a repetition meets its own entry. */
		:: me.phase == Trying && shared && entry[c] ->
#ifdef COUNT_FROM_LAST_TRY
			admit(LEASE)
#else
			admit(me.first)
#endif
		:: me.phase == Trying && !(shared && entry[c]) && (!live || left) && guid != c && !kept_out(lapsed) ->
			send(Open);
			ask_in()
		:: me.phase == Trying && may_fail && (!live || left) ->
			fail(Open);
			ask_in()
		:: me.phase == Trying && joinable && entries < CAP ->
			send(Join);
			ask_in()
		:: me.phase == Trying && shared && may_fail && !own_seen ->
			fail(Join);
			ask_in()
		:: me.phase == Trying && joinable && some_dead ->
			if
			:: c != 0 && entry[0] && dead(0) -> victim = 0
			:: c != 1 && entry[1] && dead(1) -> victim = 1
#if SHARERS > 2
			:: c != 2 && entry[2] && dead(2) -> victim = 2
#endif
			fi;
			if
			:: send(Join)
			:: may_fail -> fail(Join)
			fi;
			ask_in()
		:: me.phase == Trying && !calm ->
			printf("client %d: gives up\n", c);
			if
			:: me.doubt -> me.phase = Cleaning
			:: else -> finish()
			fi

		/* Hold, and release at any time. */
		:: me.phase == Holding && me.window > 0 && (!calm || me.stays) && !me.tried ->
			me.tried = calm;
			if
			:: send(Beat)
			:: may_fail -> fail(Beat)
			fi;
			if
			:: heard && ok -> me.window = LEASE
			:: heard && !ok -> 
				no_false_loss = me.removed;
				assert(no_false_loss);
				finish()
			:: else
			fi;
			heard = false;
			ok = false
		:: me.phase == Holding && !me.stays -> me.window = 0; me.phase = Leaving
		:: me.phase == Leaving || me.phase == Cleaning && entry[c] && shared ->
			if
			:: send(Leave)
			:: may_fail -> fail(Leave)
			fi;
			if
			:: heard && me.phase == Leaving -> finish() /* it is out, one way or another */
			:: else
			fi;
			heard = false;
			ok = false
		:: me.phase == Cleaning && me.settle == 0 && !(entry[c] && shared) -> finish()
		fi
	}
	od
}

/* An exclusive client. It does not renew: that a lease can be is shown elsewhere. */
inline granted_alone() {
	d_step {
		printf("client %d: has the key alone, token %d\n", c, token);
		me.phase = Holding;
		me.window = LEASE;
		me.token = token;
		tokens_rise = token > lastX && token > lastS;
		assert(tokens_rise);
		lastX = token
	}
}

proctype Exclusive(byte c) {
	do
	:: me.phase == Gone -> break
	:: atomic {
		if
		:: me.phase == Idle -> me.phase = Trying
		:: me.phase == Trying && news -> look()
#if WRITERS > 0
		:: c == WRITER && me.phase == Trying && shared && (!intent || me.standing > 0) && !me.tried ->
			me.tried = calm;
			if
			:: send(Intent)
			:: may_fail -> fail(Intent)
			fi;
			if
			:: heard && ok -> me.standing = LEASE
			:: else
			fi;
			heard = false;
			ok = false
#endif
		:: me.phase == Trying && (!live || (c == WRITER && WRITERS > 0 -> left : silent)) ->
			if
			:: d_step { heard = true; apply(Take, c, 0, true, NOBODY, true) }
			:: c == WRITER && may_fail -> fail(Take)
			fi;
			me.standing = 0;
			if
			:: heard && ok -> granted_alone()
			:: heard && !ok
			:: else -> finish() /* what it has taken runs out */
			fi;
			heard = false;
			ok = false
		:: me.phase == Trying && !calm ->
			printf("client %d: gives up\n", c);
			if
			:: intent && me.standing > 0 -> intent = false; d_step { withdrawn() }
			:: true /* or its process dies */
			fi;
			finish()
		:: me.phase == Holding ->
			printf("client %d: lets go\n", c);
			send(Free);
			heard = false;
			ok = false;
			finish()
		:: me.phase == Holding && !calm -> finish() /* or its process dies */
		fi
	}
	od
}

#define down(timer) timer = (timer > 0 -> timer - 1 : 0)
inline pass() {
	printf("a tick\n");
	for (k : 0 .. FAULTS) {
		down(late[k].good)
	}
	k = 0;
	for (c : 0 .. CLIENTS - 1) {
		down(me.window);
		down(me.first);
		down(me.settle);
		down(me.standing);
		down(me.seen.wait);
		down(me.seen.waiti);
		for (k : 0 .. SHARERS - 1) {
			down(me.seen.waits[k])
		}
		k = 0;
		me.tried = false
	}
	c = 0
}

/* Once all is calm, time passes only when nobody can do anything. */
#define gone(i) (client[i].phase == Gone || client[i].stays)
#if CLIENTS > 3
#define all_gone (gone(0) && gone(1) && gone(2) && gone(3))
#elif CLIENTS > 2
#define all_gone (gone(0) && gone(1) && gone(2))
#else
#define all_gone (gone(0) && gone(1))
#endif

proctype Clock() {
	byte c = 0;
	do
	:: atomic { !calm -> d_step { pass() } }
	:: atomic { calm && timeout ->
		if
		:: all_gone -> break
		:: else ->
			d_step { pass() };
			waited++;
			all_served = waited <= BOUND;
			assert(all_served)
		fi
	}
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
				finish()
#ifdef STAY
			:: c == 1 && me.phase == Holding && me.window > 0 -> me.stays = true
#endif
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
		:: late[0].kind != None && !calm -> s = 0
#if FAULTS > 1
		:: late[1].kind != None && !calm -> s = 1
#endif
		fi;
		printf("%e of client %d arrives\n", late[s].kind, late[s].from);
		d_step {
			if
			:: late[s].kind == Beat && !late[s].after
			:: else ->
				over = client[late[s].from].removed;
				apply(late[s].kind, late[s].from, late[s].known, late[s].takes, late[s].dead, false);
				late_refused = !(late[s].kind == Join && ok && over);
				assert(late_refused);
				if
				:: late[s].kind == Beat && ok && believes(late[s].from) && late[s].good > client[late[s].from].window ->
					client[late[s].from].window = late[s].good /* it was only slow */
				:: else
				fi;
				over = false;
				ok = false
			fi;
			late[s].kind = None;
			late[s].dead = NOBODY;
			late[s].takes = false;
			late[s].after = false;
			late[s].good = 0;
			late[s].known = 0;
			late[s].from = 0
		};
		s = 0
	}
	od
}

init {
	byte c;
	atomic {
		for (c : 0 .. SHARERS - 1) {
			run Sharer(c)
		}
		for (c : SHARERS .. CLIENTS - 1) {
			run Exclusive(c)
		}
		c = 0;
		run Clock();
		run Network()
#ifdef CALM
		;
		run Calm()
#endif
	}
}
