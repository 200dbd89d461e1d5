package fencing_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fencing"
)

// within runs f in a transaction that is committed unless f fails.
func within(ctx context.Context, db *sql.DB, isolation sql.IsolationLevel, f func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: isolation})
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// A step is a claim with its expected result.
type step struct {
	resource string
	token    holdfast.Token
	shared   bool
	want     error
}

var steps = []step{
	{"a", 0, false, holdfast.ErrInvalid},
	{"a", 0, true, holdfast.ErrInvalid},
	{"a", math.MaxInt64 + 1, false, holdfast.ErrInvalid},
	{"", 1, false, holdfast.ErrInvalid},
	{strings.Repeat("a", holdfast.MaxKey+1), 1, false, holdfast.ErrInvalid},
	{"a\x00b", 1, false, holdfast.ErrInvalid},
	{"a", 33, false, nil},
	{"a", 33, false, nil}, // again
	{"a", 32, false, fencing.ErrStale},
	{"a", 34, false, nil},
	{"a", 33, false, fencing.ErrStale},
	{"A", 1, false, nil}, // other resources
	{"a ", 1, false, nil},
	{"ä", 1, false, nil},
	{strings.Repeat("ü", holdfast.MaxKey/2), 1, false, nil},
	{strings.Repeat("ü", holdfast.MaxKey/2-1) + "xx", 2, false, nil},
	{strings.Repeat("ü", holdfast.MaxKey/2), 1, false, nil},
	{"max", math.MaxInt64, false, nil},
	{"max", math.MaxInt64 - 1, false, fencing.ErrStale},
	{"max", math.MaxInt64, true, nil},
	// Readers in any order, each later than one writer and earlier than the next.
	{"r", 10, false, nil},
	{"r", 12, true, nil},
	{"r", 11, true, nil},
	{"r", 12, true, nil},
	{"r", 9, true, fencing.ErrStale},   // a reader before the writer
	{"r", 10, false, fencing.ErrStale}, // the writer, while readers read
	{"r", 13, false, nil},
	{"r", 12, true, fencing.ErrStale},
	{"q", 5, true, nil}, // a reader first
	{"q", 4, false, fencing.ErrStale},
	{"q", 4, true, nil},
}

// claim claims in a transaction of its own.
func (d *database) claim(ctx context.Context, db *sql.DB, resource string, token holdfast.Token, shared bool) error {
	return within(ctx, db, sql.LevelDefault, func(tx *sql.Tx) error {
		if shared {
			return d.ClaimShared(ctx, tx, resource, token)
		}
		return d.Claim(ctx, tx, resource, token)
	})
}

// Claims have the results of the rules.
func testClaims(t *testing.T, d *database) {
	db := d.open()
	for i, s := range steps {
		if err := d.claim(t.Context(), db, s.resource, s.token, s.shared); !errors.Is(err, s.want) || s.want == nil && err != nil {
			t.Errorf("step %d, %.10q, token %d, shared %t: %v, want %v", i, s.resource, s.token, s.shared, err, s.want)
		}
	}
	undone := errors.New("undone")
	for _, err := range []error{
		within(t.Context(), db, sql.LevelDefault, func(tx *sql.Tx) error {
			return errors.Join(d.Claim(t.Context(), tx, "a", 40), undone)
		}),
		d.claim(t.Context(), db, "a", 39, false),
	} {
		if err != nil && err.Error() != undone.Error() {
			t.Errorf("a claim that is undone, and a smaller one: %v", err)
		}
	}
	if err := (&database{}).claim(t.Context(), db, "a", 40, false); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("a zero Dialect: %v", err)
	}
}

// A claim waits while a transaction has one: with a new row, with an old one, among readers, and if no token rises.
func testWaits(t *testing.T, d *database) {
	db, other := d.open(), d.open()
	for _, resource := range []string{"waits", "waits", "readers", "readers"} {
		var ended atomic.Bool
		var second sync.WaitGroup
		err := within(t.Context(), db, sql.LevelDefault, func(tx *sql.Tx) error {
			claim := d.Claim
			if resource == "readers" {
				claim = d.ClaimShared
			}
			if err := claim(t.Context(), tx, resource, 7); err != nil {
				return err
			}
			second.Go(func() {
				err := within(t.Context(), other, sql.LevelDefault, func(tx *sql.Tx) error {
					err := d.ClaimShared(t.Context(), tx, resource, 7)
					if !ended.Load() {
						t.Errorf("%s: the second claim did not wait", resource)
					}
					return err
				})
				if err != nil {
					t.Errorf("%s: the second claim: %v", resource, err)
				}
			})
			time.Sleep(waiting)
			ended.Store(true)
			return nil
		})
		if second.Wait(); err != nil {
			t.Errorf("%s: the first claim: %v", resource, err)
		}
	}
}

