package memlock

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Store has the keys that clients of one process compete for. It takes the
// place of the server, so it is also where faults are made: [Store.Cut],
// [Store.Heal] and [Store.Expire]. Make it inside the testing/synctest bubble
// that uses it.
type Store struct {
	mu      sync.Mutex
	queues  map[string][]*place // the first of each holds the key; none is empty
	token   uint64              // of the newest grant; one counter serves all keys
	removed uint64              // places removed so far
}

// NewStore returns a store in which nothing is held.
func NewStore() *Store { return &Store{queues: make(map[string][]*place)} }

// A place is one request in the queue for a key. The first place of a queue
// holds the key. All fields below session are guarded by the store's mu.
type place struct {
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

// grant is the name of the place as a grant: see driver.Info.
func (p *place) grant() string { return strconv.FormatUint(uint64(p.token), 10) }

// enterLocked puts a place at the end of its queue.
func (s *Store) enterLocked(p *place) {
	p.queued = time.Now()
	s.queues[p.key] = append(s.queues[p.key], p)
	p.session.enterLocked(p)
	if len(s.queues[p.key]) == 1 {
		s.grantLocked(p)
		p.told = true // by the answer itself
		close(p.news)
	}
}

func (s *Store) grantLocked(p *place) {
	s.token++
	p.token = s.token
	p.granted = time.Now()
}

// removeLocked takes a place out of its queue, if it is still there, and gives
// the key to the next in line, to nobody else.
func (s *Store) removeLocked(p *place, cause error) {
	if p.gone != nil {
		return
	}
	s.removed++
	p.gone, p.goneSeq = cause, s.removed
	p.session.leaveLocked(p)
	queue := s.queues[p.key]
	i := slices.Index(queue, p)
	queue = slices.Delete(queue, i, i+1)
	if len(queue) == 0 {
		delete(s.queues, p.key)
		return
	}
	s.queues[p.key] = queue
	if i == 0 {
		s.grantLocked(queue[0])
		queue[0].tellLocked()
	}
}

// evictLocked removes a place at somebody else's wish and tells its client.
func (s *Store) evictLocked(p *place, cause error) {
	s.removeLocked(p, cause)
	if p.taken {
		p.session.engine.pushLocked(func() { p.lose(cause) })
		return
	}
	p.tellLocked()
}

// tellLocked wakes the call that waits for the place.
func (p *place) tellLocked() {
	if !p.told {
		p.told = true
		p.session.engine.pushLocked(func() { close(p.news) })
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
	for _, p := range queue[1:] {
		info.Queue = append(info.Queue, driver.Waiter{Owner: p.owner, Since: p.queued, Data: slices.Clone(p.data)})
	}
	return info
}

// listLocked describes all keys with a prefix, in order.
func (s *Store) listLocked(prefix string) []driver.Info {
	var infos []driver.Info
	for key := range s.queues {
		if strings.HasPrefix(key, prefix) {
			infos = append(infos, s.infoLocked(key))
		}
	}
	slices.SortFunc(infos, func(a, b driver.Info) int { return strings.Compare(a.Key, b.Key) })
	return infos
}
