/*
 * Ask against Break, reclaim and the holder's own SetData on ZooKeeper (docs/design/zookeeper.md; zklock/ask.go,
 * zklock/own.go, zklock/data.go, contender.reclaim in zklock/recipe.go, Break in zklock/inspect.go).
 *
 * One client holds a lock, under a node of its own, and perhaps once more, under another. Others ask for the lock, break
 * it, reclaim it under the same owner name, or overwrite its node as Curator's Revoker does. The queue is in the other
 * model, zookeeper-queue.pml, and time in zookeeper-trust.pml: here the session lives.
 *
 * Between the holder and its server there is a channel each way; a server that lags is one whose messages are late. What
 * is read from the connection is acted on at once if it is an event. A reply wakes a goroutine, which acts at any later
 * time, and what a goroutine is to send goes out at any later time.
 *
 * A reclaimed lock may be reported as broken if its holder was cut off, had not watched yet, had a write of its own under way,
 * or looks after the reclaiming client has left the queue. Left out: sessions that end; the queue before the grant; heartbeats
 * and Verify; ACLs; servers that lag for the asker; two asks at a time.
 *
 * Faults have budgets:
 */
#ifndef GRANTS
#define GRANTS 1	/* locks that the holder acquires, one after another: 1 or 2 */
#endif
#ifndef ASKS
#define ASKS 1		/* calls of Ask */
#endif
#ifndef BREAKS
#define BREAKS 0	/* ... of Break */
#endif
#ifndef RECLAIMS
#define RECLAIMS 0	/* clients that reclaim: 0 or 1 */
#endif
#ifndef REVOKES
#define REVOKES 0	/* writes of the Revoker */
#endif
#ifndef SETS
#define SETS 0		/* calls of SetData by the holder */
#endif
#ifndef CUTS
#define CUTS 0		/* connections lost, with everything in flight */
#endif
#ifndef LATE
#define LATE 0		/* requests of others without a reply, which may be carried out at once, later or never, and are repeated */
#endif

/*
 * Switches that remove a cure; each has a counterexample:
 *
 *   ONE_NAME          a node of one owner has the name of the one before
 *   ASK_BY_KEY        an ask that is repeated goes to whoever has the lock by then
 *   ASK_ANY_VERSION   the write of an ask is not conditional on the version that it has read
 *   ASK_OVERWRITES    it replaces the data of the node, as Curator's Revoker does
 *   SET_ANY_VERSION   nor is that of SetData
 *   SET_FORGETS_WISH  SetData writes its data alone, although the holder has been asked
 *   FIRST_READ_BLIND  the first read of the own node sets a watch, and its data is ignored, as in Curator
 *   OWN_WRITE_BLIND   the node is watched again after an own write, and its data is ignored
 *   EARLY_REPLIES     on a new connection replies may come before the watches are set again: Z9
 *   WRITE_IS_RECLAIM  a node that is gone after a write to it was reclaimed
 *   COUNT_ANY_MARK    ... if anybody who reclaims is in the queue, whoever's owner and client that is
 *   LIST_ONCE         the list that goes out with the read is the last word
 *   DATA_NAMES_OWNER  who reclaims goes by the data of nodes alone
 *
 * and one that removes an assumption:
 *
 *   EXACT             a lock is not told to be reclaimed if it was broken, and then somebody came to reclaim it
 *
 * The verifier runs with -E: Audit judges whether a state in which nothing more can happen is correct.
 *
 * REACH=n shows that the proofs are not vacuous: see unreached, below.
 */

