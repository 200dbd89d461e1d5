/*
 * The queue of the ZooKeeper engine (docs/design/zookeeper.md; zklock/recipe.go, zklock/wait.go,
 * zklock/own.go, zklock/orphans.go, zklock/hold.go): N clients want one lock, a queue of znodes.
 *
 * Time is in the other model, zookeeper-trust.pml. This model assumes what that one proves: the ensemble ends a session only
 * when the client's lease has lapsed.
 *
 * The tree is that of the leader, in the order of its transactions. Servers lag: whatever a
 * client reads may be as old as what it has seen before, and no older. A request in flight when its connection
 * is lost may be carried out at any later time of the session (not with PUNCTUAL). Three clients with every fault at once are
 * too many states: the table has the combinations that are checked.
 *
 * A holder or waiter whose node an operator has deleted is excused from exclusion and tokens_rise until it learns of that.
 *
 * A waiter watches two nodes before its own. The engine watches three, by the same rule: it counts the deletions of a line that it
 * watches as a whole, and the first deletion among the last of a longer line makes it list the queue.
 *
 * Left out: contenders that share a client; try, reclaim, foreign contenders but for a downgrading Curator thread; reads that
 * are in flight when a session ends; the end of the sequence counter; writes to nodes; transactions of several creations and
 * deletions, which are one order of them; the times of looks for orphans. Clients are alike, so they begin in the order of
 * their numbers.
 *
 * Faults have budgets:
 */
#ifndef N
#define N 2		/* clients */
#endif
#ifndef ROUNDS
#define ROUNDS 1	/* locks that each client acquires, one after another */
#endif
#ifndef CUTS
#define CUTS 0		/* connections lost, with everything in flight */
#endif
#ifndef LAPSES
#define LAPSES 0	/* leases that lapse; the session may end then, or be saved */
#endif
#ifndef GIVEUPS
#define GIVEUPS 0	/* callers that give up */
#endif
#ifndef BREAKS
#define BREAKS 0	/* nodes that an operator deletes */
#endif
#ifndef CRASHES
#define CRASHES 0	/* clients that crash */
#endif
#ifndef READERS
#define READERS 0	/* clients that want to share the lock, a bit each */
#endif
#ifndef NODES
#define NODES 7		/* created in a run; more is an error of the model */
#endif

/*
 * PUNCTUAL: a create on a lost connection is carried out before the loss, or never (in cases too large otherwise).
 *
 * KEEPER: the first client keeps its lock for ever, so that others wait for ever.
 *
 * STRANGER: there is also a thread of Curator's, which wants the lock for writing, and may downgrade it: its reader's node is
 * made by hand, with the number of its writer's.
 *
 * Switches that remove a cure; each has a counterexample:
 *
 *   NO_SESSION_CHECK  the session is not compared after the answer to a creation
 *   KEEP_GUID         the guid, and what has it, is taken into the next session
 *   RELEASE_ONCE      a deletion without an answer is not repeated
 *   NO_NODE_IS_LOST   "no node" is a lost lock at any try to release, not only at the first
 *   NO_CLEANER        a client that gives up leaves no cleaner behind
 *   NO_SYNC           the cleaner lists without a sync
 *   NO_STRAYS         the node of a creation without an answer is looked for once
 *   RETURNS_ONLY      both are looked for again only when the client comes to a server
 *   FORGET_UNCERTAIN  a creation without an answer whose node the list does not show counts as not carried out
 *   NO_RELIST         the deletion of the predecessor is a grant, even if other nodes are ahead
 *   NO_OWN_WATCH      a waiter, or holder, does not watch its own node
 *   OWN_WORD_LATE     a waiter that learns of the deletion of its own node, and then of its predecessor's, may act on the second first
 *   WAIT_WITHOUT_NODE a waiter that does not find its own node goes on waiting
 *   BEYOND_IS_ALL     a waiter that looks ahead and sees the node beyond its predecessor go takes that for the last of the others
 *   SKIP_READERS      a writer waits for writers only
 *   DOWNGRADE_IS_GONE the deletion of a stranger's writer, alone before a writer, is a grant
 *   CZXID_TIE         of two nodes with one number, the zxid of their creation decides
 *
 * The verifier runs with -E: Audit judges whether a state in which nothing more can happen is correct.
 *
 * REACH=n shows that the proofs are not vacuous: see unreached, below.
 */

