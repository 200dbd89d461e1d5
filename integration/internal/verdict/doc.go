// Package verdict gives a test a third verdict beside pass and fail: inconclusive.
//
// A machine that is busy may let every process stand still for seconds at any moment. Locks end then that a test wanted to
// keep, waits take longer than a test allows for, and what a test wanted to provoke does not happen. That proves nothing about
// the library, so such a test is run again by itself, at most [Tries] times in all.
//
//   - [Inconclusive] ends a test whose experiment did not come about, whatever the reason.
//   - [Fatalf] ends a test that waited in vain, or lost a lock that it meant to keep: inconclusive if the machine has stood still
//     during the test, and a failure if it has not.
//   - Everything else stays a failure, however busy the machine was: two holders, a token that falls, something left behind, a
//     goroutine that does not end, a data race. Those guarantees are for machines that stand still. Report them with t.Error.
//
// A verdict about safety comes from recorded times, never from when a goroutine happened to run.
//
// [Main] runs a binary's tests, and again those that were inconclusive. To go test an inconclusive try looks like a skipped
// test; the last try cannot be inconclusive.
package verdict
