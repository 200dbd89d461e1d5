// Package zklock has locks on ZooKeeper, 3.5 or newer: holdfast's contract on the
// ephemeral sequential znodes of ZooKeeper's own lock recipe ("ZooKeeper Recipes and
// Solutions", Locks).
//
//	client, err := zklock.Dial(ctx, []string{"127.0.0.1:2181"}, nil)
//	lock, err := client.Acquire(ctx, "orders/42")
//	defer lock.Release(ctx)
//
// A [Client] embeds [*holdfast.Client], and so has Acquire, TryAcquire, AcquireAny,
// AcquireAll, Do, DoAll, Inspect, List, Break, Ask, Events, Owner, Close and so on. This package
// adds Conn, SessionTimeout and Guard.
//
// [docs/operating.md] says how to choose the session timeout, and what to do when something is wrong.
//
// # How it works
//
// A lock is a znode, and its children are the queue for it. A contender creates an ephemeral sequential child; the lowest
// has the lock, and each other one waits until its predecessor is gone. That costs two round trips, one to
// acquire and one to release. The fencing token is the czxid of the child, which anybody can read (stat) and compare, in
// any language. It rises over releases, crashes, and parents that are created again. Where a reply is lost, the child is found
// again by a guid in its name.
//
// A lock is valid as long as its session is, on the holder's own clocks, whether or not anything is heard: the leader
// ends the session later. While a session holds locks, it sends a sync and a write to the quorum, once per Heartbeat for
// all of them, and counts from what these prove together, since the answer of a follower to a ping does not show
// that the leader has heard from the client. While all is well, the deadline is between a half and two thirds of the timeout ahead,
// less the margin: an outage that lasts longer costs the locks. Where the timeout is negotiated again to a shorter one, the
// deadline comes nearer at once.
//
// [docs/zookeeper.md] has the steps, the rule of the deadline, and what there is to see, with pictures.
//
// # What others see
//
// A key such as "orders/42" is one escaped znode under Options.Root
// (/holdfast/orders%2F42). A key that starts with a slash is a znode path, as it stands,
// for sharing a lock with other programs. Both are below the chroot, if the connect string
// has one ("h1:2181,h2:2181/app"). The data of a lock node is the owner's name, then a NUL
// byte and the user's data if there is any. [Names] says who respects whom.
//
// # Guarantees
//
// All guarantees of package holdfast. Of those that depend on the engine:
//
//   - G2: a holder whose node is deleted, by Break, reclaim or hand, is told by one
//     watch event; the next in line has the lock at once.
//   - G3: the token is the czxid of the node, so it also rises from key to key.
//   - G7: first come, first served. A release wakes one waiter. Inspect shows the queue.
//     A waiter whose session ends queues again, at the end.
//   - G13: with a queue, WithReclaim ends what is before its own place, and takes its
//     turn after those of other names that were there. The former client gets
//     ErrReclaimed if it is connected and has watched its node by then: a lock that was
//     free is watched from 5 ms after the grant. Otherwise it finds the node gone, asks
//     nobody why, and the lock ends with ErrBroken; a waiter queues again. The same goes
//     for a lock that is reclaimed at the moment of its own SetData, or by a client that
//     has left the queue before the former one looks. It ends no other use of the key: who
//     asks for a permit where its former self has a lock, the reverse, or another number of
//     permits, gets a MismatchError until that lease is over.
//   - G14: a change is told by an event and two reads, however many observe the key.
//   - G16: SetData is one write to the lock's node, on condition of its version. It wakes
//     the clients that wait next in line, which read the node again.
//   - G17: Ask writes to the holder's node, in the form of Curator's Revoker: "__REVOKE__",
//     behind the data that is there and a NUL byte. So a revocable InterProcessMutex hears of
//     it, and a holder here hears of Curator's Revoker, whose write erases the owner's name
//     from the node. Others' holders, such as kazoo's, notice nothing, and Ask returns nil.
//     It fails with ErrDenied if the holder's ACL lets nobody else write (Options.ACL). Data
//     and owner names that would read as a wish are refused with ErrInvalid.
//   - G21: who waits for a permit may lose a turn, once, to somebody who asked at the same
//     moment and found nobody waiting.
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
//	Ask                            Asked, one event later, or when nobody notices
//	                               it is connected again
//	its node is deleted, by Break  ErrBroken, one event later      the next one is granted at
//	or by hand                                                     once; the deleted queues again
//	WithReclaim by another client  ErrReclaimed, one event later;  of the name: ErrReclaimed;
//	                               ErrBroken if it was cut off     queue again if cut off
//	the parent is removed          -                               it is created again
//	ACLs that refuse               keeps the lock; Release returns fail with ErrDenied
//	                               ErrReleasePending with
//	                               ErrDenied, and is retried until
//	                               the session ends
//	the same, to read its own node ErrBroken and ErrDenied         fail with ErrDenied
//
// # What is not promised
//
//   - A holder that is stopped between looking at its lock and writing to a resource can
//     write after somebody else has the lock, unless the resource compares tokens, or
//     the write is a transaction with [Client.Guard].
//   - The deadline goes by what [docs/engines.md] assumes of clocks and servers. Two things must be set: Options.TickTime,
//     where the servers' ticks differ; and clients must be made to ask for less before the maxSessionTimeout or the tick of a server is
//     lowered. Clients that hold locks must not use observers behind an observer master (observerMasterPort, ZooKeeper 3.6).
//   - Deleting a holder's node takes its lock at once: it is told by a watch event, or
//     by its session's end if it is cut off. A waiter whose node is deleted hears of
//     that before it hears of any later release, and is not granted the lock. Only if
//     the lock had become free first, the waiter's grant and the news that its node is
//     gone may cross. It then holds the lock until it hears, together with the rightful
//     next holder; its token is the lower one. The same is so if
//     somebody first takes away its permission to read the node: from 3.8.4 and 3.9.2 on,
//     servers do not tell it of the deletion then (ZOOKEEPER-4799), and it lasts until a
//     heartbeat has looked for the node, which is the next if the client holds up to 16
//     locks; each looks for 16.
//   - A client leaves a stale (diverged) server, which still shows a node that all
//     others have deleted (ZOOKEEPER-5010), after it has been held up by it for two
//     session timeouts. Until then, waiters wait in vain, and tries are refused. Against
//     a server that lacks a node which the others have, only tokens help.
//   - At the end of the sequence counter of a lock's parent (2^31-1 creations),
//     holdfast's clients continue in order of czxid. Curator, kazoo and go-zookeeper's
//     Lock do not, so no combination of them is safe there. A warning is logged from
//     2^27 before it: create the parent again in time.
//
// [docs/engines.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/engines.md#zookeeper-assumptions
// [docs/zookeeper.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/zookeeper.md
// [docs/operating.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/operating.md
package zklock
