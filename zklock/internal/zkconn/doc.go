// Package zkconn is zklock's connection to an ensemble. It knows nothing of locks.
//
// A [Link] has one ZooKeeper session at a time, through go-zookeeper, and adds what a lock needs and that does not give:
//
//   - The lease of each [Session]: until when the servers are known to keep it. The link reads along on the
//     connection, and takes for proof only what is one (trust.go).
//   - Calls that wait for a connection, and are made again where that helps ([Link.Retry]); what has come of them,
//     if that can be known; and in which session they were made ([Link.InSession]).
//   - The czxid of each znode that it creates, which is in the header of the reply (reply.go).
//   - One watch of a kind for each znode, however many wait for it, that is looked at again after each
//     reconnection ([Link.Watch], [Link.WatchOwn]).
//   - Group commit of the creations and deletions of many callers (batch.go).
//   - The end of a session, which is confirmed or an error ([Link.EndSession]).
//
// What it assumes of go-zookeeper, and how it copes with that, is in gozookeeper.go.
package zkconn
