package integration_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// audit checks the grants of one key to clients of this process: at each grant, the
// previous holder must know of its end (G1, G2), and the token must have risen (G3).
type audit struct {
	mu     sync.Mutex
	last   *holdfast.Lock
	grants int
}

func (a *audit) granted(t *testing.T, lock *holdfast.Lock) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last != nil {
		// Read after the new grant: a lock that is still live makes two holders.
		if err := a.last.Err(); err == nil && lock.Err() == nil {
			t.Errorf("%s and %s hold %q at one time", a.last.Owner(), lock.Owner(), lock.Key())
		}
		if lock.Token() <= a.last.Token() {
			t.Errorf("token %d of %q after %d", lock.Token(), lock.Key(), a.last.Token())
		}
	}
	a.last = lock
	a.grants++
}

func (a *audit) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.grants
}

// contend makes clients acquire and release one key over and over until stop is called.
// stop returns when they have ended.
func (a *audit) contend(t *testing.T, key string, clients ...*zklock.Client) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, client := range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				lock, err := client.Acquire(ctx, key)
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("%s: %v", client.Owner(), err)
					}
					return
				}
				a.granted(t, lock)
				time.Sleep(2 * time.Millisecond)
				if err := lock.Release(context.Background()); err != nil && !errors.Is(err, holdfast.ErrLost) {
					t.Errorf("%s: %v", client.Owner(), err)
				}
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// waits makes a client wait for a key, and checks the grant as soon as it comes.
func (a *audit) waits(t *testing.T, client acquirer, key string) <-chan *holdfast.Lock {
	got := make(chan *holdfast.Lock, 1)
	go func() {
		lock, err := client.Acquire(t.Context(), key)
		if err == nil {
			a.granted(t, lock)
			got <- lock
		}
	}()
	return got
}

// inLine makes a client wait for a key, and returns when it is in the queue.
func (a *audit) inLine(t *testing.T, client *zklock.Client, key string) <-chan *holdfast.Lock {
	t.Helper()
	got := a.waits(t, client, key)
	eventually(t, "the waiter stands in the queue", func() bool {
		info, err := client.Inspect(limited(t), key)
		return err == nil && len(info.Queue) > 0
	})
	return got
}

// TestEnsembleFailover covers the ordinary failures of an ensemble. Its subtests share
// one and run in sequence.
func TestEnsembleFailover(t *testing.T) {
	start(t)
	e := zkserver.NewEnsemble(t, zkserver.Config{SyncLimit: 50, MaxSessionTimeout: longest})
	for name, test := range map[string]func(*testing.T, *zkserver.Ensemble){
		"LeaderKilled":     leaderKilled,
		"HalfOpenServer":   halfOpenServer,
		"RollingRestart":   rollingRestart,
		"LaggingFollower":  laggingFollower,
		"LeaderCutOff":     leaderCutOff,
		"ServersComeAndGo": serversComeAndGo,
		"StoppedFollower":  stoppedFollower,
		"AbandonedReturn":  abandonedReturn,
	} {
		t.Run(name, func(t *testing.T) {
			leaderAndFollowers(t, e)
			test(t, e)
		})
		_ = e.HealAll()
	}
}

// survivesOrEnds checks a lock after its ensemble is whole again: if it is live, the
// quorum agrees; if not, another client can acquire the key.
func survivesOrEnds(t *testing.T, a *audit, lock *holdfast.Lock, waiter <-chan *holdfast.Lock) {
	t.Helper()
	if err := lock.Verify(limited(t)); err == nil {
		t.Log("the lock has survived")
		check(t, lock.Release(limited(t)))
	} else if errors.Is(err, holdfast.ErrLost) {
		t.Logf("the lock has ended: %v", err)
	} else {
		t.Errorf("Verify = %v, want nil or ErrLost", err)
	}
	next := receive(t, "a grant for the next in line", waiter)
	check(t, next.Release(limited(t)))
}

