// Package fencing_test shows that no late write passes a fence, on real databases, an S3 server and HTTP servers, and that some pass
// without one. SQLite and the servers in this process run always; HOLDFAST_FENCING=servers adds PostgreSQL and MariaDB.
package fencing_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fencing"
	"github.com/holdfast-go/holdfast/memlock"
)

// rounds is how many writes a race has.
func rounds(fenced bool) int {
	switch {
	case !fenced:
		return 500
	case servers():
		return 10_000
	}
	return 1_000
}

// waiting is long enough for a claim to show that it waits.
const waiting = 300 * time.Millisecond

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A stage is a moment of a write at which its holder is stopped and loses the lock.
type stage int

const (
	never     stage = iota
	atFirst         // before the claim
	midway          // after the claim, and after reading
	atTheLast       // after writing, before the commit or the response
	stages
)

// A turn is one write under a lock.
type turn struct {
	race  *race
	token holdfast.Token
	stop  stage
	lose  func()
}

// at stops the holder if this is the stage. Then it goes on when a later holder has written, or after a millisecond or two if the
// fence keeps the later holder waiting.
func (u *turn) at(s stage) {
	if s != u.stop {
		return
	}
	u.lose()
	end := time.Now().Add(time.Duration(500+rand.IntN(1500)) * time.Microsecond)
	for time.Now().Before(end) && u.race.newest.Load() < uint64(u.token) {
		time.Sleep(20 * time.Microsecond)
	}
}

// A race has clients that write under one lock, and lose it in most turns.
type race struct {
	newest                    atomic.Uint64 // the greatest token with which a write has succeeded
	written, refused, unknown atomic.Int64
}

// run makes writes. The error of a write is nil, fencing.ErrStale, or another, such as from a server that is restarted: the outcome is
// unknown then.
func (r *race) run(t *testing.T, fenced bool, write func(ctx context.Context, u *turn) error) {
	t.Helper()
	const clients = 6
	n := rounds(fenced)
	store := memlock.NewStore()
	var all sync.WaitGroup
	for range clients {
		client, err := memlock.New(&memlock.Options{Store: store})
		must(t, err)
		t.Cleanup(func() { client.Close(context.Background()) })
		all.Go(func() {
			for range n / clients {
				lock, err := client.Acquire(t.Context(), "race")
				if err != nil {
					t.Error(err)
					return
				}
				u := &turn{race: r, token: lock.Token(), stop: stage(rand.IntN(int(stages))), lose: func() { store.Expire(client) }}
				switch err := write(t.Context(), u); {
				case err == nil:
					r.written.Add(1)
					for old := r.newest.Load(); old < uint64(u.token) && !r.newest.CompareAndSwap(old, uint64(u.token)); old = r.newest.Load() {
					}
				case errors.Is(err, fencing.ErrStale):
					r.refused.Add(1)
				default:
					if r.unknown.Add(1) == 1 {
						t.Logf("token %d, stage %d: %v", u.token, u.stop, err)
					}
					time.Sleep(10 * time.Millisecond)
				}
				_ = lock.Release(t.Context())
			}
		})
	}
	all.Wait()
	t.Logf("%d written, %d refused, %d with an unknown outcome", r.written.Load(), r.refused.Load(), r.unknown.Load())
	if fenced && int(r.unknown.Load()) > n/5 {
		t.Error("too many writes have an unknown outcome")
	}
}

// late counts the tokens that come after a greater one.
func late(history []holdfast.Token) (n int) {
	var greatest holdfast.Token
	for _, token := range history {
		if token < greatest {
			n++
		}
		greatest = max(greatest, token)
	}
	return n
}

// judge compares a history with the race. lost is how many writes the history has that are missing in the data. With a fence, no write
// is late or lost. Without one, some are.
func (r *race) judge(t *testing.T, fenced bool, history []holdfast.Token, lost int) {
	t.Helper()
	n := late(history)
	t.Logf("%d late, %d lost", n, lost)
	made := int64(len(history))
	switch {
	case !fenced && n == 0:
		t.Error("without a fence, no write was late: the test shows nothing")
	case fenced && (n > 0 || lost != 0):
		t.Errorf("%d late writes passed the fence, and %d writes are lost", n, lost)
	case fenced && r.refused.Load() == 0:
		t.Error("no late write was refused: the test shows nothing")
	case made < r.written.Load() || made > r.written.Load()+r.unknown.Load():
		t.Errorf("the history has %d writes, %d succeeded", made, r.written.Load())
	}
}
