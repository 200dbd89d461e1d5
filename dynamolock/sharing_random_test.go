package dynamolock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// A mob is what several clients do with one key.
type mob struct {
	*harness
	limit int // of permits; 0 for readers and writers

	mu         sync.Mutex
	random     *rand.Rand
	grants     []*holdfast.Lock
	alone, any holdfast.Token // the greatest of a writer, and of anybody
	trace      []string
	calm       bool // no more faults
}

// reclaimer is the owner of those who reclaim each other's grants. They only disturb: the reply to a grant may come
// when another has reclaimed it, and neither its token nor its life counts then.
const reclaimer = "reclaimer"

func (c *mob) run(t *testing.T) {
	if c.roll(2) == 0 {
		c.db.Lag = c.upTo(2 * time.Second)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(strings.Join(c.trace, "\n"))
		}
	})
	var users sync.WaitGroup
	var clients []*client
	for n := range 5 {
		user := c.client(t, func(o *dynamolock.Options) {
			if c.roll(3) == 0 {
				o.Lease = 5*time.Second + c.upTo(time.Minute)
			}
		})
		clients = append(clients, user)
		user.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault { return c.fault(n, op) })
		for side := range 2 {
			owner := fmt.Sprint("client ", n, " ", side)
			users.Go(func() {
				for range 12 {
					c.use(t, user, owner)
				}
			})
		}
	}
	users.Wait()
	c.mu.Lock()
	c.calm = true
	c.mu.Unlock()
	for _, user := range clients {
		_ = user.Close(t.Context()) // a request that was under way during a cut has got no answer
	}
	last := c.client(t)
	for range max(c.limit, 1) {
		if _, err := last.Acquire(within(t, 5*time.Minute), "k", c.mode(0)...); err != nil {
			t.Errorf("in the end: %v", err)
		}
	}
}

func (c *mob) roll(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

func (c *mob) upTo(d time.Duration) time.Duration {
	return time.Duration(c.roll(int(d/time.Millisecond))) * time.Millisecond
}

// mode returns the options of a grant; which is 1 for a reader.
func (c *mob) mode(which int) []holdfast.Option {
	switch {
	case c.limit > 0:
		return []holdfast.Option{holdfast.WithLimit(c.limit)}
	case which == 1:
		return []holdfast.Option{shared}
	}
	return nil
}

func (c *mob) fault(client int, op dynamofake.Op) dynamofake.Fault {
	c.mu.Lock()
	calm := c.calm
	c.mu.Unlock()
	if calm {
		return dynamofake.Fault{}
	}
	which := c.roll(30)
	if p := purposeOf(op); p != "" {
		c.notef("client %d sends: %s, fault %d", client, p, which)
	}
	switch which {
	case 0:
		return dynamofake.LoseReply(dynamofake.Reset())
	case 1:
		return dynamofake.LoseReply(nil)
	case 2:
		return dynamofake.DeliverLate(c.upTo(time.Minute), dynamofake.Reset())
	case 3:
		return dynamofake.Delay(c.upTo(5 * time.Second))
	case 4:
		return dynamofake.DelayReply(c.upTo(5 * time.Second))
	case 5:
		return dynamofake.Fail(dynamofake.Throttled())
	}
	return dynamofake.Fault{}
}

func (c *mob) notef(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trace = append(c.trace, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

// use is one grant, from the request to the release.
func (c *mob) use(t *testing.T, user *client, owner string) {
	opts := c.mode(c.roll(2))
	if c.roll(4) == 0 {
		owner = reclaimer
		opts = append(opts, holdfast.WithReclaim())
	}
	ctx, cancel := context.WithTimeout(t.Context(), c.upTo(time.Minute))
	defer cancel()
	acquire := user.Acquire
	if c.roll(3) == 0 {
		acquire = user.TryAcquire
	}
	lock, err := acquire(ctx, "k", append(opts, holdfast.WithOwner(owner))...)
	if err != nil {
		if errors.Is(err, dynamolock.ErrItem) {
			t.Error(err)
		}
		time.Sleep(c.upTo(5 * time.Second))
		return
	}
	c.granted(t, lock)
	switch c.roll(8) {
	case 0:
		_ = lock.SetData(within(t, 3*time.Second), []byte("x"))
	case 1:
		user.conn.Cut()
		time.Sleep(c.upTo(50 * time.Second))
		user.conn.Heal()
	case 2:
		c.disturb(t, user)
	}
	time.Sleep(c.upTo(25 * time.Second))
	c.notef("%s releases %d: %v", owner, lock.Token(), lock.Err())
	_ = lock.Release(within(t, c.upTo(4*time.Second)))
}

// disturb breaks some of the grants, and asks for the others.
func (c *mob) disturb(t *testing.T, user *client) {
	info, err := user.Inspect(within(t, 5*time.Second), "k")
	if err != nil {
		return
	}
	for one := range info.Each() {
		end := user.Ask
		if c.roll(2) == 0 {
			end = user.Break
			c.notef("somebody breaks %d", one.Token)
		}
		_ = end(within(t, 5*time.Second), one)
	}
}

// granted compares a grant with those before it.
func (c *mob) granted(t *testing.T, lock *holdfast.Lock) {
	c.notef("granted to %s: %d, shared %t, until %s", lock.Owner(), lock.Token(), lock.Shared(), lock.Deadline().Format("04:05.000"))
	if lock.Err() != nil || lock.Owner() == reclaimer {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	live := 0
	for _, other := range c.grants {
		if other.Err() != nil {
			continue
		}
		if live++; !other.Shared() || !lock.Shared() {
			t.Errorf("%d of %s and %d of %s at a time", other.Token(), other.Owner(), lock.Token(), lock.Owner())
		}
	}
	if c.limit > 0 && live >= c.limit {
		t.Errorf("%d permits of %d", live+1, c.limit)
	}
	token := lock.Token()
	if !lock.Shared() && token <= c.any || token <= c.alone {
		t.Errorf("token %d of %s after %d, and %d of a writer", token, lock.Owner(), c.any, c.alone)
	}
	if !lock.Shared() {
		c.alone = max(c.alone, token)
	}
	c.any = max(c.any, token)
	c.grants = append(c.grants, lock)
}