// leaderKilled: sessions outlive the leader, and the new leader restarts their timeouts.
func leaderKilled(t *testing.T, e *zkserver.Ensemble) {
	leader, _ := leaderAndFollowers(t, e)
	key, a := newKey(t), &audit{}
	holder := dialServers(t, zklock.Options{SessionTimeout: 15 * time.Second}, e.Addrs()...)
	lock := take(t, holder, key)
	a.granted(t, lock)
	waiter := a.inLine(t, dialServers(t, *options(), e.Addrs()...), key)
	e.Servers()[leader].Kill()
	began := time.Now()
	if err := lock.Verify(limited(t)); err != nil && !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("Verify = %v, want nil or ErrLost", err)
	}
	t.Logf("the quorum answered %v after the leader was killed: %v", time.Since(began).Round(time.Millisecond), lock.Err())
	must(t, e.Servers()[leader].Start(limited(t)))
	survivesOrEnds(t, a, lock, waiter)
}

// proxiesOf starts a proxy for each server of an ensemble.
func proxiesOf(t *testing.T, e *zkserver.Ensemble) (proxies []*faultproxy.Proxy, addrs []string) {
	t.Helper()
	for _, s := range e.Servers() {
		p := proxy(t, s.Addr())
		proxies = append(proxies, p)
		addrs = append(addrs, p.Addr())
	}
	return proxies, addrs
}

// halfOpenServer: a server accepts connections and never answers (hazard Z5). The client leaves it for another one. How soon is judged in
// virtual time: TestSilentServer (zklock).
func halfOpenServer(t *testing.T, e *zkserver.Ensemble) {
	const timeout = 10 * time.Second
	proxies, addrs := proxiesOf(t, e)
	key, a := newKey(t), &audit{}
	client := dialServers(t, zklock.Options{SessionTimeout: timeout}, addrs...)
	lock := take(t, client, key)
	a.granted(t, lock)
	waiter := a.inLine(t, dialServers(t, *options(), e.Addrs()...), key)
	// In the steady state heartbeats leave about half the timeout.
	first := lock.Deadline()
	eventually(t, "heartbeats extend the lease", func() bool { return lock.Deadline().Sub(first) > timeout/3 })
	var dead *faultproxy.Proxy
	eventually(t, "one server has a connection, and no other has one that is about to go", func() bool {
		conns := 0
		for _, p := range proxies {
			if n := p.Conns(); n > 0 {
				conns, dead = conns+n, p
			}
		}
		return conns == 1
	})
	events := client.Events()
	receive(t, "the state to begin with", events.Ready())
	left, began := time.Until(lock.Deadline()), time.Now()
	dead.BlackHole(faultproxy.Both)
	receive(t, "Disconnected", events.Disconnected())
	away := time.Since(began)
	receive(t, "Ready", events.Ready())
	t.Logf("with %v left of the lease the client left the silent server after %v, and had another after %v", left, away, time.Since(began))
	must(t, dead.Heal())
	survivesOrEnds(t, a, lock, waiter)
}

// rollingRestart: an operator restarts every server, one after the other.
func rollingRestart(t *testing.T, e *zkserver.Ensemble) {
	key, a := newKey(t), &audit{}
	holder := dialServers(t, *options(), e.Addrs()...)
	lock := take(t, holder, key)
	a.granted(t, lock)
	waiter := a.inLine(t, dialServers(t, *options(), e.Addrs()...), key)
	busy, traffic := &audit{}, newKey(t)
	stop := busy.contend(t, traffic, holder, dialServers(t, *options(), e.Addrs()...))
	for i, s := range e.Servers() {
		before := busy.count()
		s.Stop(limited(t))
		if err := s.Start(limited(t)); err != nil {
			t.Fatalf("server %d: %v", i, err)
		}
		if err := e.WaitReady(limited(t)); err != nil {
			t.Fatalf("server %d: %v", i, err)
		}
		eventually(t, fmt.Sprintf("grants go on after the restart of server %d", i), func() bool { return busy.count() > before+2 })
	}
	stop()
	survivesOrEnds(t, a, lock, waiter)
}

