package integration_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestCloseOfStoppedServer: Close sends the end of the session although no reply comes in time. When the server resumes,
// the lock is free, long before the session would expire.
func TestCloseOfStoppedServer(t *testing.T) {
	start(t)
	s := zkserver.New(t, zkserver.Config{TickTime: tick, MaxSessionTimeout: longest})
	client, key := dial(t, s.Addr(), &zklock.Options{SessionTimeout: longest}), newKey(t)
	take(t, client, key)
	must(t, s.Pause())
	done, cancel := context.WithCancel(context.Background())
	cancel()
	err := receive(t, "Close returns", async(func() error { return client.Close(done) }))
	if !errors.Is(err, holdfast.ErrReleasePending) {
		t.Errorf("Close: %v", err)
	}
	resumed := time.Now()
	must(t, s.Resume())
	noResidue(t, plain(t, s.Addr()), under(key))
	if took := time.Since(resumed); took > longest*3/4 {
		verdict.Fatalf(t, "the lock was free only %v later", took)
	}
}

// TestSocketOfAnExpiredSession: the client closes the connection on which it learned that its session had expired. A server
// that has told it so leaves its own end open; the fake, whose connections have no halves, does not.
func TestSocketOfAnExpiredSession(t *testing.T) {
	playOnServer(t, nil, func(t *testing.T, s *scene) {
		for range 3 {
			lock := take(t, s.client, newKey(t))
			s.expire()
			receive(t, "the lock is lost", lock.Done())
			take(t, s.client, newKey(t)) // in the next session
		}
		eventually(t, "one connection is left", func() bool { return s.proxy.Conns() == 1 })
	})
}

// TestServerWiped has a server lose all its data (Z55): it turns a client away that has seen more than it has now, and does not tell
// the client to begin a new session.
func TestServerWiped(t *testing.T) {
	start(t)
	s := zkserver.New(t, zkserver.Config{MaxSessionTimeout: longest})
	client := dialServers(t, zklock.Options{SessionTimeout: 4 * time.Second}, s.Addr()) // it takes two of these and more
	lock, key := take(t, client, newKey(t)), newKey(t)
	waits := acquiring(limited(t), client, lock.Key())
	holds(t, plain(t, s.Addr()), under(lock.Key()), 2)
	session := client.Conn().SessionID()

	s.Stop(limited(t))
	must(t, s.Wipe())
	must(t, s.Start(limited(t)))
	receive(t, "the end of the lock", lock.Done())
	if err := lock.Err(); !errors.Is(err, holdfast.ErrSessionExpired) {
		t.Errorf("Err = %v, want ErrSessionExpired", err)
	}
	release(t, granted(t, waits))
	if client.Conn().SessionID() == session {
		t.Error("the session is that of before")
	}
	one, other := dialServers(t, *options(), s.Addr()), dialServers(t, *options(), s.Addr())
	lock = take(t, one, key)
	if _, err := other.TryAcquire(limited(t), key); !errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("TryAcquire: %v, want ErrHeld", err)
	}
	release(t, lock)
	release(t, take(t, other, key))
}

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

// TestLaggingFollower (Z13): a client moves to a follower that lags behind its previous server. Its reads may be late, never wrong.
func TestLaggingFollower(t *testing.T) {
	start(t)
	e := zkserver.NewEnsemble(t, zkserver.Config{SyncLimit: 50, MaxSessionTimeout: longest})
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
	// More for the follower to catch up with: a queue that forms and dissolves behind the waiter.
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
