// Package faultproxy is a TCP proxy that injects network faults.
//
// A [Proxy] listens on the loopback interface and forwards to one upstream address. It can refuse, reset, black-hole, stall and delay
// connections. With [Options.Split] it also divides both streams into messages, shows them to a [Filter], and lets [Proxy.Lose] decide
// about each: the harness of an engine's conformance test takes its faults from here.
//
//	p, err := faultproxy.Start(server, faultproxy.Options{LateRequest: lease / 2, LateReply: lease / 8})
//	...
//	return &locktest.Client{
//		API:   client.Client, // connected to p.Addr()
//		Cut:   func() { p.BlackHole(faultproxy.Both) },
//		Stall: func() { p.Stall(faultproxy.Both) },
//		Heal:  func() { _ = p.Heal() },
//		Lose:  p.Lose,
//	}
//
// A proxy that is [InMemory] is the same without a port: for clients that can be given a dialer, also in a bubble of testing/synctest.
//
// Each direction of a connection is one pipeline:
//
//	read -> split -> filter -> Lose -> queue -> latency -> stall or black hole -> write
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
// [Proxy.Heal] ends all of them, and what Lose does. It leaves latency and filter as they are.
//
// The kernel completes TCP handshakes, so a connection attempt during a black hole succeeds at once, and latency does not delay the
// handshake. If the upstream cannot be reached, the proxy accepts the client's connection and then resets it.
package faultproxy