/* The properties, each asserted where it could cease to hold. */
bit reaches_meant = 1;		/* a holder is told of an ask, or loses its lock, only if that was meant for this grant */
bit ask_is_told = 1;		/* when nothing can happen any more, a holder that was asked, and has its lock, has been told */
bit end_is_told = 1;		/* ... and one whose node is gone */
bit data_is_kept = 1;		/* but for the Revoker, what the holder has written is changed by nobody, and older data does not come back */
bit wish_is_kept = 1;		/* whoever looks at the node of a grant that was asked for finds the wish */
bit cause_is_right = 1;		/* a lock that nobody reclaims is not told to be reclaimed; one that is reclaimed is told to be, but see excused */
bit reclaim_is_done = 1;	/* who reclaims does not wait for a node of its own owner that was there before */
bit unreached = 1;		/* not a property: what REACH asks for has not happened */

mtype = { NONE, ASKED, SENT, GOOD, BAD };		/* reads, lists and writes of the holder */
mtype = { READ, LIST, LOOK, SET, CHANGED, DELETED };	/* its requests, their replies, and events */
mtype = { LIVE, ENDING, BROKEN, RECLAIMED, RELEASED };	/* a grant, for its holder */
mtype = { ASK, BREAK };					/* late requests of others */

#define NOBODY 2

/* The nodes, by their grants. A transaction has a number. */
byte zxid;
bit exists[2];
byte version[2], data[2], mzxid[2];
bit wish[2], erased[2];
bit watched[2];			/* by the holder, at its present server */
bit reclaimer;			/* who reclaims is in the queue */

/* What has happened, for the properties. */
bit asked[2], broken[2], evicted[2];		/* somebody meant to, or did */
bit stood[2];					/* who reclaims has come */
bit excused[2];					/* an own write was under way just then, or who reclaimed has left too soon */
bit by_holder[2];				/* the last event of the node was caused by the holder's own write */
bit told[2];					/* the holder has been told of an ask */
bit was_watched[2], was_cut[2];
byte confirmed[2];				/* data of the latest SetData that has returned */

byte asks = ASKS, breaks = BREAKS, reclaims = RECLAIMS, revokes = REVOKES, sets = SETS, cuts = CUTS, lates = LATE;

/* The holder's connection. */
bit up = 1;
byte seen;			/* the last zxid in a reply */
chan requests = [4] of { mtype, byte, byte, byte, bit };	/* kind, grant, version, data, wish */
chan replies = [6] of { mtype, byte, bit, byte, byte, bit, byte };	/* kind, grant, found, version, data, wish, zxid */

/* The holder: hold, own and rewrite. */
byte cur = NOBODY;		/* its grant */
mtype state = RELEASED;
byte writes, after, found;
mtype watch = NONE;		/* the read that sets it: NONE before the first, ASKED, SENT, BAD or GOOD: it has been taken in */
bit registered;			/* go-zookeeper knows of the watch */
bit answered, missing, answer_wish;	/* the reply to the read, until a goroutine has taken it in */
byte answer_version, watch_version;
bit former, former_wish;	/* the same of the watch before, which has fired first */
bit first;			/* nothing has been read of the node */
bit blind;			/* an own write has fired the watch before this one */
bit changed_known;		/* the version on which the watch was set that has fired last */
byte changed_version;
byte mine_from, mine_to;
mtype names = NONE;		/* the list: NONE, ASKED, SENT, GOOD or BAD: nobody who reclaims is in it */
bit again;			/* it is the second one */
bit wanted;			/* somebody asks */
mtype rewrite = NONE;		/* the read or write of SetData: ASKED or SENT, or its reply: GOOD or BAD */
mtype rewriting = NONE;		/* LOOK or SET */
bit known, tried;
bit abandoned;			/* a write was given up before its reply came */
byte abandoned_version;
byte version_known, tried_version;
byte rewrite_version, rewrite_data;		/* in the reply */
bit rewrite_wish;
byte writing;			/* what SetData is to write; 0: there is none under way */

/* Late requests: of the holder, and of others. */
bit late_set, late_wish;
byte late_grant, late_version, late_data;
mtype late = NONE;
byte late_to, late_at, late_with;

#define has(v) (mine_from <= (v) && (v) < mine_to)
#define changed_by_self (changed_known && has(changed_version))