/* The properties, each asserted where it could cease to hold. */
bit exclusion = 1;		/* no two that exclude each other believe that they hold the lock; a holder whose node an operator deleted is excused until it learns of that */
bit told_is_told = 1;		/* nobody takes the going of the node before for a grant after being told that its own is gone */
bit tokens_rise = 1;		/* of two grants that exclude each other, the later has the greater token */
bit release_is_right = 1;	/* a release that says that the lock had been lost did not delete it itself */
bit no_orphan = 1;		/* when nothing can happen any more, each node is that of a holder or a waiter */
bit in_line = 1;		/* ... each waiter and holder has its node */
bit all_served = 1;		/* ... and nobody waits, unless somebody holds the lock */
bit unreached = 1;		/* not a property: what REACH asks for has not happened */
bit enough_nodes = 1;		/* nor is this: NODES is enough */

#define NONE NODES

/* The tree: a node's number is its sequence number, and its czxid as far as order goes. */
mtype = { BY_CLIENT, BY_OPERATOR, BY_SESSION, NOBODY }
byte nodes;			/* created so far */
byte zxid;			/* transactions so far */
byte born[NODES], died[NODES];	/* by the zxid; died 0: it exists */
mtype by[NODES] = NOBODY;	/* who deleted it */
byte owner[NODES], guid[NODES], session[NODES];

#define visible(n, at) (born[n] <= at && (died[n] == 0 || died[n] > at))	/* n < nodes */

/* The clients' sessions and connections. */
byte current[N];		/* the client's session: the first is 0 */
bit ended[N];			/* the leader has ended it */
bit live[N] = 1;		/* its lease */
bit up[N] = 1;			/* the connection */
bit dead[N];			/* the client has crashed */
bit busy[N];			/* its program has begun, and not ended; events outside of that show nothing */
byte seen[N];			/* zxid: the client refuses servers that know less */
byte cuts = CUTS, lapses = LAPSES, giveups = GIVEUPS, breaks = BREAKS, crashes = CRASHES;

/* A create in flight. */
mtype = { IDLE, HANDED, APPLIED, ANSWERED, UNKNOWN }
mtype creation[N] = IDLE;
byte made[N] = NONE;		/* the node that it created */
int late[N];			/* creates on lost connections, which may yet arrive: their number, two bits for each guid */

/* The contenders in the queue. */
byte myguid[N], mysession[N], mynode[N] = NONE;
bit uncertain[N];
bit holds[N];			/* believes that it holds the lock */

/* The background. */
bit discard[NODES], first[NODES], releasing[NODES];	/* nodes to delete; it is the first try; for a release */
byte purge[N];			/* guids to look for, a bit each */
byte expected[N];		/* guids to look for again */

byte started, finished;
byte last = NONE;		/* the greatest token granted */
byte last_write = NONE;		/* ... to a writer */

#define broken(n) (by[n] == BY_OPERATOR)

/* The stranger, whose nodes have no client: its own number is N. A node that is yet to be born is not visible. */
#define UNBORN 255
mtype = { NOTHING, WRITING, READING }
mtype stranger = NOTHING;	/* what it holds the lock for */
byte writer = NONE;		/* its node for writing; the next one is that for reading */

/* The kinds. */
#define shared(c) ((READERS >> (c)) & 1)
#define is_reader(n) ((owner[n] < N && shared(owner[n])) || (owner[n] == N && n != writer))
#define downgrades(n) (n == writer)
#define excludes(c, d) (!shared(c) || !shared(d))

