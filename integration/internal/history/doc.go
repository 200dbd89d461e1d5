// Package history records what the processes of a chaos run did, and checks it against the guarantees of a lock.
//
// Every process writes [Record] values, one JSON object a line, with stamps of the machine's monotonic clock, which all
// processes of one machine share ([Now]). [Check] judges them, [Count] counts them, and [Picture] shows what is wrong.
//
// # What a hold is
//
// A process that holds a lock takes a stamp, and then asks the lock whether it is live (Err). If it is, the process held the
// lock at the stamp: even if the process is paused before it asks, the stamp is earlier. A hold is the time from the first
// such stamp after Acquire returned to the last one. A grant without a stamp, such as one that arrived too late, is not a
// hold, but its token counts.
//
// A term of an election is a hold, too, by the looks of lead: at the ctx, and, when that has ended, at the lock, since
// the key is given back only when lead has returned.
//
// The moment when Done closes would be no measure: a paused process closes it only when it runs again, and does nothing in
// between.
//
// # What a check demands
//
//	exclusion     No two holds of a key overlap, unless both are shared; and no more hold a permit than there are. A process
//	              whose write the fenced register refused because another had the key does not hold the key afterwards.
//	tokens        No two grants of a key share a token. Of two that exclude each other, if one grant returned before the other
//	              was invoked, the later has the higher token. Their holds, in the order of their first stamps, have rising
//	              tokens.
//	ended         A lock whose holder has observed its end, by Err, Verify or Release, or whose client is closed, is not live
//	              again.
//	cause         A lock that was not released ends for a cause that happened: a break, a reclaim (or what a holder cannot tell
//	              from one), a TTL that has passed on one of the two clocks, of which the wall clock may be set; or for a cause
//	              that only its client knows. But on a machine that does not stand still, a lease does not run out by itself,
//	              and nobody takes over a lock whose lease is renewed.
//	failed        Calls end in a documented way. No fault of a run makes one fail otherwise.
//	linearizable  The grants, ends and verifications of a key can be ordered, each at some moment of its interval, so that
//	              nothing is granted beside what excludes it, nor beyond its limit, tokens rise, and a verified grant is held.
//	term          Lead runs within its term: its key is given back, a resignation confirmed, and its client closed, only when
//	              it has returned.
//	free          When all is quiet, each key can be had again, and each permit of it: a try is refused only because of
//	              calls that were made since then.
//	observe       What an observer is told is a part of what happened, in its order: each state was so at some moment, and
//	              not before the one that it was told before. So all who are told of hold the key, in the way in which it is told,
//	              nobody else does, and nothing that was over comes back (with the excuses of exclusion). The data of a holder is
//	              what it has set, never older than what was told before. When all is quiet, it was told last that nobody holds
//	              the key.
//	named         Whom a refusal names as the holder of a key has, or had a moment before, a grant of it.
//	ask           A holder is told that somebody asks for its lock if that is so, and, where nothing is wrong, within a lease.
//	turn          In a run with no faults that may cost anybody a lease, no request waits for long while nothing is in its way. A
//	              grant is in the way until its release was confirmed, or until a lease after its holder was lost or its process
//	              was gone. Where the engine has a queue (Rules.Queued), only earlier requests are in the way: those that do
//	              not share with the request, and those that do if there are as many as can hold the key together. Elsewhere
//	              any grant of the key is. Where the engine does not tell what is watched for, the time begins when it does
//	              again. In any run, the wait is shorter than a lease in times in which nothing is wrong; and for a lease more
//	              where a client that asks later than a holder was gone has to watch what that has left (Rules.Watched). Times
//	              in which two faults are meant for the requests of the waiting client do not count.
//	settle        Once the faults are over, calls return within a bound. A waiter gets a grant or an error. Closing a client
//	              takes three leases at most, and what its ctx allows, whatever is wrong. Setting data ends with its lock.
//	history       The records do not contradict each other, and contain at least one hold.
//
// Writes to the unfenced register are only counted, in [Figures]: it goes back when a holder is paused between its look and
// its write, and exists to show that.
//
// # What is excused
//
// A break, and an acquisition that reclaims, end a grant without asking its holder: both are called a strike. The holder is
// excused from the invoke of the strike on. Its next look at Err does not end the excuse, since the notice of the strike may
// be lost or late. The excuse ends
//
//   - when the holder has observed the end (rule ended), and in any case
//   - a lease after the moment e at which the strike took effect, since nothing renews the grant after e, and the holder
//     counts its lease from renewals. On DynamoDB the heartbeat is conditional on the guid that a break replaces. On ZooKeeper
//     the session lives on, but the reply to any write that could renew the lease comes after the watch event of the deleted
//     node, on the same connection; a new connection begins by reading the node.
//
// e is not after the return of a successful strike, nor after a successor's grant, which the strike made possible. A break
// that failed may have been carried out. So may one that answers Gone: it may have been sent twice, and have met its own
// effect. An acquisition that reclaims but was not granted may take effect until Late after the end of its process, but not on
// a grant that was asked for only when it had returned. If it was granted, it has ended only lower tokens. A grant can be struck
// until its release has returned Gone.
//
// With Rules.Namesakes, a holder may say that it was reclaimed wherever another process has taken over under the same owner: on
// DynamoDB it sees who has the key, and not how that came.
//
// Nothing excuses a verification: if it was invoked after a successful break or a successor's grant had returned, and says
// that the grant is valid, no order explains it.
//
// Nothing excuses tokens, either. Only the order of first stamps means nothing for a grant that was struck before its first
// stamp: a process that was paused between its grant and the reply may look later than its successor does.
//
// # What is not an operation
//
// A call that was refused, gave up or failed, and a grant whose process was killed during the call, leave no step in the
// order. This causes no false alarm: they may have held the key between others, and no rule says that a free lock must have
// been granted. In particular a refused try does not prove that there was a holder: on ZooKeeper a contender that is giving
// up stays in the queue until its node is deleted.
//
// What an observer is told may be of such a grant: it is believed if its owner had asked, and that call has not been granted
// a lower token. If a fault was under way during the call, it may have been: DynamoDB can carry out the first of its
// requests last, when the grant of another has been released, and its owner then gives that grant back too.
//
// A holder whose lock has ended by a TTL or a lease releases it later, or leaves that to the engine. The time of that is
// unknown, like everything unconfirmed, so such a step may come at any time after the last stamp.
package history
