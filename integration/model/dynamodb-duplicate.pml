/*
 * A heartbeat that arrives twice: a proxy, or a wrapper of the SDK, sends a copy
 * of a request, with the same guid. dynamodb.pml leaves that out, since it counts
 * on a guid being written once. One holder, one observer, and guids by their
 * number.
 */

#ifndef LEASE
#define LEASE 4 /* ticks */
#endif
#ifndef BEATS
#define BEATS 5 /* heartbeats of the holder */
#endif
#define WINDOW (LEASE - 1)

byte guid;           /* of the item, which the holder has written as number 0 */
bool taken;
byte window = WINDOW; /* how long the lock is valid for the holder */
byte next = 1;       /* the number of its next guid */
bool repeated;

bool looking;        /* the observer has looked, */
byte seen;           /* saw this guid, */
byte watch;          /* and may take the item if it is so when this has run down */

bool exclusion = true;

/* write: a heartbeat with guid n arrives. */
inline write(n) {
	if
#ifdef HEARTBEATS_UNORDERED
	:: !taken -> guid = n
#else
	:: !taken && n >= guid -> guid = n /* "the guid is not a later one than mine" */
#endif
	:: else
	fi
}

active proctype Holder() {
end:
	do
	:: atomic { window > 0 && next <= BEATS && !taken ->
		printf("the holder writes guid %d\n", next);
		write(next);
		next++;
		window = WINDOW
	}
	od
}

active proctype Network() {
	byte n;
end:
	do
	:: atomic { !repeated && next > 1 ->
		repeated = true;
		select (n : 1 .. next - 1);
		printf("guid %d arrives again\n", n);
		write(n);
		n = 0
	}
	od
}

active proctype Observer() {
	do
	:: taken -> break
	:: atomic { !taken && (!looking || seen != guid) ->
		printf("the observer sees guid %d\n", guid);
		looking = true;
		seen = guid;
		watch = LEASE
	}
	:: atomic { !taken && looking && watch == 0 && seen == guid ->
		printf("the observer takes the item; the holder's lock is valid for %d\n", window);
		taken = true;
		exclusion = window == 0;
		assert(exclusion)
	}
	od
}

active proctype Clock() {
	do
	:: taken -> break
	:: atomic { !taken ->
		printf("a tick\n");
		window = (window > 0 -> window - 1 : 0);
		watch = (watch > 0 -> watch - 1 : 0)
	}
	od
}
