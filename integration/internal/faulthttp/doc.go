// Package faulthttp has an [http.RoundTripper] that injects faults into a client's requests to DynamoDB, and a proxy that
// does so for other processes.
//
// A [Transport] stands between an SDK and the service. It reads each request and each reply as a whole, so that a fault hits
// exactly one operation, and each operation is either applied or not:
//
//	cut? -> rules -> delay -> server -> delay -> cut? -> client
//
// # Faults and what they look like
//
//	                server           client
//	LoseRequest     nothing          the error given, or silence
//	LoseReply       has answered     the error given, or silence
//	LateUntil       answers later    the error given, or silence, at once
//	StallUntil      answers later    waits; the request arrives anyway
//	DelayRequest    answers later    waits; if the client gives up first, the request is dropped
//	DelayReply      has answered     waits; a client that gives up never sees it
//	Answer          nothing          the answer given: throttled, denied, broken
//	Cut             nothing          silence
//
// Silence lasts until the client's ctx ends.
//
// [Transport.Cut] drops everything silently: no request arrives, pending replies are lost, and nothing is refused. Every call
// stays silent until its ctx ends, even after [Transport.Heal], which affects only later calls.
//
// # For other processes
//
// A [Proxy] is a Transport behind a port. The Transport alone decides the fate of a request; the client sees what a network
// would show:
//
//	Reset, errors of the server's connection   RST
//	EOF                                        the connection ends in the middle of an answer
//	Silence                                    nothing, until the client hangs up
//
// The proxy adds connection faults: Refuse and Drop.
//
// A connection attempt during a black hole succeeds, because the kernel accepts it.
//
// SDKs retry some failed requests. Rules treat each attempt as a request.
package faulthttp
