package zklock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// Z62. A leader that has lost its followers says that a session is over which it has let expire, before the client closes or while it does.
// The next leader brings that session back: Close does not take it to have ended.
func TestCloseAfterALeaderThatIsAlone(t *testing.T) {
	for n := range 40 { // the client dials at random moments
		before := n%2 == 1
		synctest.Test(t, func(t *testing.T) {
			ms := func() time.Duration { return time.Millisecond }
			e := zkfake.New(zkfake.Config{Members: 3, Tick: 200 * time.Millisecond, SyncLimit: 80, Max: 40 * time.Second, Latency: ms, Delay: ms})
			t.Cleanup(e.Close)
			leader := e.Leader()
			follower := (leader + 1) % 3
			link := e.Link()
			link.Wire(leader).Refuse(true)
			client := dialBy(t, []string{e.Addrs()[follower], e.Addrs()[leader]}, link.Dial)
			lock, err := client.Acquire(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			e.Part(leader)
			link.Wire(follower).Refuse(true)
			link.Break()
			closed := make(chan error, 1)
			closes := func() { closed <- client.Close(context.Background()) }
			if !before {
				go closes()
			}
			time.Sleep(virtualSession)
			link.Wire(leader).Refuse(false)
			if before {
				time.Sleep(2 * time.Second)
				if lock.Err() == nil {
					t.Error("the lock is not lost")
				}
				go closes()
			}
			err = <-closed
			if left := e.Children(virtualRoot + "/a"); err == nil && len(left) > 0 {
				t.Errorf("said before: %v: Close is confirmed, and there is %q", before, left)
			}
		})
	}
}

// Z62. Each session that a server has said to be over is asked about once, in the background, and then there is nothing more to confirm.
func TestSessionsThatAreOver(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{})
		const sessions = 20
		before := client.dials.Load()
		for range sessions {
			lock := acquire(t, client, "a")
			e.Expire(client.Conn().SessionID())
			client.Wire.Break()
			<-lock.Done()
		}
		time.Sleep(2 * virtualSession)
		const each = 2 + 3 // to hear that it is over, and to begin the next; a question, a witness, and the question again
		if n := client.dials.Load() - before; n > each*sessions {
			t.Errorf("%d connections for %d sessions", n, sessions)
		}
		acquire(t, client, "a")
		client.Refuse(true) // others than the present connection
		if err := client.Close(inTime(t)); err != nil {
			t.Error(err)
		}
	})
}

// Z62. Servers that say that a session is over, and nothing more, do not hold up Close: it says what is not confirmed.
func TestCloseWithoutASession(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{})
		lock := acquire(t, client, "a")
		client.Delay(25 * time.Millisecond)
		e.Expire(client.Conn().SessionID())
		client.Wire.Break()
		<-lock.Done()
		client.Refuse(true)
		client.Wire.Break()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := client.Close(ctx); err == nil || !strings.Contains(err.Error(), "is not confirmed") {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(began); took > 2500*time.Millisecond {
			t.Errorf("Close has taken %v", took)
		}
	})
}

// Z62. Where the end of an earlier session is not confirmed, a lock of the present one, which has ended, is not in doubt for that: neither
// one that Close gives back, nor one that is being released; and one of the earlier session is.
func TestEarlierSessionIsNotConfirmed(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{})
		earlier := acquire(t, client, "earlier")
		client.Throttle(func(kind int32) bool { return kind == opDelete })
		pending := func(lock *holdfast.Lock) {
			now, cancel := context.WithCancel(t.Context())
			cancel()
			if err := lock.Release(now); !errors.Is(err, holdfast.ErrReleasePending) {
				t.Errorf("Release at a server that is too busy: %v", err)
			}
		}
		pending(earlier)
		time.Sleep(time.Second)
		first := client.Conn().SessionID()
		e.Expire(first)
		client.Wire.Break()
		for id := first; id == first || id == 0; id = client.Conn().SessionID() {
			time.Sleep(time.Millisecond)
		}
		held, released := acquire(t, client, "held"), acquire(t, client, "released")
		pending(released)
		client.Refuse(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := client.Close(ctx)
		if !errors.Is(err, holdfast.ErrReleasePending) || !strings.Contains(err.Error(), `close: "earlier": `) {
			t.Errorf("Close: %v", err)
		}
		if err := errors.Join(held.Release(t.Context()), released.Release(t.Context())); err != nil {
			t.Error(err)
		}
		if err := earlier.Release(t.Context()); !errors.Is(err, holdfast.ErrReleasePending) {
			t.Errorf("Release: %v", err)
		}
	})
}

// Z67. The same, where go-zookeeper's try to end the present session is lost, and the client ends that on a connection of its own.
func TestEarlierSessionIsNotConfirmedAndTheLastIs(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{})
		first := client.Conn().SessionID()
		e.Expire(first)
		client.Wire.Break()
		for id := first; id == first || id == 0; id = client.Conn().SessionID() {
			time.Sleep(time.Millisecond)
		}
		held, released := acquire(t, client, "held"), acquire(t, client, "released")
		client.Throttle(func(kind int32) bool { return kind == opDelete }) // so the end of the first is not confirmed
		now, cancel := context.WithCancel(t.Context())
		cancel()
		if err := released.Release(now); !errors.Is(err, holdfast.ErrReleasePending) {
			t.Errorf("Release at a server that is too busy: %v", err)
		}
		client.LoseRequest(opCloseSession)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := client.Close(ctx); !errors.Is(err, holdfast.ErrReleasePending) || strings.Contains(err.Error(), `close: "`) {
			t.Errorf("Close: %v", err)
		}
		if err := errors.Join(held.Release(t.Context()), released.Release(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// Z60, Z62. What asks whether a session is over leaves no session of its own behind, also where it has asked in vain.
func TestWitnessesEnd(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{})
		acquire(t, client, "a")
		time.Sleep(time.Second)
		client.Throttle(func(kind int32) bool { return kind == opDelete })
		client.LoseReply(opCloseSession)
		time.AfterFunc(2*time.Second, func() {
			if n := e.Sessions(); n > 1 {
				t.Errorf("%d sessions while the client closes", n)
			}
			client.Throttle(nil)
		})
		if err := client.Close(inTime(t)); err != nil {
			t.Error(err)
		}
		time.Sleep(100 * time.Millisecond)
		if n := e.Sessions(); n > 0 {
			t.Errorf("%d sessions when the client has closed", n)
		}
	})
}
