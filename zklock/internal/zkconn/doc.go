// Package zkconn is zklock's connection to an ensemble. It knows nothing of locks.
//
// A [Link] has one ZooKeeper session at a time, through go-zookeeper, and adds what a lock needs and that does not give:
//
//   - The lease of each [Session]: until when the servers are known to keep it. The link reads along on the
//     connection, and takes for proof only what is one (trust.go).
//   - Calls that wait for a connection, and are made again where that helps ([Link.Retry]); what has come of them,
//     if that can be known; and in which session they were made ([Link.InSession]).
//   - The czxid of each znode that it creates, which is in the header of the reply (reply.go).
//   - One watch of a kind for each znode, however many wait for it. The znodes of [Link.Watch] are read again after each
//     reconnection. Those that only [Link.WatchOwn] watches are not.
//   - Group commit of the creations and deletions of many callers (batch.go).
//   - The end of a session, which is confirmed or an error ([Link.EndSession]).
//
// What it assumes of go-zookeeper, and how it copes with that, is in gozookeeper.go.
//
// # States
//
// By its newest connection, a link is in one of four states, and calls are made in the last one only. The picture is
// docs/pictures/zk-connection.svg.
//
//	down     -> dialled   a connection was opened                      dial
//	dialled  -> joined    a server has given a session, new or resumed joined
//	joined   -> open      go-zookeeper has renewed its watches         opened
//	any      -> down      the connection is lost, or was left          lost
//
// A server that says that the session is over gives none: the link stays dialled until it hangs up. Sessions come and go with
// that: the present one begins when a server gives it, and ends when a server says so, or gives another, or when its
// timeout has grown by so much that the link leaves it (leave.go).
package zkconn
