package sqlfence

import (
	"context"
	"database/sql"
	"errors"

	"github.com/holdfast-go/holdfast"
)

// A Store is an httpfence.Store in a database, for all processes that use the same table.
type Store struct {
	dialect Dialect
	db      *sql.DB
}

// Store returns a store with its claims in db. A hold keeps a connection of db, so handlers need a pool of their own, and do not claim
// the same resource there. On SQLite a hold also excludes all other writers of the file: use a separate file.
func (d Dialect) Store(db *sql.DB) Store { return Store{d, db} }

// Hold claims the resource, and keeps all other claims of it waiting until release is called. The token is remembered even if
// the process dies before that. The hold ends early if the server drops the connection.
func (s Store) Hold(ctx context.Context, resource string, token holdfast.Token) (release func(), err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	// The first claim is for good, the second for as long as the hold.
	tx, err := s.begin(ctx, conn, resource, token)
	if err == nil {
		err = tx.Commit()
	}
	if err == nil {
		tx, err = s.begin(ctx, conn, resource, token)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return func() {
		_ = tx.Rollback() // it changes only the number of claims
		_ = conn.Close()
	}, nil
}

// begin begins a transaction with a claim. The end of ctx ends the wait for it, not the transaction.
func (s Store) begin(ctx context.Context, conn *sql.Conn, resource string, token holdfast.Token) (*sql.Tx, error) {
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return nil, err
	}
	if err := s.dialect.Claim(ctx, tx, resource, token); err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx, nil
}