/* locate sets n to the node that has the name of the node of a grant. */
inline locate(n, g) {
#ifdef ONE_NAME
	n = (exists[cur] -> cur : g)
#else
	n = g
#endif
}

/* fire tells the holder of what has happened to a node. */
inline fire(n, what) {
	mzxid[n] = zxid;
	if
	:: watched[n] -> watched[n] = 0; replies!what, n, 0, 0, 0, 0, zxid
	:: else
	fi
}

/* write is a write to a node that is there. */
inline write(n, d, w, who) {
	zxid++; version[n]++;
	data_is_kept = (d >= data[n] || erased[n]); assert(data_is_kept);
	wish_is_kept = (w || !wish[n]); assert(wish_is_kept);
	data[n] = d; wish[n] = w;
	by_holder[n] = (watched[n] -> who : by_holder[n]);
	fire(n, CHANGED)
}

inline remove(n) { zxid++; exists[n] = 0; fire(n, DELETED) }

/* ended: the holder knows that its node is gone, and why. */
inline ended(why) {
	state = why;
	printf("the holder: its lock is over: %e\n", why);
	cause_is_right = !(why == RECLAIMED && !stood[cur]) && !(why == BROKEN && evicted[cur] && !excused[cur] && !was_cut[cur]);
	assert(cause_is_right);
	reaches_meant = broken[cur] || evicted[cur];
	assert(reaches_meant);
#if REACH == 1
	unreached = !(why == RECLAIMED && asked[cur]);
#endif
#if REACH == 2
	unreached = !(why == BROKEN && asked[cur] && names == BAD);
#endif
	assert(unreached)
}

#define writes_now (rewriting == SET || abandoned)

/* gone is own.missing: the read or the event has come that says so. */
inline gone() {
	excused[cur] = excused[cur] || writes_now;
#ifdef WRITE_IS_RECLAIM
	if :: writes > found && !changed_by_self -> ended(RECLAIMED) :: else -> ended(BROKEN) fi
#else
	if
	:: writes > found && !changed_by_self ->
		if :: names == NONE -> names = ASKED; again = 1 :: else fi;
		state = ENDING
	:: else -> ended(BROKEN)
	fi
#endif
}

/* set is own.set. */
inline set_watch() { after = writes; watch = ASKED; registered = 0; answered = 0 }

inline note_wish() {
	wanted = 1;
	if
	:: state == LIVE && !told[cur] ->
		told[cur] = 1;
		printf("the holder: somebody asks for the lock\n");
		reaches_meant = asked[cur]; assert(reaches_meant)
	:: else
	fi
}

/* reset forgets what belongs to a grant. */
inline reset() {
	writes = 0; after = 0; found = 0; watch = NONE; registered = 0; answered = 0; missing = 0; answer_wish = 0;
	answer_version = 0; watch_version = 0; former = 0; former_wish = 0; first = 0; blind = 0; changed_known = 0; changed_version = 0;
	mine_from = 0; mine_to = 0; names = NONE; again = 0; wanted = 0; rewrite = NONE; rewriting = NONE; known = 0; tried = 0;
	version_known = 0; tried_version = 0; abandoned = 0; abandoned_version = 0; rewrite_version = 0; rewrite_data = 0; rewrite_wish = 0; writing = 0
}

/* returned is the end of a call of SetData. */
inline returned() { rewrite = NONE; rewriting = NONE; writing = 0; tried = 0; tried_version = 0; rewrite_version = 0; rewrite_data = 0; rewrite_wish = 0 }

/* refused is own.wrote for a write that was. */
inline refused(v) { if :: mine_to == v + 1 -> mine_to = v :: else fi }

/* next is what SetData does next. */
inline next() { rewriting = (known -> SET : LOOK); rewrite = ASKED }

