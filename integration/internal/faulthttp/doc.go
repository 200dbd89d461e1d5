// Package faulthttp is an [http.RoundTripper] that breaks a client's requests to DynamoDB on purpose, and a proxy that does so
// to other processes.
//
// A [Transport] stands between an SDK and the service. It reads each request and each reply as a whole, so that a fault hits
// one operation and nothing else, and an operation is either carried out or not:
//
//	count -> cut? -> rules -> delay -> server -> delay -> cut? -> client
//
// # Faults and what they look like
//
//	                server           client
//	LoseRequest     nothing          the error given, or silence
//	LoseReply       has answered     the error given, or silence
//	Late            answers later    the error given, or silence, at once
//	StallUntil      answers later    waits; the request arrives all the same
//	DelayRequest    answers later    waits; a client that gives up before takes the request back
//	DelayReply      has answered     waits; a client that gives up never learns
//	Answer          nothing          the answer given: throttled, denied, broken
//	Cut             nothing          silence
//
// Silence lasts until the client's ctx ends. A delay is a time, or until a channel is closed ([HoldRequest], [HoldReply],
// [LateUntil], [StallUntil]), for tests that measure no time.
//
// [Transport.Cut] is the end of the network in the harshest way: no request arrives, no reply to a request under way arrives,
// and nothing is refused; every call is silent until its ctx ends, also after [Transport.Heal], which helps only later calls.
//
// # For other processes
//
// A [Proxy] is a Transport behind a port. What becomes of a request is decided by the Transport and nothing else; the client sees
// of it what a network shows:
//
//	Reset, errors of the server's connection   RST
//	EOF                                        the connection ends in the middle of an answer
//	Silence                                    nothing, until the client hangs up
//
// To this the proxy adds what happens to connections. Together they are the usual faults of a network:
//
//	cut, with notice       Refuse, Drop
//	cut, without           Refuse, Transport.Cut
//	black hole             Transport.Cut
//	half-open server       Drop, LoseRequest(Silence) for all
//	replies are lost       LoseReply(Silence) for all
//	requests are lost      LoseRequest(Silence) for all
//	stall                  StallUntil for all
//
// A connection attempt during a black hole succeeds, because the kernel accepts it.
//
// SDKs repeat requests that fail in certain ways. Each attempt is a request of its own here, to rules and counts alike.
package faulthttp
