package memlock

import (
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// A Store has the keys for which the clients of one process compete. It takes the place of the server, so tests inject faults here:
// [Store.Cut], [Store.Heal] and [Store.Expire]. A testing/synctest bubble needs a store that was made inside it.
type Store struct {
	mu     strict.Mutex[strict.Store]
	queues map[string][]*contender               // the first of each hold the key; none is empty
	token  driver.Token                          // of the newest grant; one counter serves all keys
	news   map[string]map[chan struct{}]struct{} // of the observers of a key
}

// NewStore returns a store in which nothing is held.
func NewStore() *Store {
	return &Store{queues: make(map[string][]*contender), news: make(map[string]map[chan struct{}]struct{})}
}

// A contender is one request in the queue for a key. The store's mu guards all fields below session.
type contender struct {
	key     string
	owner   string
	data    []byte
	mode    driver.Mode
	lose    func(error)
	onAsked func()
	news    chan struct{} // closed when the client is told that the wait is over
	session *session

	queued   time.Time
	granted  time.Time // zero while it waits
	token    driver.Token
	told     bool  // news is closed, or about to be
	returned bool  // the grant was, to the client
	asked    bool  // another client asks for the grant
	gone     error // why it left the queue
}

// grant is the name of the contender as a grant: see driver.Info.
func (c *contender) grant() string { return strconv.FormatUint(uint64(c.token), 10) }

// mayHold reports whether a request holds the key behind the contenders ahead: all share with it and are fewer than its limit.
func mayHold(mode driver.Mode, ahead []*contender) bool {
	return (mode.Limit == 0 || len(ahead) < mode.Limit) &&
		!slices.ContainsFunc(ahead, func(c *contender) bool { return !mode.SharesWith(c.mode) })
}

func (s *Store) grantLocked(c *contender) {
	s.token++
	c.token = s.token
	c.granted = time.Now()
	s.changedLocked(c.key)
}

// removeLocked takes a contender out of its queue, if it is still there, and grants the key to the waiters that may hold it now.
func (s *Store) removeLocked(c *contender, cause error) {
	if c.gone != nil {
		return
	}
	c.gone = cause
	delete(c.session.contenders, c) // its timer stops by itself when none is left
	queue := s.queues[c.key]
	i := slices.Index(queue, c)
	queue = slices.Delete(queue, i, i+1)
	if c.token != 0 {
		s.changedLocked(c.key)
	}
	if s.queues[c.key] = queue; len(queue) == 0 {
		delete(s.queues, c.key)
	}
	for n := holders(queue); n < len(queue) && mayHold(queue[n].mode, queue[:n]); n++ {
		s.grantLocked(queue[n])
		queue[n].tellLocked()
	}
}

// holders is how many of a queue hold the key.
func holders(queue []*contender) int {
	n := slices.IndexFunc(queue, func(c *contender) bool { return c.token == 0 })
	if n < 0 {
		return len(queue)
	}
	return n
}

// granteeLocked returns the contender with the grant that info describes, nil if it is gone.
func (s *Store) granteeLocked(info driver.Info) *contender {
	queue := s.queues[info.Key]
	for _, c := range queue[:holders(queue)] {
		if c.grant() == info.Grant {
			return c
		}
	}
	return nil
}

// evictLocked removes a contender at another client's request, and tells its own client.
func (s *Store) evictLocked(c *contender, cause error) {
	s.removeLocked(c, cause)
	if c.returned {
		c.session.engine.pushLocked(func() { c.lose(cause) })
		return
	}
	c.tellLocked()
}

// tellAskedLocked tells the client that its grant is asked for, as soon as the client has the grant.
func (c *contender) tellAskedLocked() {
	if c.asked && c.returned {
		c.session.engine.pushLocked(c.onAsked)
	}
}

// tellLocked tells the client that the wait is over.
func (c *contender) tellLocked() {
	if !c.told {
		c.told = true
		c.session.engine.pushLocked(func() { close(c.news) })
	}
}

// changedLocked tells the observers of a key that its holders or their data have changed.
func (s *Store) changedLocked(key string) {
	for news := range s.news[key] {
		select {
		case news <- struct{}{}:
		default: // it is full: the observer has not looked since
		}
	}
}

// infoLocked describes a key.
func (s *Store) infoLocked(key string) driver.Info {
	info := s.holderLocked(key)
	queue := s.queues[key]
	for _, c := range queue[holders(queue):] {
		info.Queue = append(info.Queue, driver.Waiter{
			Owner: c.owner, Since: c.queued, Data: slices.Clone(c.data), Shared: c.mode.Shared, Limit: c.mode.Limit,
		})
	}
	return info
}

// holderLocked describes a key without its queue.
func (s *Store) holderLocked(key string) driver.Info {
	queue := s.queues[key]
	if len(queue) == 0 {
		return driver.Info{Key: key}
	}
	var all []driver.Holder
	for _, c := range queue[:holders(queue)] {
		all = append(all, driver.Holder{
			Owner:    c.owner,
			Token:    c.token,
			Since:    c.granted,
			QueuedAt: c.queued,
			Data:     slices.Clone(c.data),
			Lease:    c.session.engine.lease,
			Grant:    c.grant(),
		})
	}
	info := driver.Together(key, queue[0].mode.Limit, all)
	if !queue[0].mode.Shared {
		info.Shared, info.Holders = false, nil
	}
	return info
}