proctype Holder() {
	mtype kind;
	byte g, v, d, z;
	bit ok, w;

	do
	/* A grant. Who reclaims has left the queue, or its place is before this one. */
	:: atomic { state != LIVE && state != ENDING && up && !reclaimer && (cur == NOBODY || cur + 1 < GRANTS) && empty(requests) && empty(replies) ->
		d_step {
			reset();
			cur = (cur == NOBODY -> 0 : cur + 1);
			zxid++; exists[cur] = 1; mzxid[cur] = zxid; seen = zxid;
			state = LIVE; first = 1; known = 1;
			printf("the holder has lock %d\n", cur)
		} }

	/* own.setLater. */
	:: atomic { state == LIVE && watch == NONE -> d_step { set_watch() } }

	/* Goroutines send. */
	:: atomic { up && watch == ASKED && (state == LIVE || state == ENDING) && nfull(requests) -> watch = SENT; requests!READ, cur, 0, 0, 0 }
	:: atomic { up && names == ASKED && (state == LIVE || state == ENDING) && nfull(requests) -> names = SENT; requests!LIST, cur, 0, 0, 0 }
	:: atomic { up && rewrite == ASKED && state == LIVE && nfull(requests) ->
		d_step {
			rewrite = SENT;
			if
			:: rewriting == LOOK -> requests!LOOK, cur, 0, 0, 0
			:: rewriting == SET ->
				known = 0;
				/* own.writing */
				if :: version_known < mine_from || version_known > mine_to -> mine_from = version_known :: else fi;
				mine_to = version_known + 1;
				printf("the holder writes data %d, for version %d\n", writing, version_known);
#ifdef SET_FORGETS_WISH
				requests!SET, cur, version_known, writing, 0
#else
				requests!SET, cur, version_known, writing, wanted
#endif
			fi
		} }

	/* The server carries out a request. */
	:: atomic { up && nempty(requests) && len(replies) < 5 -> d_step {
		requests?kind, g, v, d, w;
		if
		:: kind == READ && exists[g] -> watched[g] = 1; was_watched[g] = 1; replies!READ, g, 1, version[g], data[g], wish[g], zxid
		:: kind == READ && !exists[g] -> replies!READ, g, 0, 0, 0, 0, zxid
		:: kind == LIST ->
			if :: evicted[g] && !reclaimer -> excused[g] = 1 :: else fi;
#ifdef COUNT_ANY_MARK
			replies!LIST, g, 1, 0, 0, 0, zxid
#else
			replies!LIST, g, reclaimer, 0, 0, 0, zxid
#endif
		:: kind == LOOK && exists[g] -> replies!LOOK, g, 1, version[g], data[g], wish[g], zxid
		:: kind == LOOK && !exists[g] -> replies!LOOK, g, 0, 0, 0, 0, zxid
#ifdef SET_ANY_VERSION
		:: kind == SET && exists[g] ->
#else
		:: kind == SET && exists[g] && version[g] == v ->
#endif
			write(g, d, w, 1); replies!SET, g, 1, version[g], 0, 0, zxid
		:: else -> replies!SET, g, 0, exists[g], 0, 0, zxid	/* refused: the version is another, or there is no node */
		fi;
		kind = NONE; g = 0; v = 0; d = 0; w = 0 } }

	/* The reader of the connection. */
	:: atomic { up && nempty(replies) && !(answered && former) -> d_step {
		replies?kind, g, ok, v, d, w, z;
		if
		:: kind != CHANGED && kind != DELETED -> seen = z
		:: else
		fi;
		if
		:: g != cur || (state != LIVE && state != ENDING)
		:: else -> if
			:: kind == READ -> answered = 1; missing = !ok; answer_version = v; answer_wish = w; registered = ok
			:: kind == LIST -> names = (ok -> GOOD : BAD)
			:: kind == LOOK || kind == SET ->
				if
				:: kind == SET && abandoned ->
					if :: !ok -> refused(abandoned_version) :: else fi;
					abandoned = 0; abandoned_version = 0
				:: rewrite == SENT && kind == rewriting -> rewrite = (ok -> GOOD : BAD); rewrite_version = v; rewrite_data = d; rewrite_wish = w
				:: else
				fi
			:: kind == CHANGED && registered -> 	/* own.fired */
				printf("the holder: its node was written to\n");
				writes++;
				changed_known = (watch == GOOD); changed_version = watch_version;
				if :: answered -> former = 1; former_wish = answer_wish :: else fi;
				names = NONE;
				blind = changed_by_self;
				if
				:: !changed_by_self && state == LIVE -> names = ASKED; again = 0
				:: else
				fi;
				watch_version = 0;
				set_watch()
			:: kind == DELETED && registered ->
				registered = 0;
				found = after;
				if :: state == LIVE -> gone() :: else fi
			:: else
			fi
		fi;
		kind = NONE; g = 0; ok = 0; v = 0; d = 0; w = 0; z = 0 } }

	/* own.read, and a read that finds no node. */
	:: atomic { answered && state == LIVE -> d_step {
		answered = 0;
		if
		:: missing -> missing = 0; watch = BAD; printf("the holder: its node is gone\n"); gone()
		:: else ->
			watch = GOOD; watch_version = answer_version; found = after;
#ifdef FIRST_READ_BLIND
			if :: first -> answer_wish = 0 :: else fi;
#endif
#ifdef OWN_WRITE_BLIND
			if :: blind -> answer_wish = 0 :: else fi;
#endif
			if :: answer_wish -> note_wish() :: else fi
		fi;
		first = 0; answer_version = 0; answer_wish = 0 } }
	:: atomic { former && state == LIVE -> d_step { former = 0;
#ifdef FIRST_READ_BLIND
			if :: first -> former_wish = 0 :: else fi;
			first = 0;
#endif
		if :: former_wish -> note_wish() :: else fi; former_wish = 0 } }

	/* own.missing, when the list is there. */
	:: atomic { state == ENDING && names == GOOD -> d_step { ended(RECLAIMED) } }
	:: atomic { state == ENDING && names == BAD -> d_step {
#ifdef LIST_ONCE
		ended(BROKEN)
#else
		if :: !again -> names = ASKED; again = 1 :: else -> ended(BROKEN) fi
#endif
		} }

	/* SetData, and its caller, who may give up. */
	:: atomic { state == LIVE && sets > 0 && writing == 0 -> d_step { sets--; writing = SETS - sets; next() } }
	:: atomic { state == LIVE && writing != 0 && rewrite != ASKED -> d_step { printf("the holder gives up writing data %d\n", writing);
		if
		:: rewriting == SET && rewrite == SENT -> abandoned = 1; abandoned_version = version_known
		:: rewriting == SET && rewrite == BAD -> refused(version_known)
		:: else
		fi;
		returned() } }
	:: atomic { state == LIVE && rewriting == LOOK && rewrite == BAD -> d_step { returned() } }
	:: atomic { state == LIVE && rewriting == LOOK && rewrite == GOOD -> d_step {
		known = 1; version_known = rewrite_version;
		if :: rewrite_wish -> note_wish() :: else fi;
		if
		:: tried && rewrite_version > tried_version && rewrite_data == writing -> confirmed[cur] = writing; returned()
		:: else -> next()
		fi } }
	:: atomic { state == LIVE && rewriting == SET && rewrite == GOOD -> d_step {
		known = 1; version_known = rewrite_version; confirmed[cur] = writing; returned();
#if REACH == 4
		unreached = !told[cur]; assert(unreached)
#endif
		} }
	:: atomic { state == LIVE && rewriting == SET && rewrite == BAD -> d_step {
		refused(version_known);
		if :: rewrite_version == 0 -> returned() :: else -> next() fi } }

	/* The holder releases its lock: own.stop, and the deletion of the node, which the other model has. */
	:: atomic { state == LIVE && up && GRANTS > 1 && cur + 1 < GRANTS -> d_step {
		state = RELEASED; printf("the holder releases its lock\n");
		watched[cur] = 0;
		if :: exists[cur] -> zxid++; exists[cur] = 0 :: else fi } }
	/* What is on its way for a lock that is over. */
	:: atomic { up && state != LIVE && state != ENDING && cur != NOBODY && nempty(replies) -> d_step { replies?kind, g, ok, v, d, w, z; kind = NONE; g = 0; ok = 0; v = 0; d = 0; w = 0; z = 0 } }

	/* The connection is lost. A write that is on its way may be carried out later. */
	:: atomic { up && cuts > 0 && (state == LIVE || state == ENDING) -> d_step {
		cuts--; up = 0; was_cut[cur] = 1; watched[cur] = 0;
		printf("the holder loses its connection\n");
		do
		:: nempty(requests) -> requests?kind, g, v, d, w;
			if :: kind == SET -> late_set = 1; late_grant = g; late_version = v; late_data = d; late_wish = w :: else fi
		:: empty(requests) -> break
		od;
		do :: nempty(replies) -> replies?kind, g, ok, v, d, w, z :: empty(replies) -> break od;
		kind = NONE; g = 0; ok = 0; v = 0; d = 0; w = 0; z = 0;
		abandoned = 0; abandoned_version = 0;
		if :: watch == SENT && !answered && !registered -> watch = ASKED :: else fi;
		if :: names == SENT -> names = ASKED :: else fi;
		if
		:: rewrite == SENT ->
			if :: rewriting == SET -> tried = 1; tried_version = version_known :: else fi;
			next()
		:: else
		fi } }
	/* link.await: the end of a lock does not wait for the next connection. */
	:: atomic { state == ENDING && !up -> d_step { ended(BROKEN) } }
	/* The session is resumed, and what is watched is compared with the last zxid. */
	:: atomic { !up -> d_step {
		up = 1;
		printf("the holder is connected again\n");
#ifdef EARLY_REPLIES
		seen = zxid;
#endif
		if
		:: !registered
		:: registered && !exists[cur] -> replies!DELETED, cur, 0, 0, 0, 0, zxid
		:: registered && exists[cur] && mzxid[cur] > seen -> replies!CHANGED, cur, 0, 0, 0, 0, zxid
		:: else -> watched[cur] = 1
		fi } }
	:: atomic { late_set -> d_step {
		if
#ifdef SET_ANY_VERSION
		:: exists[late_grant] ->
#else
		:: exists[late_grant] && version[late_grant] == late_version ->
#endif
			printf("a late write of data %d is carried out\n", late_data);
			write(late_grant, late_data, late_wish, 1)
		:: else
		fi;
		late_set = 0; late_grant = 0; late_version = 0; late_data = 0; late_wish = 0 } }
	od
}

