/*
 * Permits, locks and other permits in one queue of the ZooKeeper engine (zklock/rule.go, wait.go, recipe.go): N clients, each with one request.
 *
 * A request waits for every earlier one that does not share with it, and a permit until fewer than its limit are before it. It watches some
 * of the nodes before its own, and counts those that go, or lists the queue again: planFor in zklock/wait.go.
 *
 * That a node is created exactly once, and deleted, whatever is lost, is proved in zookeeper-queue.pml: here requests are not lost. Servers
 * lag: a list may be as old as what its client has seen before, and no older.
 *
 * Left out: Curator's writers, after which a client always lists the queue; more than five requests.
 */
#ifndef N
#define N 3		/* clients */
#endif
#ifndef LIMIT
#define LIMIT 2
#endif
#ifndef LOCKS
#define LOCKS 0		/* clients that want a lock, a bit each */
#endif
#ifndef OTHERS
#define OTHERS 0	/* clients that want a permit of LIMIT+1, a bit each */
#endif
#ifndef GIVEUPS
#define GIVEUPS 0	/* waiters that give up */
#endif

/*
 * CHAIN: all limits are large: the first waiter of a line of permits watches the queue, and each other its predecessor.
 *
 * KEEPER: this client keeps its permit for ever.
 *
 * Switches that remove a cure; each has a counterexample:
 *
 *   BEFORE_RUN   permits right before a request are counted whatever is before them
 *   BESIDE       permits beside locks that go do not count
 *   ONE_MORE     the count ends one too early
 *   ANY_LIMIT    permits of both limits share
 *   WATCH_ONE    a waiter watches the oldest node before its own only
 *   SILENT       with CHAIN, a permit that is granted does not tell the next waiter
 *
 * The verifier runs with -E: Audit judges whether a state in which nothing more can happen is correct.
 */

/* The properties, each asserted where it could cease to hold. */
bit within_limit = 1;	/* permits of one limit, no more than that, or one lock */
bit all_served = 1;	/* when nothing can happen any more, nobody waits */
bit unreached = 1;	/* not a property: what REACH asks for has not happened */

/* A node's number is its sequence number, and that of its client. died is 0 while it is there. */
byte nodes, zxid, changed, born[N], died[N], told[N];	/* changed: the last birth or death; told: the announcement of a grant */
bit discard[N];
byte locks, permits, others;	/* granted */
byte finished, giveups = GIVEUPS;

#define lock(c) ((LOCKS >> (c)) & 1)
#define other(c) ((OTHERS >> (c)) & 1)
#ifdef ANY_LIMIT
#define shares(c, d) (!lock(c) && !lock(d))
#else
#define shares(c, d) (!lock(c) && !lock(d) && other(c) == other(d))
#endif
#define limit(c) (other(c) -> LIMIT + 1 : LIMIT)
#define gone(n) (n < N && watched[n % N] && died[n % N] != 0)	/* of what is watched; N is 5 at most */
#define there(n) (died[n] == 0 || died[n] > at)

