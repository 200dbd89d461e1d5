// Package history records what the processes of a chaos run did, and checks it against the guarantees of a lock.
//
// Every process writes [Record] values, one JSON object a line, with stamps of the machine's monotonic clock, which all
// processes of one machine share ([Now]). [Check] judges them, [Count] counts them, and [Picture] shows what is wrong.
//
// # What a hold is
//
// A process that holds a lock takes a stamp, and then asks the lock whether it is live (Err). If it is, the process held the
// lock at the stamp: anything that happened before the answer, even a pause of the process, happened after the stamp. A hold
// is the time from the first such stamp after Acquire returned to the last one. A grant without a stamp, such as one that
// arrived too late, is not a hold, but its token counts.
//
// The moment when Done closes would be no measure: a stopped process closes it only when it runs again, and that is the
// moment that matters least, as it does nothing in between.
//
// # What a check demands
//
//	exclusion     No two holds of a key overlap. And whoever was refused by the fenced register, since another had the key, holds
//	              it no more.
//	tokens        No two grants of a key have the same token. Of two grants, the one that was asked for when the other had been
//	              told has the higher one. Holds, in the order of their first stamps, have rising ones.
//	fence         The fenced register accepts what is not below the highest token that it has seen, and nothing else.
//	ended         A lock whose holder has seen its end, by Err, by Verify or by Release, is not live again.
//	cause         A lock that was not released ends of what has happened to it: a break, a reclaim, a TTL that has passed on one
//	              of the two clocks, of which the wall clock may be set; or of something that only its client knows.
//	failed        Calls end in one of the ways that callers are told of. No fault of a run makes one fail otherwise.
//	linearizable  There is an order of the grants, ends and verifications of a key, each at some moment of its interval, in which
//	              the lock is granted when it is free, with rising tokens, and stands when it is verified.
//	undecided     Such an order was neither found nor ruled out in the time that there was.
//	settle        Calls return, within a bound when the faults are over. Whoever waits is granted or told why not.
//	history       The records do not contradict each other, and there is at least one hold in them.
//
// Writes of the unfenced register are only counted, in [Figures]: it goes back when holders are stopped between their look and
// their write, and is there to show it.
//
// # What is excused
//
// A break, and an acquisition that reclaims, end a grant without asking its holder: both are called a strike. The holder is
// excused from the invoke of the strike on. What ends the excuse is not its next look at Err, since the notice of the strike may
// be lost or late, and Err knows what the process knows. It ends
//
//   - when it has been told (rule ended), and in any case
//   - a lease after the moment e at which the strike has taken effect, since nothing renews the grant after e, and the holder
//     counts its lease from renewals. On DynamoDB the heartbeat is conditional on the guid that a break replaces. On ZooKeeper
//     the session does live on, but the answer to any write that could renew the lease comes after the event that tells of the
//     deleted node, on the same connection; a new connection begins by looking at the node.
//
// e is not after the return of the strike, if that is a success, and never after a successor was told of its grant, as the
// strike is what made room for it. A break that failed leaves open whether it was carried out. So does one that answers Gone: it
// may have been sent twice, and have met its own work. An acquisition that reclaims may, if it was not granted, take effect until
// Late after the end of its process. If it was granted, it has ended lower tokens only.
//
// A verification is a check with the engine, and excused by nothing: if it was invoked after the return of a successful break, or
// after a successor was told of its grant, and says that the grant stands, there is no order that explains it.
//
// Tokens are excused by nothing, either. Only the order of first stamps says nothing about a grant that was struck before its
// first one: a process that was stopped between its grant and the answer may look later than its successor does.
//
// # What is not an operation
//
// A call that was refused, gave up or failed, and a grant of which nobody was told since its process was killed in the call, leave
// no step in the order. This accuses nobody falsely: they may have held the key between others, and no rule says that a free
// lock must have been granted. In particular a try that is refused does not show that there was a holder: on ZooKeeper a
// contender that is giving up stands in line as well, until its node is gone.
//
// A holder whose lock has ended by itself, by a TTL or by a lease, gives it back later, or leaves that to the engine. When that
// is done is unknown, like everything that nobody has confirmed, so such a step may come at any time after the last stamp.
package history
