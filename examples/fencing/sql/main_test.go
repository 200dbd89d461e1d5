package main

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
	"github.com/holdfast-go/holdfast/examples/internal/story"
	"github.com/holdfast-go/holdfast/memlock"
)

// The four acts end as the example says, on each engine that needs no server:
// without a fence a booking is lost, and a fence that is claimed after reading
// is not enough.
func TestActs(t *testing.T) {
	story.InMemory(t, func(t *testing.T, e *engine.Engine) {
		story.Tells(t, e, `^no fence:\n.*alice  goes on, and writes, without the lock\n.*the balance is 70: bob's 50 are gone\n`+
			`the token is compared:\n.*alice  goes on: refused: .*the balance is 150: bob's.*`+
			`the same, and alice comes between.*alice  goes on, and writes, without the lock\nbob    writes\n.*the balance is 150: alice's 30 are gone\n`+
			`the row is claimed, then read.*alice  goes on: refused: .*\nbob    writes\nalice  asks her lock: TTL expired\n +the balance is 150: bob's[^\n]*\n$`, func(ctx context.Context, out io.Writer, e *engine.Engine) error {
			return run(ctx, out, e, t.TempDir())
		})
	})
}

// Holders that book 1 each, some of them stopped until the next holder has
// claimed the row, lose no booking: exactly the bookings that are not refused are
// made. Each of them is stopped once before its write, so that some are
// refused.
func TestRace(t *testing.T) {
	a, err := create(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer a.db.Close()
	if err := a.open(t.Context(), key, 0); err != nil {
		t.Fatal(err)
	}
	booked, refused := story.Race(t, 20, errStale, func(locks *memlock.Store, client *memlock.Client, turn int) error {
		return book(t, a, locks, client, turn == 1)
	})
	balance, err := a.balance(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if balance != booked {
		t.Errorf("the balance is %d after %d bookings that succeeded", balance, booked)
	}
	if refused == 0 {
		t.Error("no late write was refused, so nothing was shown")
	}
}

// book books 1 under the lock. One that is stopped loses its lock before it
// writes, and waits for its successor to claim the row.
func book(t *testing.T, a accounts, locks *memlock.Store, client *memlock.Client, stopped bool) error {
	ctx := t.Context()
	lock, err := client.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	if err := a.claim(ctx, key, lock.Token()); err != nil {
		return err
	}
	balance, err := a.balance(ctx, key)
	if err != nil {
		return err
	}
	if stopped {
		locks.Expire(client)
		if err := claimedSince(a, lock.Token()); err != nil {
			return err
		}
	}
	return a.set(ctx, key, balance+1, lock.Token())
}

// claimedSince waits until a newer holder has claimed the row.
func claimedSince(a accounts, token holdfast.Token) error {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		var fence int64
		if err := a.db.QueryRow(`SELECT fence FROM account WHERE id = ?1`, key).Scan(&fence); err != nil {
			return err
		}
		if fence > int64(token) {
			return nil
		}
	}
	return errors.New("nobody has claimed the row")
}
