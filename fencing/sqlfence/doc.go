// Package sqlfence refuses late writes to an SQL database. A table has a row for each resource, with the greatest token that has
// claimed it. A transaction that begins with a claim can commit only if no later holder has claimed the resource:
//
//	tx, err := db.BeginTx(ctx, nil)
//	if err != nil {
//		return err
//	}
//	defer tx.Rollback()
//	if err := sqlfence.PostgreSQL.Claim(ctx, tx, "orders", lock.Token()); err != nil {
//		return err // fencing.ErrStale: a later holder has claimed the resource
//	}
//	// read and write in tx
//	return tx.Commit()
//
// # The promise
//
// From a claim that returned nil to the end of its transaction, every other claim of the resource waits, because the claim locks the
// row. So transactions that claim one resource run one after the other, readers too. Once a transaction has committed, every claim
// with a smaller token fails, in all processes and after restarts.
//
// # Rules
//
//   - Each transaction that writes, or reads for a later write, begins with a claim. A transaction that reads before it claims may keep
//     a snapshot from before the claim (REPEATABLE READ, the default of MySQL) and overwrite a write that it has not seen.
//   - Several claims of one transaction come before its first read, in the order of their names: another order can deadlock.
//   - After an error of Commit the outcome is unknown. Repeat only what is harmless twice.
//   - All clients use one table: the same search_path on PostgreSQL, the same database on MySQL.
//   - On MySQL, DDL and LOCK TABLES end the transaction, and with it the claim.
//   - A claim counts when its transaction commits. A rollback, also to a savepoint before the claim, undoes it.
//   - Roll back after any error. A deadlock, a serialization failure or another error of the database is returned with the
//     driver's error inside, never as ErrStale. Repeat the transaction with the same token.
//   - A client that is stopped within its transaction keeps the row locked until the server ends the transaction. Bound that time:
//     idle_in_transaction_session_timeout on PostgreSQL, idle_transaction_timeout on MariaDB, wait_timeout on MySQL. Begin the
//     transaction with the context of the lock, which ends with the lock.
//   - All writers claim, on one primary server. A failover that loses commits, a restore, and the deletion of a row lose tokens.
//
// # Shared locks
//
// Readers (WithShared) hold a key together, and claim in any order of their tokens. So [Dialect.ClaimShared] compares a reader's token
// with those of writers only, and [Dialect.Claim] a writer's token with those of writers and readers. A reader that does not claim
// does no harm, but a late writer may write while it reads.
//
// # Another engine
//
// The tokens of another engine, table or ensemble may be smaller, so its holders would all be stale. Stop the programs, and claim each
// resource with the token math.MaxInt64, also one that has no row: all former holders are stale for good. The new programs claim under
// new names, such as "2/orders".
package sqlfence
