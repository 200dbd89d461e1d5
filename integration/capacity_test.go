package integration_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// traffic counts what passes the proxies before an ensemble.
type traffic struct {
	proxies []*faultproxy.Proxy

	mu    sync.Mutex
	sent  map[faultproxy.Op]int   // to the servers
	busy  map[int64]int           // requests in each tenth of a second
	conns map[int64]int           // connections that began in each
	bytes int                     // of lists
	fired map[faultproxy.Kind]int // to the clients
}

// newTraffic puts a proxy before each server of an ensemble.
func newTraffic(t *testing.T, e *zkserver.Ensemble) *traffic {
	t.Helper()
	r := &traffic{}
	r.reset()
	for _, addr := range e.Addrs() {
		p := proxy(t, addr)
		p.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
			r.see(f)
			return faultproxy.Pass
		})
		r.proxies = append(r.proxies, p)
	}
	return r
}

func (r *traffic) see(f faultproxy.Frame) {
	tenth := time.Now().UnixMilli() / 100
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case f.Dir == faultproxy.ToClient:
		r.fired[f.Kind]++
		if f.Kind == faultproxy.KindReply && (f.Op == faultproxy.OpGetChildren || f.Op == faultproxy.OpGetChildren2) {
			r.bytes += len(f.Payload)
		}
	case f.Kind == faultproxy.KindConnect:
		r.sent[faultproxy.OpConnect]++
		r.conns[tenth]++
	default:
		r.sent[f.Op]++
		if f.Kind == faultproxy.KindRequest {
			r.busy[tenth]++
		}
	}
}

func (r *traffic) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent, r.fired = make(map[faultproxy.Op]int), make(map[faultproxy.Kind]int)
	r.busy, r.conns, r.bytes = make(map[int64]int), make(map[int64]int), 0
}

// A cost is what passed the proxies while something happened.
type cost struct {
	took                 time.Duration
	requests, pings      int
	events               int
	lists, listed        int // and the bytes of the answers
	connects             int
	busiest, mostAtATime int // requests and new connections, in a tenth of a second
	text                 string
}

// count returns what passes while f runs.
func (r *traffic) count(f func()) cost {
	r.reset()
	began := time.Now()
	f()
	took := time.Since(began)
	r.mu.Lock()
	defer r.mu.Unlock()
	c := cost{
		took: took.Round(time.Millisecond), pings: r.sent[faultproxy.OpPing], connects: r.sent[faultproxy.OpConnect],
		events: r.fired[faultproxy.KindWatchEvent],
		lists:  r.sent[faultproxy.OpGetChildren] + r.sent[faultproxy.OpGetChildren2], listed: r.bytes,
	}
	for _, n := range r.busy {
		c.requests += n
		c.busiest = max(c.busiest, n)
	}
	for _, n := range r.conns {
		c.mostAtATime = max(c.mostAtATime, n)
	}
	var ops []string
	for _, op := range slices.Sorted(maps.Keys(r.sent)) {
		ops = append(ops, fmt.Sprintf("%v %d", op, r.sent[op]))
	}
	c.text = fmt.Sprintf("%v, %d requests (at most %d in 100 ms), %d watch events; lists %d KB; by operation: %s",
		c.took, c.requests, c.busiest, c.events, c.listed>>10, strings.Join(ops, ", "))
	return c
}

// few runs f for all of n, some at a time.
func few(n int, f func(i int)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, 64)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	all.Wait()
}

