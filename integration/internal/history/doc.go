// Package history is what the processes of a chaos run did, and the judgement of whether a lock may do so.
//
// Every process writes [Record] values, one JSON object a line, with stamps of the machine's monotonic clock, which all
// processes of one machine share ([Now]). The checks are in [Check]; each of them is tested with violations that are planted.
//
// # What a hold is
//
// A process that holds a lock takes a stamp, and then asks the lock whether it is live (Err). If it is, the process has held the
// lock at the stamp: whatever happened between the stamp and the answer, a stop of the process included, happened after the
// stamp. A hold is the time from the first such stamp after Acquire returned to the last one. Two holds of a key must not
// overlap.
//
// The moment when Done closes would be no measure: a stopped process closes it only when it runs again, and that is the
// moment that matters least, as it does nothing in between.
package history
