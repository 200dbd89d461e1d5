package main

import (
	"context"
	"database/sql"

	"github.com/holdfast-go/holdfast"
)

const settingsSchema = `CREATE TABLE settings (
	id    TEXT    PRIMARY KEY,
	value TEXT    NOT NULL,
	fence INTEGER NOT NULL DEFAULT 0, -- the greatest token of a writer
	seen  INTEGER NOT NULL DEFAULT 0  -- the greatest token of anybody
)`

// settings are rows that readers share, by locks with WithShared.
type settings struct{ db *sql.DB }

// claim is for readers, before they read: it refuses one that is later than a writer, and makes
// the row refuse writers that are later than the reader. Readers do not refuse each other.
func (s settings) claim(ctx context.Context, id string, token holdfast.Token) error {
	return oneRow(s.db.ExecContext(ctx,
		`UPDATE settings SET seen = CASE WHEN seen < ?1 THEN ?1 ELSE seen END WHERE id = ?2 AND fence <= ?1`, int64(token), id))
}

// set is for writers: it refuses one that is later than another writer, or than a reader.
func (s settings) set(ctx context.Context, id, value string, token holdfast.Token) error {
	return oneRow(s.db.ExecContext(ctx,
		`UPDATE settings SET value = ?1, fence = ?2, seen = ?2 WHERE id = ?3 AND seen <= ?2`, value, int64(token), id))
}
