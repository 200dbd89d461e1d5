package integration_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
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
		"LaggingFollower": laggingFollower,
		"LeaderCutOff":    leaderCutOff,
		"StoppedFollower": stoppedFollower,
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
