package dynamolock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// Clients want keys that never expire, through faults of all kinds; requests arrive up to ten minutes late. No two hold a key at a time,
// tokens rise, everybody gets each key in the end, and nothing is left. HOLDFAST_SEEDS is how many times, in each mode; the seed fixes what they do, but
// not the delays that the clients choose.
func TestRandomClosed(t *testing.T) {
	seeds := 20
	if n, err := strconv.Atoi(os.Getenv("HOLDFAST_SEEDS")); err == nil {
		seeds = n
	}
	for seed := range seeds {
		for _, mode := range closedModes {
			t.Run(fmt.Sprintf("%d/%v", seed, mode), func(t *testing.T) {
				alone(t, dynamolock.Options{Mode: mode}, func(t *testing.T, h *harness) {
					c := &immortals{
						mob:  &mob{harness: h, random: rand.New(rand.NewPCG(uint64(seed), 7))},
						has:  make(map[string]*holdfast.Lock),
						last: make(map[string]holdfast.Token),
					}
					c.run(t)
				})
			})
		}
	}
}

// immortals are a mob whose locks do not expire.
type immortals struct {
	*mob
	odds int           // of a fault
	late time.Duration // by which requests arrive at most

	has  map[string]*holdfast.Lock
	last map[string]holdfast.Token
}

func (c *immortals) run(t *testing.T) {
	if c.roll(2) == 0 {
		c.db.Lag = c.upTo(2 * time.Second)
	}
	c.late = []time.Duration{5 * time.Second, time.Minute, 10 * time.Minute}[c.roll(3)]
	c.odds = 12 + c.roll(40)
	keys := []string{"k1", "k2"}[:1+c.roll(2)]
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(strings.Join(c.trace, "\n"))
		}
	})
	var users sync.WaitGroup
	var clients []*client
	for n := range 2 + c.roll(3) {
		user := c.client(t)
		clients = append(clients, user)
		user.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault { return c.fault(n, op) })
		for side := range 1 + c.roll(3) {
			owner := fmt.Sprint("client ", n, " ", side)
			users.Go(func() {
				for range 10 {
					c.use(t, user, keys[c.roll(len(keys))], owner)
				}
			})
		}
	}
	users.Wait()
	c.mu.Lock()
	c.calm = true
	c.mu.Unlock()
	for _, user := range clients {
		for _, key := range keys {
			users.Go(func() { // what is late may take the key at times, and is given back within a minute or so
				lock, err := user.Acquire(within(t, 4*time.Minute), key)
				if err != nil {
					t.Errorf("in the end: %v", err)
					return
				}
				c.granted(t, lock)
				c.release(t, lock, time.Minute)
			})
		}
	}
	users.Wait()
	time.Sleep(20 * time.Minute)
	for _, key := range keys {
		c.isFree(t, key)
	}
	for _, user := range clients {
		user.close(t)
	}
}

func (c *immortals) fault(client int, op dynamofake.Op) dynamofake.Fault {
	c.mu.Lock()
	calm := c.calm
	c.mu.Unlock()
	if calm {
		return dynamofake.Fault{}
	}
	which := c.roll(c.odds)
	if p := purposeOf(op); p != "" {
		c.notef("client %d sends: %s %s, fault %d", client, p, keyOf(op), which)
	}
	switch which {
	case 0:
		return dynamofake.LoseReply(dynamofake.Reset())
	case 1:
		return dynamofake.LoseReply(nil)
	case 2, 3:
		return dynamofake.DeliverLate(c.upTo(c.late), dynamofake.Reset())
	case 4:
		return dynamofake.DeliverLate(c.upTo(3*time.Second), dynamofake.Reset())
	case 5:
		return dynamofake.Delay(c.upTo(5 * time.Second))
	case 6:
		return dynamofake.DelayReply(c.upTo(5 * time.Second))
	case 7:
		return dynamofake.Fail(dynamofake.Throttled())
	case 8:
		return dynamofake.Fail(dynamofake.TransactionConflict())
	case 9:
		return dynamofake.Refuse()
	}
	return dynamofake.Fault{}
}

// use is one call for a key, and what its lock is used for.
func (c *immortals) use(t *testing.T, user *client, key, owner string) {
	most := []time.Duration{10 * time.Millisecond, time.Second, time.Minute, 3 * time.Minute}[c.roll(4)]
	ctx, cancel := context.WithTimeout(t.Context(), c.upTo(most))
	defer cancel()
	opts := []holdfast.Option{holdfast.WithOwner(owner)}
	acquire := user.Acquire
	switch c.roll(4) {
	case 0:
		acquire = user.TryAcquire
	case 1:
		pause := time.Millisecond + c.upTo(10*time.Second)
		opts = append(opts, holdfast.WithRetry(holdfast.Retry{Initial: pause, Max: pause, Attempts: c.roll(5)}))
	case 2:
		opts = append(opts, holdfast.WithWait(time.Millisecond+c.upTo(20*time.Second)))
	}
	lock, err := acquire(ctx, key, opts...)
	if err != nil {
		c.notef("%s does not get %s: %v", owner, key, err)
		if errors.Is(err, dynamolock.ErrItem) {
			t.Error(err)
		}
		time.Sleep(c.upTo(5 * time.Second))
		return
	}
	c.granted(t, lock)
	if c.roll(6) == 0 {
		_ = lock.SetData(within(t, 3*time.Second), []byte("x"))
	}
	time.Sleep(c.upTo([]time.Duration{2 * time.Millisecond, time.Second, 25 * time.Second}[c.roll(3)]))
	c.release(t, lock, []time.Duration{time.Millisecond, 4 * time.Second, time.Minute}[c.roll(3)])
}

func (c *immortals) granted(t *testing.T, lock *holdfast.Lock) {
	c.notef("granted to %s: %s, %d", lock.Owner(), lock.Key(), lock.Token())
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.has[lock.Key()]; other != nil {
		t.Errorf("%s and %s have %s at a time", other.Owner(), lock.Owner(), lock.Key())
	}
	if last := c.last[lock.Key()]; lock.Token() <= last && c.options.Mode == dynamolock.FailClosedFenced {
		t.Errorf("token %d after %d", lock.Token(), last)
	}
	c.has[lock.Key()], c.last[lock.Key()] = lock, lock.Token()
}

// release gives a lock back, which nobody has taken away.
func (c *immortals) release(t *testing.T, lock *holdfast.Lock, most time.Duration) {
	lost := lock.Err()
	c.mu.Lock()
	delete(c.has, lock.Key())
	c.mu.Unlock()
	err := lock.Release(within(t, most))
	c.notef("%s releases %s, %d: %v, %v", lock.Owner(), lock.Key(), lock.Token(), lost, err)
	if lost != nil || errors.Is(err, holdfast.ErrLost) {
		t.Errorf("%s has lost %s: %v, %v", lock.Owner(), lock.Key(), lost, err)
	}
}
