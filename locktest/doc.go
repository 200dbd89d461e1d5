// Package locktest tests implementations of [driver.Driver], in the manner
// of testing/fstest and testing/slogtest. It is for authors of engines.
//
//	func TestConformance(t *testing.T) {
//		locktest.Run(t, locktest.Engine{
//			Start: func(t testing.TB) locktest.Harness { return newHarness(t) },
//			Lease: 4 * time.Second,
//		})
//	}
//
// [Run] has a subtest for each rule. Its name begins with the number of the guarantee:
//
//	--- FAIL: TestConformance/G2_HolderKnowsFirst
//	    G2 broken: the holder knows that its lease is over before anyone else gets the key:
//	        another client was granted the key while the old holder's lock was live; its Deadline is 9s from now
//	        at lease.go:112, expect.go:190
//
// so -run selects a guarantee ("/G2_"). Package holdfast says what each of them promises:
//
//   - G1 exclusion
//   - G2 the holder knows first
//   - G3 fencing
//   - G4 one end, one cause
//   - G5 giving up is clean
//   - G6 no orphans
//   - G7 order
//   - G8 TTL
//   - G9 events, OnEvent
//   - G10 release
//   - G11 close
//   - G12 bad input
//   - G13 reclaim
//   - G14 observe
//   - G15 election
//   - G16 data that a holder sets
//   - G17 asking
//   - G18 several keys, all or none
//   - G19 sharing
//   - G20 permits
//   - G21 turns of readers, writers and permits
//
// The suite needs only the standard library. It leaves nothing in the engine: every key
// begins with "locktest-" and a random part, and every client is closed.
//
// # What an engine brings
//
// An [Engine] says how clients are made and how long its steps may take. A [Harness] makes the clients of one case. The suite can cut
// off, heal, expire and pause a [Client], set its clock, and lose or delay single messages ([Fate]). Most cases are about loss, so Cut
// and Heal are required. A harness leaves nil what it cannot do (Stall, Lose, Pause, Jump); the cases that need it are skipped, and say so.
//
// The suite asks clients for the [driver.Features] of the engine, and asserts what they say. Without Ordered, every waiter is served in
// the end. With Tokenless, every token is 0. With NeverExpires, no client gets the key of a client that is cut off or stopped within one
// and a half of [Engine.Lease]; its Deadline is far away, and a break frees the key. Without Shares, a request to share a key is refused
// before anything is sent, and the cases of G19 to G21 are skipped; with it, cases whose outcome may depend on the mode run for each mode.
// With AnyKey, a key is any valid UTF-8 of less than 10 kB.
//
// # Time
//
// In virtual time ([Engine.Bubble] is [testing/synctest.Test]) the limits can be exact
// and the suite takes milliseconds. On a real engine they are upper bounds. Lease decides
// how long the suite takes: about twenty cases wait for a lease to expire, and Lanes lets
// them wait at the same time. Soon only decides how long the suite waits before it
// reports a failure. No case compares absolute times.
//
// A call that does not return fails its own case, after some minutes in real time (-timeout must leave room for that), and the
// others go on. In virtual time that holds for what [testing/synctest] counts as blocked: not for a mutex, nor for I/O, nor for a loop that
// takes no time.
package locktest
