package maplock

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Store stands for a database: a map whose records clients change one request at a time. Leases end on its clock.
type Store struct {
	mu    sync.Mutex
	table table
}

// NewStore returns an empty store.
func NewStore() *Store { return &Store{table: make(table)} }

// A table has the records of all keys that were ever held.
type table map[string]*record

// A record has the latest grant of a key, also when that is over: the next token is greater.
type record struct {
	driver.Holder
	until     time.Time // the end of the grant
	asked     bool
	wanted    time.Time // until then, the client that had the grant leaves the key to the waiters of others
	reclaimed string    // the latest grant that a reclaim has ended
}

// info describes the grant of a record; nil is the record of a key that was never held.
func (r *record) info(key string, now time.Time) driver.Info {
	if r == nil || !now.Before(r.until) {
		return driver.Info{Key: key}
	}
	info := driver.Info{Key: key, Held: true, Holder: r.Holder}
	info.Data = bytes.Clone(r.Data)
	return info
}

// take gives a key to a client, unless another grant is in the way: it returns one of the two.
func (t table) take(req *driver.Request, client string, lease, poll time.Duration, now time.Time) (driver.Holder, driver.Info) {
	r := t[req.Key]
	if r == nil {
		r = &record{}
		t[req.Key] = r
	}
	held, own := r.info(req.Key, now), strings.HasPrefix(r.Grant, client)
	switch {
	case held.Held && req.Reclaim && r.Owner == req.Owner && !own:
		r.reclaimed = r.Grant
	case held.Held:
		if req.Wait && !own {
			r.wanted = now.Add(2 * poll)
		}
		return driver.Holder{}, held
	case req.Wait && own && now.Before(r.wanted):
		return driver.Holder{}, driver.Info{Key: req.Key, Held: true}
	}
	r.Holder = driver.Holder{Owner: req.Owner, Token: r.Token + 1, Since: now, Data: bytes.Clone(req.Data), Lease: lease}
	r.Grant = fmt.Sprint(client, r.Token)
	r.until, r.asked = now.Add(lease), false
	return r.Holder, driver.Info{}
}

// held describes the grants of the keys that begin with prefix.
func (t table) held(prefix string, now time.Time) (found []driver.Info) {
	for key, r := range t {
		if info := r.info(key, now); info.Held && strings.HasPrefix(key, prefix) {
			found = append(found, info)
		}
	}
	return found
}

// A conn is a client's connection to the store.
type conn struct {
	store *Store

	mu     sync.Mutex
	healed chan struct{} // nil while the connection is not cut
}

// A request reads or changes records in one step.
type request func(t table, now time.Time)

// do sends a request. While the connection is cut, it waits for ctx or heal.
func (c *conn) do(ctx context.Context, f request) error {
	for {
		c.mu.Lock()
		healed := c.healed
		c.mu.Unlock()
		if healed == nil && ctx.Err() == nil {
			c.store.mu.Lock()
			defer c.store.mu.Unlock()
			f(c.store.table, time.Now())
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: no answer: %w", driver.ErrDisconnected, ctx.Err())
		case <-healed:
		}
	}
}

func (c *conn) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.healed == nil {
		c.healed = make(chan struct{})
	}
}

func (c *conn) heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.healed != nil {
		close(c.healed)
		c.healed = nil
	}
}
