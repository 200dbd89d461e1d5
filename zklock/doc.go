// Package zklock has locks on ZooKeeper, 3.5 or newer: holdfast's contract on
// the sequential-ephemeral recipe of ZooKeeper's documentation ("ZooKeeper
// Recipes and Solutions", Locks).
//
//	client, err := zklock.Dial(ctx, []string{"127.0.0.1:2181"}, nil)
//	lock, err := client.Acquire(ctx, "orders/42", holdfast.WithTTL(30*time.Second))
//	defer lock.Release(ctx)
//
// A [Client] embeds [*holdfast.Client], and so has Acquire, TryAcquire,
// AcquireAny, Do, TryDo, Inspect, List, Break, Events, Owner and Close; this package
// adds Conn, SessionTimeout and Guard.
//
// The same with pictures is in [docs/zookeeper.md]; how to choose the session
// timeout, and what to do when something is wrong, in [docs/operating.md].
//
// # The recipe
//
//	client                                     server
//	  create /holdfast/<key>/_c_<guid>-lock-  ->   ephemeral, sequential
//	  list   /holdfast/<key>                  ->   in the same flight
//	                                          <-   its path, and its zxid: the token
//	                                          <-   the queue
//	  lowest of the queue?  the lock is ours
//	  read with a watch: own node             ->   a few ms later; not waited for
//	  not the lowest?
//	  read with a watch: the next lower one   ->   and wait for it to go
//
// A lock costs two round trips: one to acquire, one to release. The fencing
// token is the node's czxid, which anybody can read (stat) and compare, in any
// language; it rises over releases, crashes, and parents that are made anew.
//
// If the reply to the creation is lost, the creation is repeated with the same
// guid in the same session. The list then shows one node of ours, or two, of which
// the lower is kept. Should the first creation be carried out later still, by a
// server that was stopped meanwhile, its node is found and deleted: for 64 session
// timeouts it is looked for, at each return to a server and every two of them at
// the latest. In another session a new guid is used: what the old
// one created ends with it.
//
// # How long a lock is valid
//
// A lock is valid as long as its session is. ZooKeeper's leader decides when a
// session ends, and a follower's answer to a ping does not show that the leader
// has heard of the client. So while a session holds a lock, it sends a sync and
// then a write to the quorum, once per HeartbeatPeriod for all of its locks, and
// counts from what these prove together:
//
//	r         a request that was answered at a
//	s         a sync, or a write, sent at a + window or later, and answered at b
//	w         a write, sent at b or later, and acknowledged
//	deadline  = sending of r + session timeout - margin
//	window    = a quarter of the session timeout, and an eighth of that
//
// How long messages take between servers does not matter. A session that holds
// nothing sends a sync per third of the timeout, so that the creation of a node can
// be such a w.
//
// A session that is resumed on a new connection counts from the resumption as
// soon as a write on that connection has been acknowledged, and not before: a
// leader that has lost its followers says yes to that as well, for a while. Its
// timeout is negotiated anew then. If it is shorter, the deadline comes nearer at
// once; if it is longer, leases go by the shorter one until the next session.
//
// At the deadline the lock is lost for its holder, on its own clocks, whether or
// not anything is heard. The leader ends the session later. While all is well,
// the deadline is between a half and two thirds of the timeout ahead, less the
// margin: an outage that lasts longer costs the locks.
//
// # What others see
//
// A key such as "orders/42" is one escaped znode under Options.Root
// (/holdfast/orders%2F42). A key that starts with a slash is a znode path, as
// it stands, for sharing a lock with other programs. The data of a lock node is
// the owner's name, then a NUL byte and the user's data if there is any. [Names]
// says who respects whom.
//
// # Guarantees
//
// All of G1 to G13 of package holdfast. Of those that depend on the engine:
//
//   - G2: a holder whose node is deleted, by Break, reclaim or hand, is told by one
//     watch event; the next in line has the lock at once.
//   - G3: the token is the czxid of the node, so it also rises from key to key.
//   - G7: first come, first served. A release wakes one waiter. Inspect shows the
//     queue. A waiter whose session ends queues again, at the end.
//   - G13: with a queue, WithReclaim ends what is before its own place, and takes its
//     turn after those of other names who were there. The former client hears of
//     ErrReclaimed if it is connected, and has watched its node by then: a lock that
//     was free is watched from 5 ms after the grant. Otherwise it finds the node gone,
//     nobody is asked why, and the lock ends with ErrBroken; a waiter queues again.
//
// # When things fail
//
//	what happens                   the holder                      waiters
//	-----------------------------  ------------------------------  ------------------------------
//	a reply is lost                the request is repeated, and    the same; there is one place in
//	                               what it finds is recognised     the queue in the end
//	connection lost, back in time  Disconnected, Ready             keep their places
//	connection lost for longer     ErrSessionExpired at Deadline   queue again in a new session
//	no quorum, or no leader, for   Disconnected, Ready at most     wait on
//	less than half the timeout
//	the same, for longer           ErrSessionExpired at Deadline   wait on; places may be lost
//	the process is stopped         ErrSessionExpired at its first  the next one is granted when
//	                               call                            the session ends
//	wall clock set forward         ErrClockJump, if past Deadline  notice nothing
//	its node is deleted, by Break  ErrBroken, one event later      the next one is granted at
//	or by hand                                                     once; the deleted queues again
//	WithReclaim by another client  ErrReclaimed, one event later;  of the name: ErrReclaimed;
//	                               ErrBroken if it was cut off     queue again if cut off
//	the parent is removed          -                               is made again
//	ACLs that refuse               keeps the lock; Release says    fail with ErrDenied
//	                               ErrReleasePending with
//	                               ErrDenied, and is tried again
//	                               until the session ends
//
// # What is not promised
//
//   - A holder that is stopped between looking at its lock and writing to a
//     resource can write after somebody else has the lock, unless the resource
//     compares tokens, or the write is a transaction with [Client.Guard].
//   - The deadline assumes that the rates of the clocks of client and leader
//     differ by less than the margin per session timeout, and that the leader's
//     ping loop does not stall: by its own clock it queues pings for its followers,
//     one every half tick, less than the window apart.
//   - It assumes that no server's tick is longer than that by which the session
//     timeout was granted; else Options.TickTime is to be the longest.
//   - It assumes that a server whose maxSessionTimeout, or tick, has been lowered is
//     not asked to resume a longer session by a request whose answer is lost, and
//     after which the client reaches nobody: before servers are changed like that,
//     clients are to ask for less. See [docs/operating.md].
//   - Observers behind an observer master (observerMasterPort, ZooKeeper 3.6) are not
//     for clients that hold locks: the table of such a server goes to the leader by
//     way of a follower's, and the window covers one table, not two. Nor is the race
//     in which a server sends its table while a request is being noted in it.
//   - Deleting a holder's node takes its lock at once: it is told by a watch
//     event, or by its session's end if it is cut off. A waiter whose node somebody
//     deletes hears of that before it hears of any later release, and is not granted
//     the lock. Only if the lock had come free first, the waiter's grant and the word
//     that its node is gone may cross: it then holds the lock until it hears, together
//     with whoever is granted it by right; its token is the lower one.
//   - A server that has parted from its ensemble and still shows a node that all
//     others have deleted (ZOOKEEPER-5010) is left by a client that has been held
//     up by it for two session timeouts. Until then, waiters wait in vain, and
//     tries are refused. Against a server that lacks a node which the others
//     have, only tokens help.
//   - Restoring an older snapshot of the ensemble turns tokens back.
//   - At the end of the sequence counter of a lock's parent (2^31-1 creations)
//     holdfast's clients go on in order of czxid; Curator, kazoo and
//     go-zookeeper's Lock do not, so that no mixture of them is safe there. A
//     warning is logged from 2^27 before it: re-create the parent in time.
//   - go-zookeeper has data races of its own, on reconnecting with watches set,
//     that a program run with the race detector may show.
//
// [docs/zookeeper.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/zookeeper.md
// [docs/operating.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/operating.md
package zklock
