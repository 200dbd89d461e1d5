// SQL shows fencing tokens for data in an SQL database, with package sqlfence. A holder is paused between its last check of the lock and
// its write, which arrives when another client has had the lock: without a fence, and with a claim in the transaction that writes.
//
//	go run ./examples/fencing/sql                                                     locks in memory
//	go run ./examples/fencing/sql -engine zookeeper -servers 127.0.0.1:2181           on ZooKeeper
//	go run ./examples/fencing/sql -engine dynamodb -endpoint http://127.0.0.1:8000    on DynamoDB; AWS without -endpoint
//
// The database is SQLite, in a temporary file.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
	"github.com/holdfast-go/holdfast/examples/internal/late"
	"github.com/holdfast-go/holdfast/fencing"
	"github.com/holdfast-go/holdfast/fencing/sqlfence"
)

const key = "examples/fencing/sql/account-7"

func main() {
	engine.Main(func(ctx context.Context, e *engine.Engine) error {
		return inTemp(func(dir string) error { return run(ctx, os.Stdout, e, dir) })
	})
}

func inTemp(f func(dir string) error) error {
	dir, err := os.MkdirTemp("", "holdfast-sql-")
	if err != nil {
		return err
	}
	return errors.Join(f(dir), os.RemoveAll(dir))
}

func run(ctx context.Context, out io.Writer, e *engine.Engine, dir string) error {
	a, err := create(ctx, dir)
	if err != nil {
		return err
	}
	defer a.db.Close()
	for _, act := range acts {
		fmt.Fprintf(out, "%s:\n", act.title)
		if err := a.open(ctx, key, 100); err != nil {
			return err
		}
		refused, err := late.Write(ctx, out, e, key, act.turn(a))
		if err != nil {
			return err
		}
		balance, err := a.balance(ctx, key)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "       the balance is %d: %s\n", balance, act.moral)
		if errors.Is(refused, fencing.ErrStale) != act.refused || balance != act.balance {
			return fmt.Errorf("the balance was to be %d", act.balance)
		}
	}
	return nil
}

// create makes a database with the tables.
func create(ctx context.Context, dir string) (accounts, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "accounts.db")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return accounts{}, err
	}
	for _, statement := range []string{schema, sqlfence.SQLite.Schema()} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return accounts{}, errors.Join(err, db.Close())
		}
	}
	return accounts{db}, nil
}

// acts are ways to book amounts under a lock, with the result of each when a write is late. The account has 100; alice books -30, bob
// books 50.
var acts = []struct {
	title   string
	turn    func(accounts) late.Turn
	refused bool
	balance int
	moral   string
}{
	{"no fence", unfenced, false, 70, "bob's 50 are gone"},
	{"a claim in each transaction", claimed, true, 150, "bob's 50 are there, and alice knows that her booking is not"},
}

func unfenced(a accounts) late.Turn {
	return func(ctx context.Context, c *engine.Client, _ *holdfast.Lock) (func(context.Context) error, error) {
		balance, err := a.balance(ctx, key)
		return func(ctx context.Context) error { return a.set(ctx, key, balance+amount(c)) }, err
	}
}

func claimed(a accounts) late.Turn {
	return func(_ context.Context, c *engine.Client, lock *holdfast.Lock) (func(context.Context) error, error) {
		return func(ctx context.Context) error { return a.book(ctx, key, amount(c), lock.Token()) }, nil
	}
}

// amount is what a client books.
func amount(c *engine.Client) int { return map[string]int{"alice": -30, "bob": 50}[c.Owner()] }
