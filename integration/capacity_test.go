package integration_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// traffic counts the frames of clients to an ensemble, at a proxy before each server.
type traffic struct {
	proxies []*faultproxy.Proxy

	mu    sync.Mutex
	sent  map[faultproxy.Op]int
	conns map[int64]int // connections that began in each tenth of a second
}

func newTraffic(t *testing.T, e *zkserver.Ensemble) *traffic {
	t.Helper()
	r := &traffic{sent: make(map[faultproxy.Op]int), conns: make(map[int64]int)}
	for _, addr := range e.Addrs() {
		p := proxy(t, addr)
		p.SetFilter(func(f faultproxy.Frame) faultproxy.Verdict {
			if f.Dir == faultproxy.ToServer {
				r.see(f)
			}
			return faultproxy.Pass
		})
		r.proxies = append(r.proxies, p)
	}
	return r
}

func (r *traffic) see(f faultproxy.Frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent[f.Op]++
	if f.Kind == faultproxy.KindConnect {
		r.conns[time.Now().UnixMilli()/100]++
	}
}

// A cost is what passed the proxies while something happened.
type cost struct {
	took                      time.Duration
	requests, lists           int
	connects, connectsAtATime int // at most, in a tenth of a second
}

// count logs and returns what passes while f runs.
func (r *traffic) count(t *testing.T, what string, f func()) (c cost) {
	t.Helper()
	r.mu.Lock()
	r.sent, r.conns = make(map[faultproxy.Op]int), make(map[int64]int)
	r.mu.Unlock()
	began := time.Now()
	f()
	c.took = time.Since(began).Round(time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	for op, n := range r.sent {
		if op != faultproxy.OpConnect && op != faultproxy.OpPing {
			c.requests += n
		}
	}
	c.lists = r.sent[faultproxy.OpGetChildren] + r.sent[faultproxy.OpGetChildren2]
	c.connects = r.sent[faultproxy.OpConnect]
	if len(r.conns) > 0 {
		c.connectsAtATime = slices.Max(slices.Collect(maps.Values(r.conns)))
	}
	t.Logf("%s: %+v", what, c)
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

// TestCapacity has an ensemble of three carry many sessions with ten locks each. It prints what each step takes, and
// fails if one costs more than some requests for each session. HOLDFAST_SESSIONS sets how many.
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
	r := newTraffic(t, zkserver.NewEnsemble(t, cfg))
	var servers []string
	for _, p := range r.proxies {
		servers = append(servers, p.Addr())
	}
	clients, locks := make([]*zklock.Client, n), make([]*holdfast.Lock, n*locksEach)
	r.count(t, "connect and acquire", func() {
		few(n, func(i int) {
			client, err := zklock.Dial(limited(t), servers, &opts)
			if err != nil {
				t.Errorf("session %d: %v", i, err)
				return
			}
			t.Cleanup(func() { _ = client.Close(limited(t)) })
			clients[i] = client
			for j := i * locksEach; j < (i+1)*locksEach; j++ {
				var err error
				locks[j], err = client.Acquire(limited(t), fmt.Sprint("capacity.", j))
				check(t, err)
			}
		})
	})
	if t.Failed() {
		t.FailNow()
	}
	live := func() {
		t.Helper()
		for _, lock := range locks {
			must(t, lock.Err())
		}
	}

	// Heartbeats: a sync, a write and a read per session and T/6.
	time.Sleep(opts.SessionTimeout / 6)
	c := r.count(t, "steady", func() { time.Sleep(opts.SessionTimeout / 2) })
	if most := n*9*5/4 + 20; c.requests > most || c.connects > 0 {
		verdict.Fatalf(t, "%d requests and %d connections of %d sessions, want %d and none", c.requests, c.connects, n, most)
	}
	live()

	// All connections break, and the servers refuse new ones for a while.
	c = r.count(t, "reconnect", func() {
		for _, p := range r.proxies {
			p.Cut()
		}
		time.Sleep(3 * time.Second)
		for _, p := range r.proxies {
			check(t, p.Heal())
		}
		few(n, func(i int) {
			eventually(t, "a client is back", func() bool { return errOf(clients[i].Conn().Sync("/")) == nil })
		})
		time.Sleep(time.Second)
	})
	if c.connects > 4*n+10 || c.requests > 20*n+100+18*n*int(1+c.took/opts.SessionTimeout) || c.lists > 3*n+20 || c.connectsAtATime > n*4/5+5 {
		verdict.Fatalf(t, "that is more than a few for each session, or they return in step")
	}
	live()
}
