// Package dynamolock has locks in a DynamoDB table: holdfast's contract on conditional
// writes, with the items of the npm client dynamodb-lock-client, so that a fleet of Node
// and Go programs can share a table.
//
//	client, err := dynamolock.New(ctx, dynamodb.NewFromConfig(cfg), &dynamolock.Options{Table: "locks"})
//	lock, err := client.Acquire(ctx, "orders/42")
//	defer lock.Release(ctx)
//
// A [Client] embeds [*holdfast.Client], and so has Acquire, TryAcquire, AcquireAny,
// AcquireAll, Do, DoAll, Inspect, List, Break, Ask, Events, Owner, Close and so on. This package
// adds ConditionCheck, BreakNow and Options. [CreateTable] creates the table.
//
// # How it works
//
// A key is one item, which stays when the lock is released, for the token in its attribute
// fencingToken. To acquire, to renew and to release is one conditional write each. Every
// grant and every heartbeat writes another guid, and no two machines' clocks are compared:
//
//	the holder's deadline = sending of the last write that was confirmed + lease - margin
//	taken over            = end of the read that showed this guid first  + lease
//
// The write comes before the read that shows it, so the holder's lease is over first, by
// the margin. The rates of the two clocks must differ by less than Margin per Lease.
//
// DynamoDB notifies nobody of a release, so a waiter looks at the item once per
// [Options.Poll]. There is no order among clients: the first to look has the key, and whoever
// has waited for some polls is given a turn. A program that starts, tries once and exits never
// takes over from a dead holder, unless it tries with [holdfast.WithTakeover].
//
// [docs/dynamodb.md] has the attributes, the conditions, Time to Live and what happens when
// something fails; [docs/engines.md] permissions, costs and what is shared with the npm client;
// [docs/operating.md] how to choose lease and heartbeat.
//
// # Guarantees
//
// All guarantees of package holdfast. Those that depend on the engine:
//
//   - G2: a holder whose grant is broken or reclaimed is told at its next heartbeat.
//   - G3: an item that was deleted starts above its earlier tokens if it was granted less than
//     1000 times a second and the clock of the client that creates it is not behind. Mode
//     [FailClosed] has no tokens.
//   - G7, G21: no queue. WithReclaim (G13) holds the key at once, unless others share it or a writer
//     keeps readers out; what it ends is ended at once all the same.
//   - G20: who waits is not in the item, and does not keep what the key is used as.
//   - G14, G17: changes are told once per Poll, asks at the next heartbeat.
//   - G16: the size of the data is paid for with every heartbeat.
//
// What is not promised: mutual exclusion on global tables, where two regions accept conflicting
// writes; tokens that rise over a restored backup; and anything for a key whose item somebody
// deletes while it is held. In the modes that fail closed, a client that dies may leave a
// key held by an acquire that it had given up.
//
// [docs/dynamodb.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/dynamodb.md
// [docs/engines.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/engines.md#dynamodb-assumptions
// [docs/operating.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/operating.md
package dynamolock
