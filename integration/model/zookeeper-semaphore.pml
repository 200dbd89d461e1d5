/*
 * A semaphore of the ZooKeeper engine, in the layout of Curator's InterProcessSemaphoreV2 (docs/design/zookeeper.md): N clients want
 * one permit each, of LIMIT.
 *
 * Two directories: "locks" is a queue as in zookeeper-queue.pml, and who is first in it, the head, may take a permit; "leases" has a node
 * for each permit that is taken. The limit is the data of the node above them. Who finds nobody in "locks", and a permit free, takes
 * it without a place in the queue.
 *
 * That a node is created exactly once, and deleted, whatever is lost, is proved in that other model: here requests are not lost. Servers
 * lag: whatever a client reads may be as old as what it has seen before, and no older.
 */
#ifndef N
#define N 2		/* clients */
#endif
#ifndef LIMIT
#define LIMIT 1
#endif
#ifndef OTHERS
#define OTHERS 0	/* clients that say another limit, a bit each */
#endif
#ifndef ROUNDS
#define ROUNDS 1	/* permits that each client takes, one after another */
#endif
#ifndef GIVEUPS
#define GIVEUPS 0	/* callers that give up */
#endif
#ifndef CRASHES
#define CRASHES 0	/* clients that crash; their sessions end later */
#endif
#ifndef NODES
#define NODES 8		/* created in a directory; more is an error of the model */
#endif

/*
 * KEEPER: the first client keeps its permit for ever.
 *
 * LOOK_FIRST: the head lists the leases again at each event, before it makes one. With three clients, there are too many states otherwise.
 *
 * STRANGER: there is also a client of Curator's. It makes its lease as soon as it is the head, and then waits until there are no more
 * than the limit, its own included.
 *
 * KAZOO: there is also a client of kazoo's, which counts the leases while it is the head, and makes its own without another look. The
 * others look at the queue after their lease was made, and then at the leases. Its leases have no number, and count as older than all.
 *
 * Switches that remove a cure; each has a counterexample:
 *
 *   COUNT_BEFORE   a permit is granted if one was free before the lease was made, as kazoo has it, and not by a look after that
 *   LEASE_STAYS    a lease that was made in vain stays while its client waits
 *   LIMIT_ONCE     the limit is not looked at again after the lease was made
 *   SET_BLINDLY    the limit of a key that nobody uses is set on condition of its version only, not that of empty directories
 *   WATCH_LATE     the head lists the leases first, and watches them then
 *   WATCH_ONE      the head watches the oldest lease only
 *   PLACE_STAYS    the head does not leave the queue when it is granted a permit
 *   LEAK           who gives up leaves its lease behind
 *   KAZOO_BLIND    they do not look at the queue
 *   KAZOO_ORDER    they look at the leases first
 *   TRY_EACH       the head makes a lease at each event, also at that of the end of its own
 *   LOSE_AGAIN     the head leaves the queue with its lease even if it has lost its turn by that before
 *   JUMP           who finds a permit free takes it although others wait
 *
 * The verifier runs with -E: Audit judges whether a state in which nothing more can happen is correct.
 */

/* The properties, each asserted where it could cease to hold. */
bit within_limit = 1;	/* no more believe that they have a permit than there are */
bit one_limit = 1;	/* all of them say the same limit */
bit in_turn = 1;	/* nobody is granted a permit while somebody stands in the queue that had been seen */
bit one_loss = 1;	/* nobody who was the head loses its turn twice */
bit no_orphan = 1;	/* when nothing can happen any more, there is no node left */
bit all_served = 1;	/* ... and nobody waits */
bit unreached = 1;	/* not a property: what REACH asks for has not happened */
bit enough_nodes = 1;	/* nor is this: NODES is enough */

#define NONE NODES
#define CURATOR N	/* its number */

