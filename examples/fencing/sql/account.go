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
	fence   INTEGER NOT NULL DEFAULT 0 -- the greatest token of all holders that have claimed the row
)`

// errStale is what the row says to a holder of the past.
var errStale = errors.New("refused: a newer holder has claimed the row")

// accounts are rows that locks protect.
type accounts struct{ db *sql.DB }

// claim has the row refuse whoever held the lock before. It comes before
// anything that the holder reads: what a late write could still change after
// that would be news to the holder.
func (a accounts) claim(ctx context.Context, id string, token holdfast.Token) error {
	return oneRow(a.db.ExecContext(ctx,
		`UPDATE account SET fence = ?1 WHERE id = ?2 AND fence <= ?1`, int64(token), id))
}

// set writes, unless a newer holder has claimed the row. Comparison and write are
// one statement, so nothing comes between them.
func (a accounts) set(ctx context.Context, id string, balance int, token holdfast.Token) error {
	return oneRow(a.db.ExecContext(ctx,
		`UPDATE account SET balance = ?1, fence = ?2 WHERE id = ?3 AND fence <= ?2`, balance, int64(token), id))
}

// oneRow tells a write that found its row from one that was refused.
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

// setUnfenced writes, whoever asks.
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

// open makes an account with a balance, claimed by nobody.
func (a accounts) open(ctx context.Context, id string, balance int) error {
	_, err := a.db.ExecContext(ctx, `INSERT INTO account (id, balance) VALUES (?1, ?2)
		ON CONFLICT (id) DO UPDATE SET balance = excluded.balance`, id, balance)
	return err
}
