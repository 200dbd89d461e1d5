package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
)

const schema = `CREATE TABLE account (
	id      TEXT    PRIMARY KEY,
	balance INTEGER NOT NULL,
	fence   INTEGER NOT NULL DEFAULT 0 -- the greatest token that has claimed the row
)`

// errStale is the answer to a former holder.
var errStale = errors.New("refused: a newer holder has claimed the row")

// accounts are rows protected by locks.
type accounts struct{ db *sql.DB }

// claim makes the row refuse all earlier holders. A holder claims before it reads,
// so that no late write can change what it has read.
func (a accounts) claim(ctx context.Context, id string, token holdfast.Token) error {
	return oneRow(a.db.ExecContext(ctx,
		`UPDATE account SET fence = ?1 WHERE id = ?2 AND fence <= ?1`, int64(token), id))
}

// set writes, unless a newer holder has claimed the row. One statement compares and
// writes, so nothing can come in between.
func (a accounts) set(ctx context.Context, id string, balance int, token holdfast.Token) error {
	return oneRow(a.db.ExecContext(ctx,
		`UPDATE account SET balance = ?1, fence = ?2 WHERE id = ?3 AND fence <= ?2`, balance, int64(token), id))
}

// oneRow returns errStale for a write that found no row to change.
func oneRow(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err != nil {
		return err
	}
	if n == 0 {
		return errStale
	}
	return nil
}

// setUnfenced writes without a check.
func (a accounts) setUnfenced(ctx context.Context, id string, balance int) error {
	_, err := a.db.ExecContext(ctx, `UPDATE account SET balance = ?1 WHERE id = ?2`, balance, id)
	return err
}

func (a accounts) balance(ctx context.Context, id string) (int, error) {
	var balance int
	if err := a.db.QueryRowContext(ctx, `SELECT balance FROM account WHERE id = ?1`, id).Scan(&balance); err != nil {
		return 0, fmt.Errorf("account %s: %w", id, err)
	}
	return balance, nil
}

// open makes an account with a balance and without a claim.
func (a accounts) open(ctx context.Context, id string, balance int) error {
	_, err := a.db.ExecContext(ctx, `INSERT INTO account (id, balance) VALUES (?1, ?2)
		ON CONFLICT (id) DO UPDATE SET balance = excluded.balance`, id, balance)
	return err
}
