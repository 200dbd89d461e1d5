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
// [docs/dynamodb.md] says how it works, with pictures. [docs/operating.md] says how to
// choose lease and heartbeat, and what to do when something is wrong.
//
// # The item
//
// A key is one item, which stays when the lock is released, for its token:
//
//	(keys)                  S, N, B  Options.Keys; "id" by default
//	fencingToken            N        +1 at each grant; a new item starts with the time in ms
//	leaseDurationMs         N        1 (or 0): released; 2147483647: never expires
//	owner                   S
//	guid                    B        new at each grant and each heartbeat
//	lockAcquiredTimeUnixMs  N        the last touch, by the holder's wall clock
//	holdfastData            B        from WithData
//	holdfastSinceUnixMs     N        the grant, by the holder's wall clock
//	holdfastBrokenToken     N        of the grant that was broken last, so that its holder knows
//	holdfastBrokenGUID      B        the guid that it had, so that a break delays nobody
//	holdfastTurnMs          N        somebody who looks that often asks for a turn
//	(Options.TTLAttribute)  N        epoch seconds, for Time to Live; if set
//
// While several hold the key, by [holdfast.WithShared] or [holdfast.WithLimit], the item has
// an entry for each of them besides, and owner is "holdfast:shared". Only mode FailOpen can
// share. At most [holdfast.MaxLimit] do: all of them renew one item. [docs/dynamodb.md] has
// the attributes and the capacity that this takes.
//
// Each step is one request, on the condition that the item is as it should be:
//
//	acquire    UpdateItem  there is none, or it is released, or it is as it was seen to be for its
//	                       whole lease, or (to reclaim) of the grant that was seen, of the same owner
//	heartbeat  UpdateItem  it is of this grant, and not released: another guid
//	release    UpdateItem  it is of this grant: the lease becomes 1 ms
//
// The first half of a guid stays the same for as long as the grant does. So whatever
// happens to requests and answers on the way, a grant recognises its own guid. If a
// reply was lost, the repeated request meets its own guid, which is a success. A
// heartbeat that arrives after the release, or an acquire that arrives after it was
// given up, does nothing or is undone.
//
// # Keys
//
// A key is what the table takes: in an attribute of type S any UTF-8, in one of type B
// any bytes, in one of type N a number. It has from 1 to 2048 bytes, or 1024 in a sort
// key. So the keys of other programs can be locked as they are: "https://x/y", "a//b",
// "/a". Not all of them are portable. Other engines accept what [holdfast.CheckKey]
// accepts, so a program that may move to another engine can ask it.
//
// # Whose clock
//
// No two machines' clocks are compared. The holder counts from before it sent what the
// table has accepted, an observer from after it read the item:
//
//	holder's deadline = sending of the last write that was confirmed + lease - margin
//	taken over        = end of the read that showed this guid first  + lease
//
// The write comes before the read that shows it, so the holder's lease is over first, by
// the margin, whatever the clocks show. Their rates must differ by less than Margin per
// Lease. [Options.TrustLocalTime] is a shortcut that gives this up.
//
//	              granted               guid unchanged for a whole lease
//	free  ----------------------> held ----------------------------------> taken over,
//	 ^                             |  ^                                     token + 1
//	 |      released               |  | heartbeat: another guid
//	 +-----------------------------+--+
//
// # Waiting
//
// DynamoDB notifies nobody of a release, so a waiter looks at the item once per
// [Options.Poll], by eventually consistent reads; of the waiters of one client for a key
// only one does. A waiter never sleeps past the end of the lease that it observes. There
// is no order among clients: the first to look has the key. Within one client it is
// first come, first served. A client that has seen others have the key for some polls asks
// for a turn, by a write, and a client that releases the key then does not take it again
// before others have looked: for two polls of whoever asked, or a lease at most. A try, and a
// wait that would end before, do not wait for that.
//
// A client that only tries, by TryAcquire, remembers what it saw of up to 32768 keys,
// and takes over from a dead holder at a later try. A program that starts, tries once
// and exits has nothing to remember: let it try with [holdfast.WithTakeover].
//
// A try of a key that the client last saw held reads first, and writes only if that may
// succeed: tries take nothing from the write capacity that the holder's heartbeats need.
// The read is consistent, so a try that begins after a release was confirmed finds the
// key free. A client reads a key for its tries at most once per tenth of Poll, or per
// 100 ms if that is less, and tries that come sooner wait for the next read.
//
// # Guarantees
//
// All guarantees of package holdfast. Of those that depend on the engine:
//
//   - G2: a holder whose grant is broken or reclaimed is told at its next heartbeat.
//     Break leaves the lease to run until then, and does not prolong it.
//   - G3: the token is fencingToken. An item that was deleted and comes back starts
//     above its earlier tokens, if its key was granted less than 1000 times a second on
//     average and the clock of the client that creates it, or the date in the server's
//     answers, is not behind. One that the npm client creates again starts with 1: only
//     an item that is never deleted keeps a mixed fleet's tokens rising.
//   - G7: no order, see above. Info has no queue.
//   - G13: without a queue, WithReclaim holds the key at once.
//   - G14: whoever observes a key reads its item once per Poll, consistently, for all
//     observers of the client. A holder that is silent is told of until its item has been
//     unchanged for its whole lease; an Acquire or a try of the same client then succeeds.
//   - G16: SetData is a heartbeat out of turn that carries the data: one write, which
//     renews the lease too. The size of the data is paid for with every heartbeat.
//   - G17: a holder that is asked for its lock is told by the answer to its next heartbeat,
//     which costs nothing. Other programs' holders, such as the npm client's, do not know of
//     asks, and Ask returns nil.
//   - G19: a reader that does not know that a key is shared sends two requests. A waiting
//     writer keeps further readers out, for a lease at most after it died; the npm client's
//     writers do not.
//
// # Locks that never expire
//
// [FailClosed] and [FailClosedFenced] are for work that must not be begun twice,
// even if it may then not be done at all: the lock of a holder that died stays until
// somebody ends it by Break, or claims it by WithReclaim. Deadline is far away; in each
// heartbeat period the holder reads whether it was broken. FailClosed is the npm
// client's form and has no token: Token is 0, the one exception to G3. holdfast's items
// have holdfastData too, if there is data; Inspect does not know since when they are
// held.
//
// # Time to Live
//
// DynamoDB's Time to Live deletes an item when the time in one of its attributes is
// over, whether or not a lock is held. A client that has [Options.TTLAttribute] sets the
// attribute TTL ahead with every write. Nobody should hold a lock whose item has the
// time to live of another client. So each client looks up which attribute the table's
// Time to Live uses, in New and then every 15 minutes while it acquires or holds locks,
// and every write removes that attribute if it is not the client's own: items that such
// a client wrote last stay. A lock that never expires, and is held when its client
// learns of the attribute, is written once to remove it.
//
// New does not fail if it may not look (dynamodb:DescribeTimeToLive); it logs a warning.
// Two exposures remain. The item of a held lock can be deleted if Time to Live is on,
// other clients have TTLAttribute, and this one has not and may not look. And if Time to
// Live is switched on while items carry a time that is over, which clients with
// TTLAttribute wrote more than TTL ago, those items are exposed until their holders'
// next look and the heartbeat after it: give the setting to all clients, wait for a
// lease, and then switch Time to Live on. The npm client replaces whole items, so nothing
// is left on those that it holds.
//
// # When things fail
//
//	what happens                     the holder                         waiters
//	-------------------------------  ---------------------------------  ----------------------------
//	a reply is lost                  the request is repeated, and       the same
//	                                 meets its own guid
//	throttled, 500, reset, no        Disconnected, Ready; repeated      wait on, as long as ctx
//	answer, for less than the lease                                     and WithRetry allow
//	the same, for longer             ErrLeaseExpired at Deadline        take over when the lease
//	                                                                    has passed unchanged
//	a transaction writes the item    repeated after 10 to 50 ms, and    the same
//	                                 is told to nobody
//	ten idle connections have died   a heartbeat's first time limits    wait on
//	                                 are short, so it finds a live one
//	this machine's clock is wrong    repeated once by the server's      the same
//	access denied                    tries again at the next            fail with ErrDenied
//	                                 heartbeat; a release says so, and
//	                                 goes on in the background
//	the process is stopped           ErrLeaseExpired at its first call  take over
//	wall clock set forward           ErrClockJump, if beyond Deadline   notice nothing
//	wall clock set back              notices nothing                    notice nothing
//	Ask                              Asked, at the next heartbeat       notice nothing
//	Break, BreakNow                  ErrBroken at the next heartbeat    get the key after that;
//	                                                                    BreakNow: at once
//	WithReclaim by another client    ErrReclaimed at the next           get the key in time
//	                                 heartbeat
//	the item is deleted              ErrBroken at the next heartbeat    get the key at once
//	the item is another program's    ErrBroken at the next heartbeat    fail with an ItemError
//
// # What is not promised
//
//   - A holder that is stopped between looking at its lock and writing to a resource can
//     write after somebody else has the lock, unless the resource compares tokens, or
//     the write is a transaction with [Client.ConditionCheck].
//   - Global tables give no mutual exclusion: two regions accept conflicting writes, and
//     the later one wins silently. Use a table in one region, from all. (With
//     multi-Region strong consistency there is one answer, but Time to Live and
//     transactions are not to be had.)
//   - Deleting an item under its holder frees the key before the holder knows.
//   - Restoring a backup of the table turns tokens back.
//   - If an acquire was given up and is delivered more than a lease later, it leaves an
//     item that nobody holds, for one lease. In the modes that fail closed, where that
//     would be for ever, a client follows such requests up for the 15 minutes for which
//     DynamoDB accepts their signature (more by as much as the clock that signed them is
//     ahead). A client that closes or dies before that may leave a key held: Close waits
//     for a lease, then fails with ErrReleasePending and names the keys, which are also
//     logged.
//
// # Sharing a table with the npm client
//
// FailOpen locks exclude one another, and tokens rise from one to the other, if all
// programs use trustLocalTime or none does: npm clients that trust the clock take the
// locks of those that do not, which write no time. This package always writes it. Never
// use a key with FailOpen and FailClosed. The npm client's holders have no deadline: one
// that is stopped for longer than its lease does not know that it is over. Its writes
// replace the whole item. That removes Data and Since of a hold, an attribute for Time
// to Live, and the trace of a BreakNow: a holder whose key an npm client has taken since
// then gets ErrTakenOver.
//
// # Permissions and costs
//
// A client needs dynamodb:UpdateItem, GetItem and DescribeTable on the table, and
// DescribeTimeToLive unless Time to Live is off or all clients have TTLAttribute; for
// FailClosed, and to break such locks, DeleteItem; for List, Scan (and Query, with a
// sort key); for ConditionCheck, ConditionCheckItem. CreateTable needs
// dynamodb:CreateTable, and for TTLAttribute UpdateTimeToLive.
//
// One acquisition, heartbeat, release, and first try of a held key are 1 write unit each,
// as long as the item (keys, owner, data) is under 1 KB, and one more for each further
// KB; a look at a key that is waited for is half a read unit; further tries of a held key,
// Verify and Inspect are 1, per 4 KB. To reclaim a lock takes 2 write units: the first
// write shows whose it is. List without a partition key reads the whole table. With the
// defaults a held lock costs 0.2 write units a second, and a key that is waited for 0.5
// read units a second per waiting process.
//
// [docs/dynamodb.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/dynamodb.md
// [docs/operating.md]: https://github.com/holdfast-go/holdfast/blob/HEAD/docs/operating.md
package dynamolock