/* The tree. A node's number is its sequence number. */
byte zxid, changed;				/* transactions so far; the last one that was about a lease */
byte leases, places;				/* created so far */
byte born[NODES], died[NODES], owner[NODES];	/* of leases, by the zxid; died 0: it exists */
byte pborn[NODES], pdied[NODES], powner[NODES];	/* of places in the queue */
byte limits = 1;				/* values that the limit has had: the first is LIMIT */
byte limit[NODES], since[NODES];			/* each, and by which zxid */

#define visible(n, at) (born[n] <= at && (died[n] == 0 || died[n] > at))
#define pvisible(n, at) (pborn[n] <= at && (pdied[n] == 0 || pdied[n] > at))
#define want(c) (((OTHERS >> (c)) & 1) -> LIMIT + 1 : LIMIT)

#ifdef KAZOO
#define older(n, lease) (n < lease || owner[n] == CURATOR)
#else
#define older(n, lease) (n < lease)
#endif

bit holds[N + 1], dead[N];
byte seen[N];
byte finished;
byte giveups = GIVEUPS, crashes = CRASHES;
byte stranger_waits;
bit discard[NODES], pdiscard[NODES];		/* leases and places that the background deletes */

inline new_lease(c) {
	enough_nodes = (leases < NODES); assert(enough_nodes);
	zxid++; changed = zxid; born[leases] = zxid; owner[leases] = c; lease = leases; leases++;
	printf("client %d makes lease %d\n", c, lease)
}

inline new_place(c) {
	enough_nodes = (places < NODES); assert(enough_nodes);
	zxid++; pborn[places] = zxid; powner[places] = c; place = places; places++;
	printf("client %d has place %d in the queue\n", c, place)
}

/* look reads from whatever server there is, and counts: leases, those before one's own, places, and the limit. */
inline look() {
	at = seen[c];
	do :: at < zxid -> at++ :: break od;
	seen[c] = at;
	d_step {
		n = 0; count = 0; index = 0; queued = 0; oldest = NONE; late = 0;
		do
		:: n < leases ->
			if
			:: visible(n, at) -> count++; if :: n != lease && older(n, lease) -> index++ :: else fi; if :: oldest == NONE -> oldest = n :: else fi
			:: else
			fi;
			n++
		:: else -> break
		od;
		n = 0;
		do
		:: n < places ->
			if :: pvisible(n, at) && n != place -> queued++; if :: n < place -> late = 1 :: else fi :: else fi;
			n++
		:: else -> break
		od;
		n = limits - 1;
		do :: n > 0 && since[n] > at -> n-- :: else -> break od;
		version = n; n = 0
	}
}

#define fits (limit[version] == want(c))

/*
 * look_again is the look after a lease was made. With kazoo it is two: whoever could not count the lease stands in the queue that the first
 * shows, or has left it by then, and has a lease that the second shows.
 */
inline look_again() {
#if defined(KAZOO) && !defined(KAZOO_BLIND)
	look();
#ifdef KAZOO_ORDER
	first = index
#else
	first = late
#endif
#else
	first = 0
#endif
}

inline look_last() {
	look();
#if !defined(KAZOO) || defined(KAZOO_BLIND)
	late = 0
#else
#ifdef KAZOO_ORDER
	index = first
#else
	late = first
#endif
#endif
	;
	first = 0
}

inline grant(c) {
	holds[c] = 1; printf("client %d has a permit, of %d\n", c, want(c));
	n = 0; count = 0;
	do
	:: n <= N -> count = count + holds[n];
		one_limit = (n == N || !holds[n] || want(n) == want(c)); assert(one_limit);
		n++
	:: else -> break
	od;
	within_limit = (count <= want(c)); assert(within_limit);
#if REACH == 1
	unreached = !(count == 2); assert(unreached)	/* two permits at once */
#endif
#if REACH == 2
	unreached = !(limits == 2); assert(unreached)	/* a permit after the limit was changed */
#endif
	n = 0; count = 0
}