proctype Client(byte c) {
	byte at, n, ahead, strangers, row, k, line, left, until;
	bit whole, alone, broken, watched[N], queue;
	byte next = N, heard = N;	/* the predecessor that is watched, with CHAIN; the one whose announcement led to a list */

	atomic { nodes == c -> zxid++; changed = zxid; born[c] = zxid; nodes++; at = zxid };	/* in this order: of all orders, each is that of other clients */

list:	atomic {
		do :: at < zxid -> at++ :: break od;	/* how much the server knows */
		n = c;
		d_step {
			ahead = 0; strangers = 0; row = 0; broken = 0;
			do
			:: n == 0 -> break
			:: else ->
				n--; watched[n] = 0;
				if
				:: there(n) ->
					ahead++;
					if
					:: shares(c, n) -> row = (broken -> row : row + 1)
					:: else -> strangers++; broken = 1
					fi
				:: else
				fi
			od;
			line = strangers; k = 1; alone = lock(c) || ahead - strangers < limit(c);
#ifdef BESIDE
			alone = 1;
#endif
			if
			:: !lock(c) && row >= limit(c) -> line = row; k = limit(c); alone = (row == ahead);
#ifdef BEFORE_RUN
				alone = 1
#endif
			:: else
			fi
		};
		if
		:: strangers == 0 && (lock(c) || ahead < limit(c)) -> goto granted
		:: else
		fi;
#ifdef CHAIN
		if
		:: k == limit(c) && line == row && !lock(c) ->
			d_step {
				queue = (row == k); n = c;
				do :: n--; if :: there(n) -> break :: else fi od;
				next = n; n = 0; line = 0; ahead = 0; strangers = 0; row = 0; broken = 0; alone = 0; k = 0
			};
			goto chain
		:: else
		fi;
#endif
		d_step {
			whole = alone && (line <= 2 || line < 2 * k);
			left = (whole || line < k + 1 -> line : k + 1);
			until = (whole -> k - 1 : left - 1);
#ifdef ONE_MORE
			until = (whole && k < line -> k : until);
#endif
			/* The last ones of the line are watched. */
			n = c; line = left;
			do
			:: line == 0 || n == 0 -> break
			:: else ->
				n--;
				if
				:: there(n) && (k > 1 || !shares(c, n) || (row >= limit(c) && !lock(c))) -> watched[n] = 1; line--
				:: else
				fi
			od;
#ifdef WATCH_ONE
			n = 0;
			do :: !there(n) -> n++ :: else -> break od;
			line = n; n = 0;
			do :: n < c -> watched[n] = (n == line); n++ :: else -> break od;
			left = 1; until = 0; whole = 0;
#endif
			n = 0; line = 0; ahead = 0; strangers = 0; row = 0; broken = 0; alone = 0
		}
	};

wait:	atomic {
		if
		:: gone(0) || gone(1) || gone(2) || gone(3) || gone(4) ->
			d_step {	/* the first event */
				line = c; n = 0;
				do
				:: n == c -> break
				:: n < c && watched[n] && died[n] != 0 && (line == c || died[n] < died[line]) -> line = n; n++
				:: else -> n++
				od;
				n = line; line = 0
			};
			watched[n] = 0; left--;
			if :: at < died[n] -> at = died[n] :: else fi
		:: giveups > 0 -> giveups--; printf("client %d gives up\n", c); discard[c] = 1; goto over
		fi;
		n = 0;
		if
		:: left > until -> goto wait
		:: left == until && !whole -> goto list
		:: left == until && whole -> goto granted
		fi
	};

#ifdef CHAIN
chain:	atomic {
		if
		:: queue && changed > at -> at++
		:: !queue && died[next] != 0 -> at = (at < died[next] -> died[next] : at)
		:: !queue && told[next] != 0 && heard != next -> heard = next; at = (at < told[next] -> told[next] : at)
		:: giveups > 0 -> giveups--; printf("client %d gives up\n", c); discard[c] = 1; goto over
		fi;
		queue = 0; next = N;
		goto list
	};
#endif

granted: atomic {
#if defined(CHAIN) && !defined(SILENT)
		n = c + 1;
		do
		:: n < N && born[n] != 0 && born[n] <= at -> zxid++; told[c] = zxid; break
		:: else -> n++; if :: n >= N -> break :: else fi
		od;
		heard = N
	};
	atomic {
#endif
		n = 0; line = 0; ahead = 0; strangers = 0; row = 0; broken = 0; alone = 0; k = 0; whole = 0; until = 0; left = 0; at = 0;
		locks = locks + lock(c); others = others + other(c); permits = permits + (!lock(c) && !other(c));
		printf("client %d is granted the key\n", c);
		within_limit = (locks + (permits > 0) + (others > 0) <= 1 && permits <= LIMIT && others <= LIMIT + 1); assert(within_limit);
#ifdef REACH
		unreached = !(permits == LIMIT && nodes == N); assert(unreached);
#endif
#ifdef KEEPER
		if :: c == KEEPER -> goto over :: else fi;
#endif
	};
	atomic {
		locks = locks - lock(c); others = others - other(c); permits = permits - (!lock(c) && !other(c));
		discard[c] = 1
	};
over:	finished++
}

/* Znode is the end of a node. */
proctype Znode(byte n) {
	d_step { discard[n] -> zxid++; changed = zxid; died[n] = zxid; printf("node %d is gone\n", n) }
}

proctype Audit() {
	timeout -> all_served = (finished == N); assert(all_served)
}

init {
	byte i;

	atomic {
		do :: i < N -> run Client(i); run Znode(i); i++ :: else -> break od;
		run Audit();
		i = 0
	}
}
