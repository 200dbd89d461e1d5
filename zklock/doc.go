// Package zklock provides locks on ZooKeeper, 3.5 or newer: holdfast's contract on the ephemeral sequential znodes of ZooKeeper's own
// lock recipe ("ZooKeeper Recipes and Solutions", Locks).
//
//	client, err := zklock.Dial(ctx, []string{"127.0.0.1:2181"}, nil)
//	lock, err := client.Acquire(ctx, "orders/42")
//	defer lock.Release(ctx)
//
// A [Client] embeds [*holdfast.Client], and so has Acquire, TryAcquire, AcquireAny, AcquireAll, Do, DoAll, Inspect, List, Break, Ask,
// Events, Owner, Close and so on. This package adds Conn, SessionTimeout and Guard.
//
// A lock is a znode, and its children are the queue for it: see [docs/zookeeper.md]. A key such as "orders/42" is one escaped znode
// under Options.Root (/holdfast/orders%2F42). A key that starts with a slash is a znode path, for sharing a lock with other programs:
// see [Names]. A lock is valid as long as its session is, on the holder's own clocks: [docs/operations.md] says how to choose the
// session timeout.
//
// # Guarantees
//
// All guarantees of package holdfast. Those that depend on the engine:
//
//   - G2: a holder whose node is deleted, by Break, reclaim or hand, is told by a watch event;
//     the next in line has the lock at once.
//   - G3: tokens rise over releases, crashes, parents that are created again, and from key to key.
//   - G7, G21: first come, first served. A waiter whose session ends queues again, at the end.
//   - G13: WithReclaim still waits behind earlier requests of other names. A former client that is cut off, or has held the lock for
//     some milliseconds only, sees ErrBroken in place of ErrReclaimed.
//   - G14, G16: a change is told by an event and two reads; SetData is one write.
//   - G17: Ask takes the form of Curator's Revoker, in both directions.
//
// Not promised: that a waiter whose node an operator deletes learns of that before it is granted the lock; tokens that rise over a
// restored snapshot; and an order that other programs share beyond 2^31-1 creations under one parent.
//
// [docs/zookeeper.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/zookeeper.md
// [docs/operations.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/operations.md
package zklock