/* ask is the write of an ask, made for what was read. */
inline ask(n, at, with) {
	if
#ifdef ASK_ANY_VERSION
	:: exists[n] ->
#else
	:: exists[n] && version[n] == at ->
#endif
		printf("the wish is written to node %d\n", n);
#ifdef ASK_OVERWRITES
		write(n, 0, 1, 0)
#else
		write(n, with, 1, 0)
#endif
	:: else
	fi
}

proctype Asker() {
	byte g, n, at, with;

	do
	:: atomic { asks > 0 && cur != NOBODY && exists[cur] -> asks--; g = cur; asked[g] = 1; printf("somebody asks for lock %d\n", g) };
	   do
	   :: atomic { true ->
#ifdef ASK_BY_KEY
		g = cur;
#endif
		locate(n, g);
		if
		:: !exists[n] || n != g || wish[n] -> break	/* gone, another's, or asked for before */
		:: else -> at = version[n]; with = data[n]
		fi };
	      if
	      :: d_step { locate(n, g); ask(n, at, with) }	/* and read again: whatever came of it shows there */
	      :: atomic { lates > 0 && late == NONE -> lates--; late = ASK; late_to = g; late_at = at; late_with = with }
	      fi;
	      at = 0; with = 0
	   od;
	   g = 0; n = 0
	od
}

