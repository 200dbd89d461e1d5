// Package dynamofake is DynamoDB inside one process, for tests: the operations that a
// lock client uses, with the checks, the errors and the expression language of the
// service. A differential test in module integration compares it with a server.
//
//	db := dynamofake.New()
//	client := db.Client() // has the methods of *dynamodb.Client
//	...
//	client.Cut() // the others still reach the service
//
// # What it does
//
//   - Reads: GetItem, Query and Scan, with filters and pages of 1 MB.
//   - Writes: UpdateItem and DeleteItem with conditions; TransactWriteItems of
//     Put and ConditionCheck; items of up to 400 KB.
//   - Tables: CreateTable and DescribeTable, with the states CREATING and ACTIVE;
//     UpdateTimeToLive and DescribeTimeToLive.
//   - Conditions of AND, OR, NOT, comparisons, BETWEEN, attribute_exists,
//     attribute_not_exists, attribute_type, begins_with and size; updates of SET
//     with if_not_exists, + and -, of REMOVE, and of ADD for numbers and sets.
//   - Consumed capacity, by the rules of the developer guide.
//
// Document paths have up to two parts: an entry of a map is as deep as they reach.
//
// A call that asks for anything else (another parameter or function, an element of a
// list, a name without a #placeholder, which might be a reserved word) fails with
// [ErrUnsupported], which is no error of the API. Each call is one attempt; options
// have no effect.
//
// Time to Live deletes items as soon as their time is over ([DB.ExpireDelay]); the
// service takes up to some days.
//
// # Time
//
// The package uses the process's clock and timers, keeps no goroutine, and blocks
// on channels only. So it works in virtual time, in a testing/synctest bubble.
//
// # Faults
//
// Each [Client] is one connection. [Client.Cut] partitions it, [Client.SetFault]
// injects faults into single requests:
//
//	fault                 the service           the call
//	--------------------  --------------------  ----------------------------------
//	Fail(err)             sees nothing          fails with err
//	Refuse()              sees nothing          fails with "connection refused"
//	Connect(d)            does it after d       gets its answer, unless its ctx ends
//	                                            sooner: then nothing is sent
//	Drop()                sees nothing          blocks until its ctx ends
//	LoseReply(nil)        does it               blocks until its ctx ends
//	LoseReply(err)        does it               fails with err
//	Delay(d)              does it after d       gets its answer, if it still waits
//	DelayReply(d)         does it               gets its answer after d
//	DeliverLate(d, nil)   does it after d       blocks until its ctx ends
//	DeliverLate(d, err)   does it after d       fails with err
//
// [Throttled], [Throttling], [ServerError], [Denied] and [Reset] make the errors.
package dynamofake
