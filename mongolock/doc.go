// Package mongolock provides locks in a MongoDB collection: holdfast's contract on writes that a majority of a replica set confirms.
//
//	db, err := mongo.Connect(options.Client().ApplyURI("mongodb://mongo1,mongo2,mongo3/?replicaSet=rs0"))
//	client, err := mongolock.New(ctx, db.Database("app").Collection("locks"), nil)
//	lock, err := client.Acquire(ctx, "orders/42")
//	defer lock.Release(ctx)
//
// A [Client] has the methods of [holdfast.Client], and BreakNow. The package is tested on emulators and models, and not yet on a replica
// set. The module is released together with the root module, at the same version.
//
// # How it works
//
// A key is one document, which stays when the lock is released, for its token. A write inserts the document, or replaces it where _id
// and rev are those that were read. Each write makes a new rev, so a late copy changes nothing. All writes wait for a majority, with their
// journals. A read that must not be stale is linearizable.
//
// A holder counts its lease from the sending of a write, other clients count it from the end of a read that shows the write. So the
// holder's lease is over first, and no two machines' clocks are compared. The rates of the two clocks must differ by less than Margin
// per Lease.
//
// A waiter reads the document once per [Options.Poll]. There is no order among clients, but a client that has waited for some polls is
// given a turn. A try takes over from a dead holder: if the last heartbeat seems to be older than the lease, it watches for that lease.
//
// # Guarantees
//
// All guarantees of package holdfast. Those that depend on the engine are as in package dynamolock, mode FailOpen: a holder learns of
// a break, a reclaim or an ask at its next heartbeat (G2, G13, G17), there is no queue (G7, G21), observers learn of changes once per Poll
// (G14), and each heartbeat writes the data again (G16). Tokens rise (G3) when a document comes back that the TTL index deleted, if the
// wall clocks of clients are not set back by hours.
//
// The package promises no tokens that rise over a restored backup, and nothing for a key whose document another program changes or
// deletes while it is held. [docs/mongodb.md] has the fields, permissions, failures and costs.
//
// [docs/mongodb.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/mongodb.md
package mongolock