inline break_node(n) {
	if
	:: exists[n] -> printf("node %d is deleted\n", n); remove(n)
	:: else
	fi
}

proctype Breaker() {
	byte g, n;

	do
	:: atomic { breaks > 0 && cur != NOBODY && exists[cur] -> breaks--; g = cur; broken[g] = 1; printf("somebody breaks lock %d\n", g) };
	   do
	   :: atomic { !exists[g] -> break }	/* describe: it is another's, or nobody's */
	   :: d_step { locate(n, g); break_node(n); n = 0 }
	   :: atomic { lates > 0 && late == NONE -> lates--; late = BREAK; late_to = g }
	   od;
	   g = 0
	od
}

proctype Late() {
	byte n;

	do
	:: d_step { late == ASK -> printf("a late ask for lock %d is carried out\n", late_to); 
#if REACH == 3
		unreached = !(late_to != cur && exists[cur]); assert(unreached);
#endif
		locate(n, late_to); ask(n, late_at, late_with); n = 0; late = NONE; late_to = 0; late_at = 0; late_with = 0 }
	:: d_step { late == BREAK -> printf("a late break of lock %d is carried out\n", late_to); locate(n, late_to); break_node(n); n = 0; late = NONE; late_to = 0 }
	od
}

proctype Revoker() {
	do
	:: d_step { revokes > 0 && cur != NOBODY && exists[cur] -> revokes--; asked[cur] = 1; erased[cur] = 1;
		printf("the Revoker overwrites node %d\n", cur);
		write(cur, 0, 1, 0) }
	od
}