// laggingFollower: a client moves to a follower that lags behind its previous server
// (hazard Z13): its reads may be late, never wrong.
func laggingFollower(t *testing.T, e *zkserver.Ensemble) {
	leader, followers := leaderAndFollowers(t, e)
	behind := e.Servers()[followers[0]]
	key, held, a, b := newKey(t), newKey(t), &audit{}, &audit{}
	p := proxy(t, e.Servers()[leader].Addr())
	mover := dial(t, p.Addr(), nil)
	stays := dialServers(t, *options(), e.Servers()[leader].Addr())
	first := take(t, stays, key)
	a.granted(t, first)
	waiter := a.inLine(t, mover, key)
	lock := take(t, mover, held)
	b.granted(t, lock)
	next := b.inLine(t, stays, held)

	must(t, behind.Pause())
	p.SetUpstream(behind.Addr())
	p.Drop()
	check(t, first.Release(limited(t)))
	// More for the follower to catch up with: a queue that forms and dissolves behind the
	// waiter.
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := stays.Acquire(ctx, key); err == nil {
				t.Error("granted past the waiter who comes first")
			}
		})
	}
	wg.Wait()
	must(t, behind.Resume())
	moved := receive(t, "the grant at the follower", waiter)
	survivesOrEnds(t, b, lock, next)
	if err := moved.Release(limited(t)); err != nil && !errors.Is(err, holdfast.ErrLost) {
		t.Error(err)
	}
}

// leaderCutOff tests the part of hazard Z5 about resumed sessions: for up to syncLimit
// ticks, a leader that has lost its followers lets its clients resume their sessions
// without a quorum. Only a write shows that it still leads. Here the followers notice the
// loss sooner and elect another leader, which ends the session.
func leaderCutOff(t *testing.T, e *zkserver.Ensemble) {
	leader, followers := leaderAndFollowers(t, e)
	key, a := newKey(t), &audit{}
	holder := dialServers(t, zklock.Options{SessionTimeout: 2 * time.Second}, e.Servers()[leader].Addr())
	lock := take(t, holder, key)
	a.granted(t, lock)
	path := nodeOf(t, holder, lock)
	waiter := a.inLine(t, dialServers(t, *options(), e.Servers()[followers[0]].Addr(), e.Servers()[followers[1]].Addr()), key)
	time.Sleep(time.Second) // a few heartbeats
	e.Isolate(leader)
	cut := time.Now()
	for _, f := range followers {
		e.Servers()[f].Kill()
	}
	for _, f := range followers {
		must(t, e.Servers()[f].Launch())
	}
	vanished := watchVanish(t, plain(t, e.Servers()[followers[0]].Addr()), []string{path})
	seen := receive(t, "the node vanishes in the majority", vanished)[path]
	next := receive(t, "the grant in the majority", waiter)
	receive(t, "Done", lock.Done())
	// From its deadline on Err tells of the loss; what closes Done may be late on a busy machine.
	if lost := lock.Deadline(); lost.After(seen.firstMissed) {
		t.Errorf("lost %v after the cut, %v after the node was seen to be gone: G2 broken", lost.Sub(cut), lost.Sub(seen.firstMissed))
	}
	must(t, e.HealAll())
	must(t, e.WaitReady(limited(t)))
	if err := next.Release(limited(t)); err != nil && !errors.Is(err, holdfast.ErrLost) {
		t.Error(err)
	}
	again := take(t, holder, key)
	a.granted(t, again)
}

// serversComeAndGo: clients are forced from server to server, and one of them stops now
// and then. No two of them ever hold a lock at the same time.
func serversComeAndGo(t *testing.T, e *zkserver.Ensemble) {
	_, followers := leaderAndFollowers(t, e)
	proxies, addrs := proxiesOf(t, e)
	var clients []*zklock.Client
	for range 4 {
		clients = append(clients, dialServers(t, zklock.Options{SessionTimeout: 4 * time.Second}, addrs...))
	}
	key, a := newKey(t), &audit{}
	stop := a.contend(t, key, clients...)
	for i := range 6 {
		s := e.Servers()[followers[i%2]]
		must(t, s.Pause())
		for _, p := range proxies {
			p.Drop()
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Duration(i) * 100 * time.Millisecond)
		must(t, s.Resume())
		before := a.count()
		if !becomes(func() bool { return a.count() > before }) {
			info, err := clients[0].Inspect(limited(t), key)
			t.Fatalf("no more grants; the queue is %+v (%v)", info, err)
		}
	}
	stop()
	t.Logf("%d grants", a.count())
}
