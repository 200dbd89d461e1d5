// Package faultproxy is a TCP proxy that injects network faults.
//
// A [Proxy] listens on the loopback interface and forwards to one upstream address. It has two levels:
//
//   - Bytes. Every proxy can refuse, reset, black-hole, stall and delay connections. This is enough for the links of an ensemble.
//   - ZooKeeper frames. A proxy made by [StartZooKeeper] also splits both streams into frames. It counts them, shows them to a [Filter],
//     and applies one-shot rules such as [Proxy.LoseReply]. One made by [StartMongoDB] does so with MongoDB's messages, without the rules.
//
// A proxy that is [InMemory] is the same without a network: for clients and servers in a bubble of testing/synctest.
//
// Each direction of a connection is one pipeline:
//
//	read -> count -> filter -> rules -> queue -> latency -> stall or black hole -> write
//
// Bytes never overtake each other within a direction, and the two directions are independent. The end of a stream travels through the same
// pipeline: the other side of a black-holed direction sees silence, not the close.
//
//	Cut        live connections are reset (RST), new ones get "connection refused"
//	RefuseNew  live connections continue, new ones get "connection refused"
//	Drop       live connections are reset once, new ones pass
//	BlackHole  connections stay open, bytes are lost, Heal resets the connections
//	Stall      connections stay open, bytes are late, Heal delivers them
//	Turn       one direction delivers what it held back, and the other becomes a black hole
//	HalfOpen   live connections continue, new ones are accepted and never answered
//
// [Proxy.Heal] ends all of them. It leaves latency, filter, rules and counts as they are.
//
// The kernel completes TCP handshakes, so a connection attempt during a black hole succeeds at once, and latency does not delay the
// handshake. If the upstream cannot be reached, the proxy accepts the client's connection and then resets it.
package faultproxy
