package main

import (
	"context"
	"database/sql"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fencing/sqlfence"
)

const schema = `CREATE TABLE account (id TEXT PRIMARY KEY, balance INTEGER NOT NULL)`

// accounts are rows protected by locks.
type accounts struct{ db *sql.DB }

// book adds an amount, unless a later holder of the lock has claimed the account.
func (a accounts) book(ctx context.Context, id string, amount int, token holdfast.Token) error {
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after the commit
	if err := sqlfence.SQLite.Claim(ctx, tx, id, token); err != nil {
		return err // fencing.ErrStale: a later holder has claimed the account
	}
	var balance int
	if err := tx.QueryRowContext(ctx, `SELECT balance FROM account WHERE id = ?`, id).Scan(&balance); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE account SET balance = ? WHERE id = ?`, balance+amount, id); err != nil {
		return err
	}
	return tx.Commit()
}

// set writes without a claim.
func (a accounts) set(ctx context.Context, id string, balance int) error {
	_, err := a.db.ExecContext(ctx, `UPDATE account SET balance = ? WHERE id = ?`, balance, id)
	return err
}

func (a accounts) balance(ctx context.Context, id string) (balance int, err error) {
	err = a.db.QueryRowContext(ctx, `SELECT balance FROM account WHERE id = ?`, id).Scan(&balance)
	return balance, err
}

// open makes an account with a balance.
func (a accounts) open(ctx context.Context, id string, balance int) error {
	_, err := a.db.ExecContext(ctx, `INSERT OR REPLACE INTO account (id, balance) VALUES (?, ?)`, id, balance)
	return err
}
