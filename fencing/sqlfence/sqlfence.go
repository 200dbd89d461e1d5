package sqlfence

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/fencing"
)

// A Dialect is a kind of database: its statements about the table of claims.
type Dialect struct{ create, claim, read string }

// The table. Each claim changes its row, so that every database sees two claims at a time as a conflict, even if no token rises.
const schema = `CREATE TABLE IF NOT EXISTS holdfast_fence (
	resource %s NOT NULL PRIMARY KEY,
	writer   BIGINT NOT NULL, -- the greatest token of an exclusive lock
	latest   BIGINT NOT NULL, -- the greatest token of any lock
	claims   BIGINT NOT NULL  -- the number of claims
)`

var (
	PostgreSQL = Dialect{
		create: fmt.Sprintf(schema, `TEXT COLLATE "C"`),
		claim: `INSERT INTO holdfast_fence AS f (resource, writer, latest, claims) VALUES ($1, $2, $3, 1)
			ON CONFLICT (resource) DO UPDATE SET writer = GREATEST(f.writer, excluded.writer),
				latest = GREATEST(f.latest, excluded.latest), claims = f.claims + 1
			RETURNING writer, latest`,
	}

	// MySQL is for MariaDB, too. The resource is compared as bytes: text would ignore case, accents and spaces at the end. The number of
	// affected rows depends on settings of the connection, so the row is read again; FOR UPDATE reads the newest version, even if the
	// transaction has an older snapshot.
	MySQL = Dialect{
		create: fmt.Sprintf(schema, `VARBINARY(512)`) + ` ENGINE = InnoDB`,
		claim: `INSERT INTO holdfast_fence (resource, writer, latest, claims) VALUES (?, ?, ?, 1)
			ON DUPLICATE KEY UPDATE writer = GREATEST(writer, ?), latest = GREATEST(latest, ?), claims = claims + 1`,
		read: `SELECT writer, latest FROM holdfast_fence WHERE resource = ? FOR UPDATE`,
	}

	// SQLite is for version 3.35 or newer.
	SQLite = Dialect{
		create: fmt.Sprintf(schema, `TEXT`),
		claim: `INSERT INTO holdfast_fence AS f (resource, writer, latest, claims) VALUES (?, ?, ?, 1)
			ON CONFLICT (resource) DO UPDATE SET writer = max(f.writer, excluded.writer),
				latest = max(f.latest, excluded.latest), claims = f.claims + 1
			RETURNING writer, latest`,
	}
)

// Schema returns the statement that creates the table, holdfast_fence, if there is none. A row has the resource, the greatest token of
// an exclusive lock (writer), the greatest token of any lock (latest), and the number of claims.
func (d Dialect) Schema() string { return d.create }

// Claim claims a resource for the holder of an exclusive lock, as the first statement of tx. It fails with [fencing.ErrStale] if a
// holder with a greater token has claimed the resource. While another transaction has a claim, it waits until ctx ends, or as long as
// the database allows. The resource is the key of the lock, or one of several resources that the lock protects.
func (d Dialect) Claim(ctx context.Context, tx *sql.Tx, resource string, token holdfast.Token) error {
	_, latest, err := d.raise(ctx, tx, resource, token, token)
	if err == nil && latest > token {
		return fencing.Stale(resource, token, latest)
	}
	return err
}

// ClaimShared is [Dialect.Claim] for a holder of a shared lock (WithShared). It fails with [fencing.ErrStale] if a holder of an
// exclusive lock with a greater token has claimed the resource.
func (d Dialect) ClaimShared(ctx context.Context, tx *sql.Tx, resource string, token holdfast.Token) error {
	writer, _, err := d.raise(ctx, tx, resource, 0, token)
	if err == nil && writer > token {
		return fencing.Stale(resource, token, writer)
	}
	return err
}

// raise raises both maxima of a row to these tokens, locks the row until tx ends, and returns the maxima.
func (d Dialect) raise(
	ctx context.Context, tx *sql.Tx, resource string, asWriter, token holdfast.Token,
) (writer, latest holdfast.Token, err error) {
	if err := fencing.Check(resource, token); err != nil {
		return 0, 0, err
	}
	args := []any{resource, int64(asWriter), int64(token)}
	var row *sql.Row
	switch {
	case d.claim == "":
		return 0, 0, driver.Invalid("Dialect", "it is zero")
	case d.read == "":
		row = tx.QueryRowContext(ctx, d.claim, args...)
	default:
		if _, err = tx.ExecContext(ctx, d.claim, append(args, args[1:]...)...); err == nil {
			row = tx.QueryRowContext(ctx, d.read, resource)
		}
	}
	if err == nil {
		err = row.Scan(&writer, &latest)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("sqlfence: claim %q: %w", resource, err)
	}
	return writer, latest, nil
}