/* What a look has found is forgotten once it has been acted on. */
inline clear() {
	index = 0; queued = 0; at = 0; version = 0; late = 0;
#ifndef COUNT_BEFORE
	count = 0;
#endif
#ifndef WATCH_ONE
	oldest = NONE
#endif
}

inline forget() { late = 0; vain = 0; passed = 0; first = 0; lease = NONE; place = NONE; count = 0; index = 0; queued = 0; oldest = NONE; version = 0; at = 0; watched = 0; moment = 0; quick = 0; set_once = 0 }

/* leave gives up all that there is, in the background. */
inline leave() {
#ifndef LEAK
	if :: lease != NONE -> discard[lease] = 1 :: else fi;
#endif
	if :: place != NONE -> pdiscard[place] = 1 :: else fi;
	forget()
}

#ifdef TRY_EACH
#define mark_vain skip
#else
#define mark_vain vain = 1
#endif

#define may_give_up giveups > 0
#define give_up giveups--; printf("client %d gives up\n", c)
#define may_crash crashes > 0
#define crash crashes--; printf("client %d crashes\n", c)

proctype Client(byte c) {
	byte n, at, index, count, queued, oldest = NONE, version, watched, moment, lease = NONE, place = NONE, rounds = ROUNDS;
	byte first;
	bit quick, set_once, late, vain, passed;

probe:	/* One flight: both directories and the limit. */
	atomic {
		look();
		if
		/* In use with another limit; or it has set its own, and somebody has come between. */
		:: !fits && (count + queued > 0 || set_once) -> printf("client %d is refused\n", c); leave(); goto over
		:: !fits && count + queued == 0 && !set_once -> goto set
#ifdef JUMP
		:: fits && count < want(c) -> moment = at; quick = 1; clear(); goto fast
		:: fits && count >= want(c) -> clear(); goto queue
#else
		:: fits && count < want(c) && queued == 0 -> moment = at; quick = 1; clear(); goto fast
		:: fits && !(count < want(c) && queued == 0) -> clear(); goto queue
#endif
		fi
	};

set:	/* One transaction: the directories are deleted, which fails unless they are empty, and the limit is set if it is as it was read. */
	atomic {
		n = 0; count = 0; set_once = 1;
#ifndef SET_BLINDLY
		do :: n < leases -> if :: died[n] == 0 -> count++ :: else fi; n++ :: else -> break od;
		n = 0;
		do :: n < places -> if :: pdied[n] == 0 -> count++ :: else fi; n++ :: else -> break od;
		n = 0;
#endif
		if
		:: count == 0 && version == limits - 1 ->
			enough_nodes = (limits < NODES); assert(enough_nodes);
			zxid++; limit[limits] = want(c); since[limits] = zxid; limits++; seen[c] = zxid;
			printf("client %d sets the limit to %d\n", c, want(c))
		:: else
		fi;
		clear(); goto probe
	};

fast:	/* One flight: the lease is made, and then the leases are listed and the limit is read. */
	atomic { new_lease(c); seen[c] = zxid };
#ifdef KAZOO
	atomic { look_again() };
#endif
	atomic {
#ifdef COUNT_BEFORE
		index = count; version = limits - 1;
#else
		look_last();
#endif
		if
#ifdef LIMIT_ONCE
		:: index < want(c) -> clear(); goto hold
#else
		:: !fits -> printf("client %d is refused\n", c); leave(); goto over
		:: fits && !late && index < want(c) -> clear(); goto hold
#endif
		:: fits && (late || index >= want(c)) -> printf("client %d has come too late with lease %d\n", c, lease);
#ifndef LEASE_STAYS
			discard[lease] = 1; lease = NONE; mark_vain;
#endif
			quick = 0; moment = 0; clear(); goto queue
		:: may_give_up -> give_up; leave(); goto over
		:: may_crash -> crash; goto crashed
		fi
	};

queue:	/* The recipe of a lock. */
	atomic { new_place(c); seen[c] = zxid };
	atomic {
		do
		:: n < place && pdied[n] != 0 -> if :: seen[c] < pdied[n] -> seen[c] = pdied[n] :: else fi; n++
		:: n == place -> n = 0; break
		:: n < place && pdied[n] == 0 && may_give_up -> n = 0; give_up; leave(); goto over
		od
	};

head:	/* The first in line lists the leases, with a watch on them. */
	atomic {
		look();
		watched = at; quick = 0;
		if
		:: !fits -> printf("client %d is refused\n", c); leave(); goto over
#ifdef LEASE_STAYS
		:: fits && lease != NONE && index < want(c) -> watched = 0; clear(); goto granted
		:: fits && lease != NONE && index >= want(c) -> clear()
		:: fits && lease == NONE && count < want(c) -> watched = 0; clear(); goto try
		:: fits && lease == NONE && count >= want(c) -> clear()
#else
		:: fits && count < want(c) -> watched = 0; clear(); goto try
		:: fits && count >= want(c) -> clear()
#endif
		fi
	};
#ifdef WATCH_LATE
	atomic { watched = zxid };
#endif
	atomic {
		if
		/* The event, of the first change since. */
#ifdef WATCH_ONE
		:: died[oldest] > watched -> seen[c] = died[oldest]
#else
		:: changed > watched -> d_step {
			at = changed; n = 0;
			do
			:: n < leases ->
				if :: born[n] > watched && born[n] < at -> at = born[n] :: else fi;
				if :: died[n] > watched && died[n] < at -> at = died[n] :: else fi;
				n++
			:: else -> break
			od;
			n = 0;
			if :: seen[c] < at -> seen[c] = at :: else fi;
			at = 0 }
#endif
		:: may_give_up -> give_up; leave(); goto over
		:: may_crash -> crash; goto crashed
		fi;
		/* That may have been the end of one's own lease, if the last try was in vain. */
		watched = 0;
		if
#if defined(LEASE_STAYS) || defined(LOOK_FIRST)
		:: goto head
#else
#ifndef TRY_EACH
		:: vain -> vain = 0; goto head
#endif
		:: !vain -> skip
#endif
		fi
	};

try:	/* The same flight as above. The transaction that makes the lease deletes the place, but not where kazoo looks at the queue only. */
	atomic {
		new_lease(c); seen[c] = zxid;
#if !defined(KAZOO) && !defined(PLACE_STAYS)
		if
#ifdef LOSE_AGAIN
		:: pdied[place] = zxid; place = NONE
#else
		:: !passed -> pdied[place] = zxid; place = NONE
		:: passed -> skip
#endif
		fi
#endif
	};
#ifdef KAZOO
	atomic { look_again() };
#endif
	atomic {
#ifdef COUNT_BEFORE
		index = count;
#else
		look_last();
#endif
		if
		:: !fits -> printf("client %d is refused\n", c); leave(); goto over
		:: fits && !late && index < want(c) -> clear(); goto granted
		:: fits && (late || index >= want(c)) -> printf("client %d has come too late with lease %d\n", c, lease); discard[lease] = 1; lease = NONE; mark_vain; clear();
			if
			:: place != NONE -> goto head
			:: place == NONE -> one_loss = !passed; assert(one_loss); passed = 1; goto queue	/* at its end */
			fi
		:: may_give_up -> give_up; leave(); goto over
		:: may_crash -> crash; goto crashed
		fi
	};

granted: atomic {
		vain = 0;
#ifndef PLACE_STAYS
		if :: place != NONE -> pdiscard[place] = 1 :: else fi;
#endif
		place = NONE
	};

hold:	atomic {
		/* Of those who stood in the queue when the client decided, nobody is passed. */
		n = 0;
		do
		:: n < places -> in_turn = !(quick && pvisible(n, moment) && pdied[n] == 0 && !pdiscard[n] && powner[n] != c); assert(in_turn); n++
		:: else -> break
		od;
		n = 0; quick = 0; moment = 0; grant(c)
	};
	atomic {
		if
#ifdef KEEPER
		:: c != 0 ->
#else
		::
#endif
			holds[c] = 0; printf("client %d gives its permit back\n", c); discard[lease] = 1; forget()
		:: may_crash -> holds[c] = 0; crash; goto crashed
		fi
	};

over:	atomic {
		rounds--;
		if
		:: rounds > 0 -> goto probe
		:: else -> finished++; goto done
		fi
	};

crashed: atomic { dead[c] = 1; finished++; forget() };
done:	skip
}

