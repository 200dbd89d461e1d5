// Package history records what the processes of a chaos run did, and checks it against the guarantees of a lock.
//
// Every process writes [Record] values, one JSON object a line, with stamps of the machine's monotonic clock, which all
// processes of one machine share ([Now]). [Check] judges them and [Count] counts them.
//
// # Holds
//
// A process that holds a lock takes a stamp and then asks the lock whether it is live (Err). If it is, the process held the lock
// at the stamp, even if the process was paused before it asked. Two more calls show that a process believed in its lock when it
// invoked them: a verification that succeeds, and a release that finds the lock live. A hold lasts from the return of Acquire to the
// last of these signs. A grant without a sign after its return is no hold, but its token counts. A term of an election is a hold, by
// the looks of lead.
//
// # Rules
//
//	exclusion  No two holds of a key overlap, unless both are shared with the same limit, and at most limit permits overlap. A
//	           process whose write the fenced register refused does not hold the key afterwards.
//	verified   A verification fails if a break, or the grant of a lock that excludes this one, returned before it was invoked.
//	tokens     No two grants of a key share a token. Of two grants that exclude each other, the one that was invoked after
//	           the other had returned has the higher token.
//	ended      A lock whose holder has observed its end, by Err, Verify or Release, or whose client is closed, is not live again.
//	cause      A lock that was not released ends for a reason: a break, a reclaim, a TTL that has passed on one of the two
//	           clocks, Close, or a fault that can cost a lease.
//	failed     Calls end in a documented way.
//	term       Lead runs within its term: its key is given back, a resignation confirmed and its client closed only after
//	           lead has returned.
//	free       When all is quiet, a try is refused only because of calls that were made since then.
//	observe    Observers are told of grants that were made, in their order and with the data that the holder set. Tokens
//	           rise, no grant comes back, and none is held that a state shows to be over. When all is quiet, the last state is
//	           that the key is free. A refusal names a grant that was made, too.
//	ask        A holder is told that its lock is asked for if that is so, and within a lease while nothing is wrong.
//	turn       No request waits long while nothing is in its way; see [Rules].
//	settle     After the faults, calls return within a bound. Close returns in time whatever is wrong.
//	history    The records do not contradict each other, and contain at least one hold.
//
// # Strikes
//
// A break and an acquisition that reclaims end a grant without asking its holder: both are called a strike. Exclusion excuses the
// holder from the invoke of the strike until a lease after the moment e at which the strike took effect. Nothing renews
// the grant after e. On DynamoDB a heartbeat is conditional on what a break replaces. On ZooKeeper the reply to a later write comes
// after the watch event of the deleted node; a new connection reads the node first.
//
// e is not after the return of a successful strike, nor after the grant of a successor. A break that failed, or returned Gone,
// may have been carried out. An acquisition that reclaims but was not granted may take effect until Late after the end of its
// process, but not on a grant that was asked for after it returned. Nothing excuses a verification or a token.
package history