// A transaction that has read before it claims fails if a later holder has claimed since, whatever its snapshot says.
func testNewest(t *testing.T, d *database) {
	db, other := d.open(), d.open()
	levels := []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}
	if d.restart == nil {
		levels = []sql.IsolationLevel{sql.LevelDefault} // SQLite has no other
	}
	for i, level := range levels {
		resource := fmt.Sprint("newest", i)
		must(t, d.claim(t.Context(), db, resource, 1, false))
		err := within(t.Context(), db, level, func(tx *sql.Tx) error {
			var n int
			if err := tx.QueryRow(`SELECT count(*) FROM history`).Scan(&n); err != nil {
				return err
			}
			if err := d.claim(t.Context(), other, resource, 3, false); err != nil {
				t.Error(err)
			}
			return d.Claim(t.Context(), tx, resource, 2)
		})
		if t.Logf("%v: %v", level, err); err == nil {
			t.Errorf("%v: a former holder's claim succeeds", level)
		}
	}
}

// A deadlock is reported as the driver's error, and one of both transactions goes on.
func testDeadlock(t *testing.T, d *database) {
	if d.restart == nil {
		t.Skip("SQLite has one writer")
	}
	db := d.open()
	var both, all sync.WaitGroup
	both.Add(2)
	errs := make([]error, 2)
	for i, resources := range [][]string{{"x", "y"}, {"y", "x"}} {
		all.Go(func() {
			errs[i] = within(t.Context(), db, sql.LevelDefault, func(tx *sql.Tx) error {
				if err := d.Claim(t.Context(), tx, resources[0], 1); err != nil {
					return err
				}
				both.Done()
				both.Wait()
				return d.Claim(t.Context(), tx, resources[1], 1)
			})
		})
	}
	all.Wait()
	err := errors.Join(errs...)
	if (errs[0] == nil) == (errs[1] == nil) || errors.Is(err, fencing.ErrStale) || !strings.Contains(strings.ToLower(err.Error()), "deadlock") {
		t.Errorf("want the driver's error about one deadlock: %v", errs)
	}
}

// write adds 1 to the balance and its token to the history, in one transaction.
func (d *database) write(ctx context.Context, db *sql.DB, u *turn, resource string, claim bool) error {
	u.at(atFirst)
	return within(ctx, db, sql.LevelDefault, func(tx *sql.Tx) error {
		if claim {
			if err := d.Claim(ctx, tx, resource, u.token); err != nil {
				return err
			}
		}
		var balance, number int
		if err := tx.QueryRowContext(ctx, d.bind.Replace(`SELECT balance FROM account WHERE id = ?1`), 1).Scan(&balance); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(number), 0) FROM history`).Scan(&number); err != nil {
			return err
		}
		u.at(midway)
		_, err := tx.ExecContext(ctx, d.bind.Replace(`INSERT INTO history (number, token) VALUES (?1, ?2)`), number+1, int64(u.token))
		if err == nil {
			_, err = tx.ExecContext(ctx, d.bind.Replace(`UPDATE account SET balance = ?1 WHERE id = ?2`), balance+1, 1)
		}
		u.at(atTheLast)
		return err
	})
}

// reset empties the data, and fence keeps its tokens.
func (d *database) reset(t testing.TB, db *sql.DB) {
	t.Helper()
	for _, statement := range []string{`DELETE FROM account`, `DELETE FROM history`, `INSERT INTO account VALUES (1, 0)`} {
		_, err := db.Exec(statement)
		must(t, err)
	}
}

// history returns the tokens of the writes in their order, and how many writes the balance lacks.
func (d *database) history(t testing.TB, db *sql.DB) (tokens []holdfast.Token, lost int) {
	t.Helper()
	rows, err := db.Query(`SELECT token FROM history ORDER BY number`)
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var token int64
		must(t, rows.Scan(&token))
		tokens = append(tokens, holdfast.Token(token))
	}
	var balance int
	must(t, errors.Join(rows.Err(), db.QueryRow(`SELECT balance FROM account`).Scan(&balance)))
	return tokens, len(tokens) - balance
}

// Holders that are stopped at any moment of a transaction write nothing late. They use two pools, as two replicas do, and the server
// is restarted meanwhile.
func testSQLRace(t *testing.T, d *database) {
	replicas := []*sql.DB{d.open(), d.open()}
	for _, fenced := range []bool{false, true} {
		d.reset(t, replicas[0])
		var crash sync.WaitGroup
		if d.restart != nil && fenced {
			crash.Go(func() {
				time.Sleep(time.Second)
				d.restart(t)
			})
		}
		var r race
		r.run(t, fenced, func(ctx context.Context, u *turn) error {
			return d.write(ctx, replicas[u.token%2], u, "race", fenced)
		})
		crash.Wait()
		history, lost := d.history(t, replicas[0])
		r.judge(t, fenced, history, lost)
	}
}
