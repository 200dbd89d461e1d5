// Package zkconn is zklock's connection to an ensemble. It does not know locks.
//
// A [Link] has one ZooKeeper session at a time, and one connection at a time, through go-zookeeper. It adds what a lock needs and
// go-zookeeper does not give:
//
//   - The lease of each [Session]: until when the servers are known to keep the session. The link reads along on the
//     connection; trust.go says which replies prove what.
//   - Calls that wait for a connection, and are repeated where that helps ([Link.Retry]).
//   - The czxid of each znode that it creates, which is in the header of the reply.
//   - One watch of a kind for each znode, shared by all callers. The link sets watches again on the next connection, by
//     reads that show what has happened meanwhile (watch.go).
//   - Group commit of the creations and deletions of many callers (batch.go).
//   - The end of a session, which is confirmed or an error ([Link.EndSession]).
//
// Each connection has a [Wire] and a zk.Conn: see [Link.visit] for its course.
package zkconn