#ifdef SKIP_READERS
#define blocks(n) (!is_reader(n))
#else
#define blocks(n) (!shared(c) || !is_reader(n))		/* n is before the node of c */
#endif
#ifdef DOWNGRADE_IS_GONE
#define may_return(n) 0
#else
#define may_return(n) (!shared(c) && downgrades(n))	/* its going may leave a reader in its place, which blocks c */
#endif
#ifdef CZXID_TIE
#define stands_before(n) (born[n] < born[mynode[c]])
#else
#define stands_before(n) 1
#endif
#define wrong_session (mysession[c] != current[c])

inline delete(n, who) {
	zxid++; died[n] = zxid; by[n] = who
}

/* make is what the leader does, in the session that the request came in. */
inline make(c, g) {
	enough_nodes = (nodes < NODES); assert(enough_nodes);
	zxid++; born[nodes] = zxid; owner[nodes] = c; guid[nodes] = g; session[nodes] = current[c];
	printf("client %d: node %d is created, in its session %d\n", c, nodes, current[c]);
	nodes++
}

#define coming(c, g) ((late[c] >> (2 * (g))) & 3)
#define stray(c, g, n) (owner[n] == c && guid[n] == (g) && died[n] == 0 && n != mynode[c] && !discard[n])	/* n < nodes */

/*
 * clean looks for the node of the contender's creation, now and later: late.remove. Looks that would find nothing are left out, so there is one now if there is something to find, and one after
 * each arrival: in the library, which looks periodically, that is the next.
 */
inline clean(c) {
	i = 0;
	do
	:: i < nodes -> if :: stray(c, myguid[c], i) -> purge[c] = purge[c] | (1 << myguid[c]) :: else fi; i++
	:: else -> break
	od;
	i = 0;
#ifndef NO_STRAYS
	if :: coming(c, myguid[c]) -> expected[c] = expected[c] | (1 << myguid[c]) :: else fi
#endif
}

/* ... and it keeps none. */
inline clean_all(c) { mynode[c] = NONE; clean(c) }

inline forget(c) { myguid[c]++; mynode[c] = NONE; uncertain[c] = 0; token = NONE }

inline to_discard(n, for_release) { discard[n] = 1; first[n] = 1; releasing[n] = for_release }

/* leave gives the contender up. */
inline leave(c) {
#ifndef NO_CLEANER
	if
	:: uncertain[c] -> clean_all(c)
	:: !uncertain[c] && mynode[c] != NONE -> to_discard(mynode[c], 0)
	:: else
	fi;
#endif
	forget(c)
}

/* look reads from whatever server there is. at is what that knows. */
inline look() {
	at = seen[c];
	do :: at < zxid -> at++ :: break od;
	seen[c] = at
}

#define may_give_up giveups > 0
#define give_up giveups--; printf("client %d gives up\n", c)
#define may_crash crashes > 0
#define crash crashes--; printf("client %d crashes\n", c)

