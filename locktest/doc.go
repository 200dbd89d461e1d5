// Package locktest tests implementations of [driver.Driver], in the manner
// of testing/fstest and testing/slogtest. It is for authors of engines.
//
//	func TestConformance(t *testing.T) {
//		locktest.Run(t, locktest.Engine{
//			Start: func(t testing.TB) locktest.Harness { return newHarness(t) },
//			Lease: 4 * time.Second,
//			Ordered: true,
//		})
//	}
//
// [Run] has a subtest for each rule, whose name begins with the number of the
// guarantee that it belongs to, as listed in package holdfast:
//
//	--- FAIL: TestConformance/G2_HolderKnowsFirst
//	    G2 broken: the holder knows that its lease is over before anybody else gets the key:
//	        another was granted the key, and Done of the old holder was open; its Deadline is 9s from now
//
// so that -run selects a guarantee ("/G2_"). It needs the standard library
// only, and leaves nothing in the engine: every key begins with "locktest-" and
// a random part, and every client is closed.
//
// # What an engine brings
//
// An [Engine] says how clients are made, what is promised and how long things
// may take; a [Harness] makes the clients of one case; a [Client] can be cut
// off, healed, expired, paused, and have its clock set. Loss is the subject of
// most cases, so Cut and Heal are required. What a harness cannot do (Pause,
// Jump) is left nil; those cases are skipped, and say so.
//
// What an engine does not promise is asserted in the weaker form, never
// skipped: without [Engine.Ordered], that every waiter is served in the end. What it
// declares not to do is asserted as such: with [Engine.Tokenless], that every token is
// 0; with [Engine.NeverExpires], that the key of a silent holder goes to nobody until
// somebody breaks the lock.
//
// # Time
//
// In virtual time ([Engine.Bubble] is [testing/synctest.Test]) the limits can be
// exact and the suite takes milliseconds. On a real engine they are upper
// bounds: Lease decides how long the suite takes (about twenty cases wait for
// one to pass; Lanes lets them do so together), Soon only how long it waits
// before it calls something broken. No case compares absolute times.
package locktest