func heapInUse() int {
	runtime.GC()
	runtime.GC() // what a finalizer or a pool held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestCapacity has an ensemble of three carry many sessions with ten locks each. It prints what each step takes, and
// fails if one costs more than some requests for each session that it is about. HOLDFAST_SESSIONS sets how many.
func TestCapacity(t *testing.T) {
	start(t)
	const locksEach = 10
	n := setting(t, "HOLDFAST_SESSIONS", 60, strconv.Atoi)
	opts := *options()
	cfg := zkserver.Config{SyncLimit: 50, InitLimit: 100, MaxSessionTimeout: longest}
	if n > 200 {
		opts.SessionTimeout = longest
		cfg.Heap, cfg.FullJIT, cfg.TickTime, cfg.SyncLimit, cfg.InitLimit = "1500m", true, 2*time.Second, 5, 10
	}
	e := zkserver.NewEnsemble(t, cfg)
	// The sessions of one half will expire.
	halves := [2]*traffic{newTraffic(t, e), newTraffic(t, e)}
	living, dying := halves[0], halves[1]
	clients := make([]*zklock.Client, n)
	locks := make([]*holdfast.Lock, n*locksEach)
	t.Cleanup(func() {
		began := time.Now()
		few(n, func(i int) {
			if clients[i] != nil {
				_ = clients[i].Close(limited(t))
			}
		})
		t.Logf("close: %v", time.Since(began))
	})

	before := heapInUse()
	began := time.Now()
	few(n, func(i int) {
		var servers []string
		for _, p := range halves[i%2].proxies {
			servers = append(servers, p.Addr())
		}
		client, err := zklock.Dial(limited(t), servers, &opts)
		if err != nil {
			t.Errorf("session %d: %v", i, err)
			return
		}
		clients[i] = client
	})
	if t.Failed() {
		t.FailNow()
	}
	took, connected := time.Since(began), heapInUse()
	t.Logf("connect: %d sessions in %v, %d KB of heap each, the proxies' share included", n, took.Round(time.Millisecond), (connected-before)/n>>10)

	key := func(i int) string { return fmt.Sprint("capacity.", i) }
	began = time.Now()
	few(n, func(i int) {
		for j := range locksEach {
			lock, err := clients[i].Acquire(limited(t), key(i*locksEach+j))
			check(t, err)
			locks[i*locksEach+j] = lock
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	took = time.Since(began)
	t.Logf("acquire: %d locks in %v, %d a second; %d bytes of heap each", len(locks), took.Round(time.Millisecond),
		int(float64(len(locks))/took.Seconds()), (heapInUse()-connected)/len(locks))

	// Heartbeats: a sync, a write and a read per session and T/6.
	steady := opts.SessionTimeout
	time.Sleep(steady / 6)
	c := living.count(func() { time.Sleep(steady) })
	half := n / 2
	t.Logf("steady: %d of the sessions in %s", half, c.text)
	if most := half*18*5/4 + 20; c.requests > most || c.connects > 0 {
		verdict.Fatalf(t, "%d requests and %d connections of %d sessions in %v, want %d and none", c.requests, c.connects, half, steady, most)
	}
	for _, lock := range locks {
		must(t, lock.Err())
	}

	// Each of the living waits for a lock of one that dies, and all wait for one key.
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	granted := make(chan *holdfast.Lock, n)
	conn := plain(t, e.Addrs()[0]) // past the proxies
	first := take(t, clients[0], key(-1))
	c = living.count(func() {
		few(n, func(i int) {
			before := clients[i]
			waiting.Go(func() {
				if lock, err := before.Acquire(ctx, key(-1)); err == nil {
					if err := lock.Release(limited(t)); !errors.Is(err, holdfast.ErrLost) {
						check(t, err)
					}
				} else if ctx.Err() == nil && !errors.Is(err, holdfast.ErrLost) && !errors.Is(err, holdfast.ErrSessionExpired) {
					t.Error(err)
				}
			})
			if i%2 == 0 && i+1 < n {
				waiting.Go(func() {
					if lock, err := before.Acquire(ctx, key((i+1)*locksEach)); err == nil {
						granted <- lock
					}
				})
			}
		})
		holds(t, conn, under(key(-1)), n+1)
		for i := 1; i < n; i += 2 {
			holds(t, conn, under(key(i*locksEach)), 2)
		}
	})
	t.Logf("queue: %d wait for one key, and half of them for one more each: of that half, %s", n, c.text)

	// All connections break, and nobody can connect for a while.
	for _, outage := range []struct {
		name  string
		begin func()
	}{
		{"broken", func() {
			for _, p := range living.proxies {
				p.Drop()
			}
		}},
		{"refused for 3 s", func() {
			for _, p := range living.proxies {
				p.Cut()
			}
			time.Sleep(3 * time.Second)
			for _, p := range living.proxies {
				check(t, p.Heal())
			}
		}},
	} {
		c = living.count(func() {
			outage.begin()
			few((n+1)/2, func(i int) {
				eventually(t, "a client is back", func() bool { return errOf(clients[2*i].Conn().Sync("/")) == nil })
			})
			time.Sleep(time.Second)
		})
		t.Logf("reconnect, %s: %d sessions, at most %d connections in 100 ms; %s", outage.name, half, c.mostAtATime, c.text)
		if c.connects > 4*half+10 || c.requests > 20*half+100 || c.lists > 3*half+20 {
			verdict.Fatalf(t, "that is more than a few for each session")
		}
		if outage.name != "broken" && c.mostAtATime > half*4/5+5 {
			verdict.Fatalf(t, "they return in step")
		}
		for i, lock := range locks {
			if i/locksEach%2 == 0 {
				must(t, lock.Err())
			}
		}
	}

	// Half of the sessions expire. First in line for their locks are the living.
	c = living.count(func() {
		for _, p := range dying.proxies {
			p.BlackHole(faultproxy.Both)
		}
		limit := time.After(2*opts.SessionTimeout + patience)
		for range half {
			select {
			case <-granted:
			case <-limit:
				verdict.Fatalf(t, "not all of %d waiters were granted the locks of sessions that expired", half)
			}
		}
	})
	// Each watch that fires costs a list; those of the common queue may meet a few that are about to go.
	t.Logf("expire: %d sessions with %d locks: all waiters had theirs after %s", half, half*locksEach, c.text)
	if beats := half * 12 * (int(c.took/opts.SessionTimeout) + 1); c.requests > beats*5/4+30*half+100 {
		t.Errorf("%d requests, want some for each session", c.requests)
	}
	for i, lock := range locks {
		if i/locksEach%2 == 0 {
			must(t, lock.Err())
		}
	}

	// The common queue goes on through all who are left.
	c = living.count(func() {
		must(t, first.Release(limited(t)))
		noResidue(t, conn, under(key(-1)))
	})
	t.Logf("hand-offs: %d in %v, %v each; %s", half, c.took, c.took/time.Duration(half), c.text)
	cancel()
	for _, p := range dying.proxies {
		check(t, p.Heal())
	}
	waiting.Wait()
}
