package memlock

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Store has the keys for which the clients of one process compete. It takes the place of
// the server, so tests inject faults here: [Store.Cut], [Store.Heal] and [Store.Expire].
// A testing/synctest bubble needs a store that was made inside it.
type Store struct {
	mu      sync.Mutex
	queues  map[string][]*contender // the first of each holds the key; none is empty
	token   uint64                  // of the newest grant; one counter serves all keys
	removed uint64                  // contenders removed so far
}

// NewStore returns a store in which nothing is held.
func NewStore() *Store { return &Store{queues: make(map[string][]*contender)} }

// A contender is one request in the queue for a key. The first of a queue holds
// the key. All fields below session are guarded by the store's mu.
type contender struct {
	key     string
	owner   string
	data    []byte
	lose    func(error)
	news    chan struct{} // closed when the client is told that the wait is over
	session *session

	queued  time.Time
	granted time.Time // zero while it waits
	token   uint64
	told    bool   // news is closed, or about to be
	taken   bool   // the grant was returned to the client
	gone    error  // why it is not in the queue any more
	goneSeq uint64 // when, by Store.removed
}

// grant is the name of the contender as a grant: see driver.Info.
func (c *contender) grant() string { return strconv.FormatUint(uint64(c.token), 10) }

// joinLocked puts a contender at the end of its queue.
func (s *Store) joinLocked(c *contender) {
	c.queued = time.Now()
	s.queues[c.key] = append(s.queues[c.key], c)
	c.session.addLocked(c)
	if len(s.queues[c.key]) == 1 {
		s.grantLocked(c)
		c.told = true // by the answer itself
		close(c.news)
	}
}

func (s *Store) grantLocked(c *contender) {
	s.token++
	c.token = s.token
	c.granted = time.Now()
}

// removeLocked takes a contender out of its queue, if it is still there, and gives
// the key to the next in line, to nobody else.
func (s *Store) removeLocked(c *contender, cause error) {
	if c.gone != nil {
		return
	}
	s.removed++
	c.gone, c.goneSeq = cause, s.removed
	delete(c.session.contenders, c) // its timer stops by itself when none is left
	queue := s.queues[c.key]
	i := slices.Index(queue, c)
	queue = slices.Delete(queue, i, i+1)
	if len(queue) == 0 {
		delete(s.queues, c.key)
		return
	}
	s.queues[c.key] = queue
	if i == 0 {
		s.grantLocked(queue[0])
		queue[0].tellLocked()
	}
}

// evictLocked removes a contender at another client's request, and tells its own client.
func (s *Store) evictLocked(c *contender, cause error) {
	s.removeLocked(c, cause)
	if c.taken {
		c.session.engine.pushLocked(func() { c.lose(cause) })
		return
	}
	c.tellLocked()
}

// tellLocked tells the client that the wait is over.
func (c *contender) tellLocked() {
	if !c.told {
		c.told = true
		c.session.engine.pushLocked(func() { close(c.news) })
	}
}

// infoLocked describes a key.
func (s *Store) infoLocked(key string) driver.Info {
	queue := s.queues[key]
	if len(queue) == 0 {
		return driver.Info{Key: key}
	}
	holder := queue[0]
	info := driver.Info{
		Key:      key,
		Held:     true,
		Owner:    holder.owner,
		Token:    holder.token,
		Since:    holder.granted,
		QueuedAt: holder.queued,
		Data:     slices.Clone(holder.data),
		Lease:    holder.session.engine.lease,
		Grant:    holder.grant(),
	}
	for _, c := range queue[1:] {
		info.Queue = append(info.Queue, driver.Waiter{Owner: c.owner, Since: c.queued, Data: slices.Clone(c.data)})
	}
	return info
}