/* Znode is the end of a lease and of a place: its client has left it, or its session has ended. */
proctype Znode(byte n) {
	do
	:: d_step { n < leases && (discard[n] || (owner[n] < N && dead[owner[n]])) && died[n] == 0 -> zxid++; changed = zxid; died[n] = zxid; discard[n] = 0;
		printf("lease %d is gone\n", n) }
	:: d_step { n < places && (pdiscard[n] || (powner[n] < N && dead[powner[n]])) && pdied[n] == 0 -> zxid++; pdied[n] = zxid; pdiscard[n] = 0;
		printf("place %d is gone\n", n) }
	od
}

#ifdef STRANGER
proctype Stranger() {
	byte n, count, lease = NONE, place = NONE;

	atomic { new_place(CURATOR) };
	atomic {
		do
		:: n < place && pdied[n] != 0 -> n++
		:: n == place -> n = 0; break
		od
	};
	atomic { new_lease(CURATOR) };
	atomic {
		/* It waits until there are few enough: counted again at each change. */
		do
		:: n < leases -> count = count + (died[n] == 0); n++
		:: n == leases && count <= LIMIT -> n = 0; count = 0; break
		:: n == leases && count > LIMIT -> n = 0; count = 0; stranger_waits = zxid; zxid != stranger_waits
		od;
		grant(CURATOR)
	};
	atomic { pdiscard[place] = 1 };
	atomic { holds[CURATOR] = 0; discard[lease] = 1; printf("the stranger gives its permit back\n") }
}
#endif