/* contender.reclaim: a place in the queue, a list and reads, and the deletion, which is a write too. */
proctype Reclaimer() {
	byte g = NOBODY;

	atomic { reclaims > 0 && cur != NOBODY -> reclaims--; reclaimer = 1;
		if :: exists[cur] -> g = cur :: else fi;
#ifdef EXACT
		stood[cur] = exists[cur];
#else
		stood[cur] = 1;
#endif
		printf("somebody comes to reclaim\n") };
	if
	:: g == NOBODY
	:: g != NOBODY -> atomic {
		if
#ifdef DATA_NAMES_OWNER
		:: !exists[g] || erased[g]
#else
		:: !exists[g]
#endif
		:: else -> skip;
			d_step {
				if
				:: exists[g] ->
					/* The holder is told of this unless it does not watch the node, or has a write on its way that it takes this for. */
					evicted[g] = 1;
					excused[g] = !was_watched[g] || (!watched[g] && by_holder[g]) || writes_now;
					printf("node %d is reclaimed\n", g);
					zxid++; exists[g] = 0; fire(g, CHANGED)
				:: else
				fi
			}
		fi };
		d_step { reclaim_is_done = !exists[g]; assert(reclaim_is_done) }
	fi;
	/* It has the lock, and releases it. */
	atomic { reclaimer = 0; g = NOBODY; printf("who has reclaimed leaves\n") }
}

proctype Audit() {
	timeout -> atomic {
		if
		:: cur != NOBODY ->
			ask_is_told = !(exists[cur] && wish[cur] && !told[cur]); assert(ask_is_told);
			end_is_told = !(!exists[cur] && (state == LIVE || state == ENDING)); assert(end_is_told);
			data_is_kept = !(exists[cur] && !erased[cur] && data[cur] < confirmed[cur]); assert(data_is_kept)
		:: else
		fi
	}
}

init { atomic { run Holder(); run Asker(); run Breaker(); run Late(); run Revoker(); run Reclaimer(); run Audit() } }