proctype Client(byte c) {
	byte n, i, at, before, beyond = NONE, ahead, rounds = ROUNDS, token = NONE;

	/* All clients are alike: the first to begin is called 0, and so on. */
	atomic { started == c && up[c] -> started++; busy[c] = 1; mysession[c] = current[c]; creation[c] = HANDED; goto create };

again:	/* Acquire: link.ready and contender.enter. */
	atomic {
		if
		:: up[c] -> d_step {
			if
			:: wrong_session ->
#ifndef KEEP_GUID
				if
				:: uncertain[c] -> clean_all(c)
				:: else
				fi;
				forget(c);
#endif
				mysession[c] = current[c]
			:: else
			fi }
		:: may_give_up -> give_up; leave(c); goto over
		:: may_crash -> crash; goto crashed
		fi;
		if
		:: mynode[c] != NONE || uncertain[c] -> goto list
		:: else
		fi;
		creation[c] = HANDED
	};

create:	/* contender.create: the reply comes, or the end of the connection. */
	atomic {
		if
		:: creation[c] == ANSWERED -> creation[c] = IDLE; n = made[c]; made[c] = NONE;
			if
#ifndef NO_SESSION_CHECK
			:: wrong_session -> printf("client %d finds that its session has changed meanwhile\n", c);
				clean_all(c); forget(c); goto again
#endif
			:: else -> mynode[c] = n; token = n
			fi
		:: creation[c] == UNKNOWN -> creation[c] = IDLE; made[c] = NONE; uncertain[c] = 1;
			printf("client %d does not learn what came of its creation\n", c);
			goto again
		:: may_give_up -> give_up; goto abandon
		:: may_crash -> crash; goto crashed
		fi
	};

list:	/* contender.locate: any server that answers knows what this client has seen. */
	atomic {
		if
		:: up[c]
		:: !up[c] -> goto again
		:: may_give_up -> give_up; leave(c); goto over
		:: may_crash -> crash; goto crashed
		fi;
		look();
		d_step {
			n = 0; before = NONE; beyond = NONE; ahead = 0;
			do :: n < nodes && !(visible(n, at) && owner[n] == c && guid[n] == myguid[c]) -> n++ :: else -> break od;
			if :: n == nodes -> n = NONE :: else fi;
			if
			:: n != NONE -> mynode[c] = n; uncertain[c] = 0; n = 0;
				do
				:: n < mynode[c] -> if :: visible(n, at) && blocks(n) && stands_before(n) -> beyond = before; before = n; ahead++ :: else fi; n++
				:: else -> break
				od
			:: else
			fi
		};
		if
		:: n == NONE -> n = 0; at = 0;
			printf("client %d does not find its node\n", c);
#ifdef WAIT_WITHOUT_NODE
			false
#else
#ifndef FORGET_UNCERTAIN
			if :: uncertain[c] -> clean_all(c) :: else fi;
#endif
			forget(c); goto again
#endif
		:: before != NONE -> n = 0; at = 0; printf("client %d has node %d, and waits for node %d\n", c, mynode[c], before)
		:: else -> n = 0; at = 0; printf("client %d finds node %d to be the first\n", c, mynode[c]); goto prove
		fi
	};

wait:	/* contender.wait: the watches on the predecessor, on the node beyond it, and on the own node. */
	atomic {
		if
		:: up[c] && beyond != NONE && died[beyond] != 0 ->
			if :: seen[c] < died[beyond] -> seen[c] = died[beyond] :: else fi;
			printf("client %d hears that node %d is gone, and looks ahead\n", c, beyond);
			d_step {
				/* The two are the whole line: planFor in zklock/wait.go. */
				if
				:: (ahead == 2 && !may_return(beyond)) -> ahead = 1; printf("client %d knows that only node %d is before it\n", c, before)
				:: else
				fi;
#ifdef BEYOND_IS_ALL
				ahead = 1;
#endif
				beyond = NONE
			};
			if :: ahead == 1 -> goto wait :: else -> goto again fi
		/* Events come in the order of the transactions: the event of the own node, if that went first, came first. */
#ifdef OWN_WORD_LATE
		:: up[c] && died[before] != 0 -> d_step {
#else
		:: up[c] && died[before] != 0 && (died[mynode[c]] == 0 || (died[mynode[c]] > died[before] && died[mynode[c]] > seen[c])) -> d_step {
#endif
			if :: seen[c] < died[before] -> seen[c] = died[before] :: else fi;
			printf("client %d hears that node %d is gone\n", c, before);
			told_is_told = (ahead > 1 || may_return(before) || died[mynode[c]] == 0 || died[mynode[c]] > seen[c]); assert(told_is_told) }
#ifndef NO_RELIST
			if :: ahead > 1 || may_return(before) -> goto again :: else fi
#endif
#ifndef NO_OWN_WATCH
		:: up[c] && died[mynode[c]] != 0 -> printf("client %d hears that its own node %d is gone\n", c, mynode[c]);
			if :: seen[c] < died[mynode[c]] -> seen[c] = died[mynode[c]] :: else fi;
			forget(c); goto again
#endif
		:: may_give_up -> give_up; leave(c); goto over
		:: may_crash -> crash; goto crashed
		fi
	};

prove:	/* A write renews a lapsed lease; after a create without an answer, the client reads the node. */
	atomic {
		before = NONE; beyond = NONE; ahead = 0;
		if
		:: (live[c] && !wrong_session) && token != NONE
		:: !(live[c] && !wrong_session) && up[c] && !ended[c] ->
			if
			:: died[mynode[c]] != 0 -> goto again
			:: !died[mynode[c]] && wrong_session -> goto again
			:: else -> live[c] = 1; printf("client %d renews its lease\n", c); goto prove
			fi
		:: (live[c] && !wrong_session) && token == NONE && up[c] ->
			look();
			if
			:: visible(mynode[c], at) && session[mynode[c]] == mysession[c] -> at = 0; token = mynode[c]; goto prove
			:: else -> at = 0; forget(c); goto again
			fi
		:: !up[c] && !(live[c] && !wrong_session && token != NONE) -> goto again
		:: may_give_up -> give_up; leave(c); goto over
		:: may_crash -> crash; goto crashed
		fi;

		/* The grant. */
		d_step {
			holds[c] = 1;
			printf("client %d is granted the lock, with node %d and token %d\n", c, mynode[c], token);
			if
			:: !broken(mynode[c]) ->
				n = 0;
				do
				:: n < N -> exclusion = (n == c || !holds[n] || broken(mynode[n]) || !excludes(c, n)); assert(exclusion); n++
				:: else -> break
				od;
				n = 0;
				exclusion = (stranger == NOTHING || (stranger == READING && shared(c))); assert(exclusion);
				if
				:: shared(c) -> tokens_rise = (last_write == NONE || token > last_write)
				:: else -> tokens_rise = (last == NONE || token > last); last_write = token
				fi;
				assert(tokens_rise);
				if :: last == NONE || token > last -> last = token :: else fi
			:: else
			fi
#if REACH == 1
			unreached = !(current[c] > 0 && by[0] == BY_SESSION); assert(unreached)	/* a lock in a second session, after a node of the first */
#endif
#if REACH == 2
			unreached = !(nodes > N); assert(unreached)	/* a lock after a creation that was given up */
#endif
#if REACH == 3
			unreached = !(holds[0] && holds[1] && holds[2]); assert(unreached)	/* three readers at once */
#endif
#if REACH == 4
			unreached = !(stranger == READING); assert(unreached)	/* a lock beside a reader of the stranger's */
#endif
		}
	};

	/* It holds the lock until it releases it, or learns that it has ended. */
	atomic {
		if
		:: !holds[c] -> printf("client %d finds that its lease has lapsed\n", c)
#ifndef NO_OWN_WATCH
		:: holds[c] && up[c] && died[mynode[c]] != 0 && !ended[c] -> holds[c] = 0; printf("client %d hears that its lock was broken\n", c)
#endif
#ifdef KEEPER
		:: holds[c] && c != 0
#else
		:: holds[c]
#endif
			-> holds[c] = 0; printf("client %d releases the lock\n", c)
		:: may_crash -> crash; goto crashed
		fi;
		/* hold.Release, which is called in any case. */
		to_discard(mynode[c], 1);
		forget(c)
	};

over:	atomic {
		rounds--;
		if
		:: rounds > 0 -> goto again
		:: else -> finished++; busy[c] = 0; goto done
		fi
	};

abandon: /* contender.leaveCreating, in the background. Here the caller's next call comes after it. */
	atomic {
		if
		:: creation[c] == ANSWERED || creation[c] == UNKNOWN -> d_step {
#ifndef NO_CLEANER
			if
			:: creation[c] == ANSWERED && !uncertain[c] && !wrong_session -> to_discard(made[c], 0)
			:: else -> clean_all(c)
			fi;
#endif
			creation[c] = IDLE; made[c] = NONE; forget(c) };
			goto over
		fi
	};

crashed: atomic {
		dead[c] = 1; holds[c] = 0; live[c] = 0; up[c] = 0; purge[c] = 0; expected[c] = 0;
		creation[c] = IDLE; made[c] = NONE;
		before = NONE; ahead = 0; n = 0; at = 0;
		forget(c);
		finished++; busy[c] = 0
	};
done:	skip
}

inline saw(c, z) { if :: seen[c] < z -> seen[c] = z :: else fi }

/*
 * lose is the end of a connection. go-zookeeper keeps unsent requests for the next one, in whatever session. A sent request
 * may be at a paused server, which continues at some time and forwards it. The leader refuses requests from a server that the
 * session has left. But a client may have tried to resume the session at this server meanwhile: then the session is back
 * there.
 */
inline lose(c) {
	up[c] = 0;
	printf("client %d loses its connection\n", c);
	if
	:: creation[c] == HANDED				/* not sent yet */
	:: creation[c] == HANDED -> creation[c] = UNKNOWN	/* it will never arrive */
#ifndef PUNCTUAL
	:: creation[c] == HANDED && !ended[c] -> creation[c] = UNKNOWN; late[c] = late[c] + (1 << (2 * myguid[c]))
#endif
	:: creation[c] == APPLIED -> creation[c] = UNKNOWN
	:: creation[c] != HANDED && creation[c] != APPLIED
	fi
}

/* Link is a client's connection, its session, and its requests in flight. */
proctype Link(byte c) {
	byte n, at;

	do
	:: d_step { creation[c] == HANDED && up[c] && !ended[c] ->
		made[c] = nodes; make(c, myguid[c]); creation[c] = APPLIED }
	:: d_step { creation[c] == APPLIED && up[c] -> creation[c] = ANSWERED; saw(c, born[made[c]]);
		printf("client %d has the answer\n", c) }
	:: atomic { late[c] != 0 && !ended[c] ->
		do
		:: coming(c, n) -> break
		:: late[c] >> (2 * n + 2) -> n++
		od;
		d_step {
			printf("client %d: the request of a former connection arrives\n", c);
			late[c] = late[c] - (1 << (2 * n)); make(c, n);
#ifndef RETURNS_ONLY
			purge[c] = purge[c] | (expected[c] & (1 << n));
			if :: !coming(c, n) -> expected[c] = expected[c] & ~(1 << n) :: else fi;
#endif
			n = 0
		} }

	:: atomic { up[c] && cuts > 0 && busy[c] -> cuts--; lose(c) }
	:: atomic { up[c] && ended[c] -> lose(c) }
	:: d_step { !up[c] && !dead[c] && !ended[c] -> up[c] = 1;
#ifdef RETURNS_ONLY
		purge[c] = purge[c] | expected[c];
#endif
		printf("client %d is connected again\n", c) }
	:: d_step { !up[c] && !dead[c] && ended[c] ->
		/* In a new session, servers may lag behind what the client saw in the former one. */
		current[c]++; ended[c] = 0; live[c] = 1; up[c] = 1; seen[c] = 0; purge[c] = 0; expected[c] = 0;
		printf("client %d has a new session, %d\n", c, current[c]) }

	:: d_step { live[c] && lapses > 0 && busy[c] -> lapses--; live[c] = 0; holds[c] = 0; printf("client %d: its lease lapses\n", c) }
	:: d_step { !live[c] && !ended[c] -> ended[c] = 1; late[c] = 0; zxid++;
		printf("the session of client %d is ended\n", c);
		do
		:: n < nodes -> if :: owner[n] == c && session[n] == current[c] && died[n] == 0 -> died[n] = zxid; by[n] = BY_SESSION :: else fi; n++
		:: else -> break
		od;
		n = 0 }

	/* late.look. The kept node is the contender's. */
	:: atomic { purge[c] != 0 && up[c] && !ended[c] ->
#ifndef NO_SYNC
		seen[c] = zxid;
#endif
		look();
		d_step {
			printf("client %d looks for what it has left behind\n", c);
			do
			:: n < nodes -> if :: visible(n, at) && (purge[c] & (1 << guid[n])) && stray(c, guid[n], n) -> to_discard(n, 0) :: else fi; n++
			:: else -> break
			od;
			n = 0; at = 0; purge[c] = 0
		} }
	od
}

#define removable(n) (discard[n] && up[owner[n]])

/* Znode is the deletion of one node by a client or an operator. */
proctype Znode(byte n) {
	byte c;

	do
	/* engine.remove */
	:: d_step { removable(n) && session[n] != current[owner[n]] -> discard[n] = 0; first[n] = 0; releasing[n] = 0 }
	:: d_step { removable(n) && session[n] == current[owner[n]] && !ended[owner[n]] ->
		c = owner[n];
		if
		:: died[n] == 0 -> delete(n, BY_CLIENT); saw(c, zxid); printf("client %d deletes node %d\n", c, n)
		:: else -> printf("client %d finds node %d to be deleted\n", c, n);
			if
#ifdef NO_NODE_IS_LOST
			:: releasing[n] ->
#else
			:: releasing[n] && first[n] ->
#endif
				printf("client %d is told that its lock had been lost\n", c);
				release_is_right = (by[n] != BY_CLIENT); assert(release_is_right)
			:: else
			fi
		fi;
		discard[n] = 0; first[n] = 0; releasing[n] = 0; c = 0 }
	:: atomic { removable(n) && session[n] == current[owner[n]] && !ended[owner[n]] && cuts > 0 ->
		c = owner[n];
		cuts--; first[n] = 0;
#ifdef RELEASE_ONCE
		discard[n] = 0; releasing[n] = 0;
#endif
		if
		:: died[n] == 0 -> delete(n, BY_CLIENT); printf("client %d deletes node %d, and does not learn of it\n", c, n)
		:: printf("client %d: the request to delete node %d is lost\n", c, n)
		fi;
		lose(c);
		c = 0 }

	:: d_step { n < nodes && owner[n] < N && died[n] == 0 && breaks > 0 -> breaks--; delete(n, BY_OPERATOR); printf("an operator deletes node %d\n", n) }
	od
}

#ifdef STRANGER
/*
 * Stranger is the thread of Curator's (InterProcessReadWriteLock, 5.5 and later). Its session does not end, it reads what the
 * leader has, and it is granted the lock when nothing is before its node.
 */
proctype Stranger() {
	byte n;

	/* A place for each of the two nodes: they have one number, and the reader stands behind the writer. */
	d_step {
		enough_nodes = (nodes + 1 < NODES); assert(enough_nodes);
		writer = nodes; nodes = nodes + 2;
		zxid++; born[writer] = zxid; owner[writer] = N; born[writer + 1] = UNBORN; died[writer + 1] = UNBORN; owner[writer + 1] = N;
		printf("the stranger has node %d for writing\n", writer)
	};
	atomic {
		do
		:: n < writer && died[n] != 0 -> n++
		:: n == writer -> break
		od;
		stranger = WRITING; n = 0;
		printf("the stranger is granted the lock for writing\n");
		do
		:: n < N -> exclusion = (!holds[n] || broken(mynode[n])); assert(exclusion); n++
		:: else -> break
		od;
		n = 0
	};
	if
	:: d_step { zxid++; born[writer + 1] = zxid; died[writer + 1] = 0; printf("the stranger has node %d for reading\n", writer + 1) };
		d_step { stranger = READING; delete(writer, NOBODY); printf("the stranger releases the lock for writing, and reads on\n") };
		d_step { stranger = NOTHING; delete(writer + 1, NOBODY); printf("the stranger releases the lock\n") }
	:: d_step { stranger = NOTHING; delete(writer, NOBODY); printf("the stranger releases the lock\n") }
	fi
}
#endif

/* Audit runs when nothing else can happen. */
proctype Audit() {
	byte i;

	timeout -> d_step {
		do
		:: i < nodes -> no_orphan = !(died[i] == 0 && (owner[i] == N || mynode[owner[i]] != i)); assert(no_orphan); i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < N -> in_line = (mynode[i] == NONE || died[mynode[i]] == 0); assert(in_line); i++
		:: else -> break
		od;
		all_served = (finished == N);
#ifdef KEEPER
		all_served = (all_served || holds[0] || started < N);
#endif
		assert(all_served);
		i = 0
	}
}

init {
	byte i;

	atomic {
		do :: i < N -> run Client(i); run Link(i); i++ :: else -> break od;
		i = 0;
		do :: i < NODES -> run Znode(i); i++ :: else -> break od;
#ifdef STRANGER
		run Stranger();
#endif
		run Audit();
		i = 0
	}
}
