package main

import (
	"bytes"
	"errors"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
	"github.com/holdfast-go/holdfast/memlock"
)

// The four acts end as the example says, on each engine that needs no server:
// without a fence a booking is lost, and a fence that is claimed after reading
// is not enough.
func TestActs(t *testing.T) {
	story := regexp.MustCompile(`(?s)^no fence:\n.*alice  goes on, and writes, without the lock\n.*the balance is 70: bob's 50 are gone\n` +
		`the token is compared:\n.*alice  goes on: refused: .*the balance is 150: bob's.*` +
		`the same, and alice comes between.*alice  goes on, and writes, without the lock\nbob    writes\n.*the balance is 150: alice's 30 are gone\n` +
		`the row is claimed, then read.*alice  goes on: refused: .*\nbob    writes\nalice  asks her lock: TTL expired\n +the balance is 150: bob's[^\n]*\n$`)
	for name, open := range engine.Local() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				if err := run(t.Context(), &out, open(), t.TempDir()); err != nil {
					t.Fatalf("%v after\n%s", err, out.String())
				}
				if !story.Match(out.Bytes()) {
					t.Errorf("not the story that was expected:\n%s", out.String())
				}
			})
		})
	}
}

// Holders that book 1 each, some of them stopped until the next holder has
// claimed the row, lose no booking: what is refused is not booked, what is not
// refused is. Each of them is stopped once before its write, so that some are
// refused.
func TestRace(t *testing.T) {
	const workers, turns = 4, 20
	a, err := create(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer a.db.Close()
	if err := a.open(t.Context(), key, 0); err != nil {
		t.Fatal(err)
	}
	locks := memlock.NewStore()
	var booked, refused atomic.Int64
	var all sync.WaitGroup
	for range workers {
		client, err := memlock.New(&memlock.Options{Store: locks})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(t.Context())
		all.Go(func() {
			for i := range turns {
				err := book(t, a, locks, client, i == 1)
				switch {
				case err == nil:
					booked.Add(1)
				case errors.Is(err, errStale):
					refused.Add(1)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	balance, err := a.balance(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if int64(balance) != booked.Load() {
		t.Errorf("the balance is %d after %d bookings that succeeded", balance, booked.Load())
	}
	if refused.Load() == 0 {
		t.Error("no late write was refused, so nothing was shown")
	}
	t.Logf("%d booked, %d refused", booked.Load(), refused.Load())
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