#ifdef KAZOO
proctype Kazoo() {
	byte n, count, lease = NONE, place = NONE;

	atomic { new_place(CURATOR) };
	atomic {
		do
		:: n < place && pdied[n] != 0 -> n++
		:: n == place -> n = 0; break
		od
	};
again:	atomic {
		count = 0;
		do :: n < leases -> count = count + (died[n] == 0); n++ :: else -> break od;
		n = 0;
		if
		:: count < LIMIT -> count = 0
		:: else -> count = 0; stranger_waits = zxid; zxid != stranger_waits; goto again
		fi
	};
	atomic { new_lease(CURATOR); grant(CURATOR) };
	atomic { pdiscard[place] = 1 };
	atomic { holds[CURATOR] = 0; discard[lease] = 1; printf("kazoo gives its permit back\n") }
}
#endif

proctype Audit() {
	byte i;

	timeout -> d_step {
#ifdef KEEPER
		all_served = (finished + holds[0] == N);
#else
		all_served = (finished == N);
#endif
		assert(all_served);
		do
		:: i < leases -> no_orphan = (died[i] != 0 || (owner[i] < N && holds[owner[i]])); assert(no_orphan); i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < places -> all_served = (pdied[i] != 0); assert(all_served); i++
		:: else -> break
		od;
		i = 0
	}
}

init {
	byte i;

	atomic {
		limit[0] = LIMIT;
		do :: i < N -> run Client(i); i++ :: else -> break od;
		i = 0;
		do :: i < NODES -> run Znode(i); i++ :: else -> break od;
#ifdef KAZOO
		run Kazoo();
#endif
#ifdef STRANGER
		run Stranger();
#endif
		run Audit();
		i = 0
	}
}
