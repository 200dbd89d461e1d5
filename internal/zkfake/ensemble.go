package zkfake

import (
	"cmp"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Config describes an ensemble. The zero value is one server with ZooKeeper's defaults and no latency.
type Config struct {
	Members    int                  // default 1
	Tick       time.Duration        // tickTime; default 2 s
	Min, Max   time.Duration        // of session timeouts; default 2 and 20 ticks
	SyncLimit  int                  // ticks after which a follower and its leader give each other up; default 5
	Guarded    bool                 // to ask whether a znode exists takes the permission to read it, as from 3.8.4 and 3.9.2 on
	Discreet   bool                 // and so does to hear of it: from there on, too, and in some distributions before
	Closed     bool                 // to clients without credentials: enforce.auth, from 3.7 on
	Containers time.Duration        // between two looks for empty containers; default a minute
	Latency    func() time.Duration // of a message between a client and a member, one way; default 0
	Delay      func() time.Duration // of a message between a member and the leader, one way; default 0
}

func (c Config) resolved() Config {
	none := func() time.Duration { return 0 }
	c.Members = max(c.Members, 1)
	c.Tick = cmp.Or(c.Tick, 2*time.Second)
	c.Min = cmp.Or(c.Min, 2*c.Tick)
	c.Max = cmp.Or(c.Max, 20*c.Tick)
	c.SyncLimit = cmp.Or(c.SyncLimit, 5)
	c.Containers = cmp.Or(c.Containers, time.Minute)
	if c.Latency == nil {
		c.Latency = none
	}
	if c.Delay == nil {
		c.Delay = none
	}
	return c
}

// An Ensemble is some servers. Its methods may be called at the same time.
type Ensemble struct {
	config  Config
	stop    chan struct{}
	running sync.WaitGroup

	mu       sync.Mutex // of everything here, in members and in connections
	over     bool
	members  []*Member
	lead     int      // the index of the leader; -1: there is none
	electing bool     // a majority looks for one
	waiting  []func() // at the leader, for a majority
	sessions map[int64]*session
	lastID   int64
	log      []*txn
	lastZxid int64
	conns    map[*conn]struct{}
}

// New starts an ensemble. In a bubble, Close it before the bubble's first function returns.
func New(config Config) *Ensemble {
	e := &Ensemble{
		config:   config.resolved(),
		stop:     make(chan struct{}),
		sessions: make(map[int64]*session),
		lastID:   time.Now().UnixMilli() << 16, // as SessionTrackerImpl.initializeNextSessionId does, nearly
		lastZxid: 1 << 32,                      // the first epoch
		conns:    make(map[*conn]struct{}),
	}
	for i := range e.config.Members {
		e.members = append(e.members, e.newMember(i))
	}
	e.every(func() time.Duration { return e.config.Tick }, e.expire)
	e.every(func() time.Duration { return e.config.Tick / 2 }, e.beat)
	e.every(func() time.Duration { return e.config.Containers }, e.sweep)
	return e
}

// every does something again and again, with mu.
func (e *Ensemble) every(period func() time.Duration, do func()) {
	first := period()
	e.running.Go(func() {
		timer := time.NewTimer(first)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
				e.locked(func() {
					do()
					timer.Reset(period())
				})
			case <-e.stop:
				return
			}
		}
	})
}

func (e *Ensemble) locked(do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	do()
}

// Close ends all connections and goroutines.
func (e *Ensemble) Close() {
	e.locked(func() {
		if e.over {
			return
		}
		e.over = true
		close(e.stop)
		for _, m := range e.members {
			m.toLeader.close()
			m.fromLeader.close()
		}
		for _, c := range slices.Collect(maps.Keys(e.conns)) {
			c.gone()
		}
	})
	e.running.Wait()
}

// Addrs are the addresses of the members, for a client that dials through a [Link]. They need no resolver.
func (e *Ensemble) Addrs() []string {
	var addrs []string
	for i := range e.members {
		addrs = append(addrs, net.JoinHostPort("127.0.0.1", strconv.Itoa(i+1)))
	}
	return addrs
}

// Expire ends a session at once.
func (e *Ensemble) Expire(id int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.whenQuorate(func() { e.end(id, nil) })
}

// Children lists the children of a znode, as the member has them that knows most; none if there is no such znode.
func (e *Ensemble) Children(path string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.latest().tree.names(path)
}

// Has reports whether there is the znode below a path that the transaction with this zxid has created, as the member has them that
// knows most.
func (e *Ensemble) Has(below string, czxid int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for path, n := range e.latest().tree.znodes {
		if n.czxid == czxid && strings.HasPrefix(path, below+"/") {
			return true
		}
	}
	return false
}

// Watched reports whether a session watches all its ephemeral znodes.
func (e *Ensemble) Watched(id int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for path := range e.latest().tree.ephemerals[id] {
		if !slices.ContainsFunc(e.members, func(m *Member) bool {
			_, watched := m.watches.data[path][m.conns[id]]
			return watched
		}) {
			return false
		}
	}
	return true
}

// sweep removes containers that have become empty: ContainerManager.
func (e *Ensemble) sweep() {
	if !e.quorate() {
		return
	}
	t := e.leader().tree
	for _, path := range slices.Sorted(maps.Keys(t.znodes)) {
		if n := t.znodes[path]; n.owner == ownerOfContainers && n.created > 0 && len(t.children[path]) == 0 {
			e.commit(&txn{kind: opDelete, ops: []op{{kind: opDelete, path: path, version: -1}}})
		}
	}
}
