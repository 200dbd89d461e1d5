package zklock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// createOfTheApplication has the application create an ephemeral znode in the client's session: zklock knows nothing of it.
func createOfTheApplication(client *wired) error {
	_, err := client.Conn().Create(virtualRoot+"/app", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	return err
}

func hasTheApplications(e *zkfake.Ensemble) bool {
	return slices.Contains(e.Children(virtualRoot), "app")
}

// leaves has the client meet servers whose shortest session timeout has grown too much.
func leaves(client *wired, e *zkfake.Ensemble) {
	client.Hold(true, true)
	e.Limit(2*time.Second, 2*virtualSession, 20*time.Second)
	time.Sleep(virtualSession / 4)
	client.Wire.Break()
	client.Hold(false, false)
}

// Z51. A session is given up since the server, whose limits have changed, would keep it for too long. What was to be released
// under it, and what has waited, is deleted in the next one, and not taken to have gone with it.
func TestLeftSession(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		lock, before := acquire(t, client, "a"), acquire(t, other, "b")
		granted, released := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := client.Acquire(inTime(t), "b")
			granted <- err
		}()
		time.Sleep(time.Second)
		client.Hold(true, true)
		go func() { released <- lock.Release(t.Context()) }()
		e.Limit(2*time.Second, 2*virtualSession, 20*time.Second)
		time.Sleep(virtualSession / 4)
		client.Wire.Break()
		client.Hold(false, false)
		if err, left := <-released, e.Has(virtualRoot+"/a", int64(lock.Token())); err != nil || left {
			t.Errorf("Release = %v, and the znode is there: %v", err, left)
		}
		time.Sleep(virtualSession / 4)
		if queue := e.Children(virtualRoot + "/b"); len(queue) != 2 {
			t.Errorf("the queue is %q", queue)
		}
		if err := before.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-granted; err != nil {
			t.Error(err)
		}
	})
}

// Z51. A client is closed soon after it has given up a session: it says that all is given back only if that is so, also of what it
// had in that one, and with time enough it is.
func TestCloseAfterALeftSession(t *testing.T) {
	limits := []time.Duration{0, virtualSession / 1000, virtualSession / 100, virtualSession}
	for n := range 25 * len(limits) {
		after, limit := time.Duration(n/len(limits))*20*time.Millisecond, limits[n%len(limits)]
		withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
			client := dialWired(t, e, zklock.Options{Auth: []zklock.Auth{{Scheme: "digest", Credentials: "user:password"}}})
			lock := acquire(t, client, "a")
			time.Sleep(time.Second)
			client.Delay(25 * time.Millisecond)
			leaves(client, e)
			time.Sleep(after)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			err := client.Close(ctx)
			switch left := e.Has(virtualRoot+"/a", int64(lock.Token())); {
			case err == nil && left:
				t.Errorf("after %v, Close within %v is confirmed, and the znode is there", after, limit)
			case err != nil && limit == virtualSession:
				t.Errorf("after %v, with %v to do it: %v", after, limit, err)
			}
		})
	}
}

// Z51. While the client is open, it ends such a session when all that was held in it is over, though the servers would keep it longer.
func TestLeftSessionIsEnded(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{})
		if err := errors.Join(acquire(t, client, "a").Release(t.Context()), createOfTheApplication(client)); err != nil {
			t.Fatal(err)
		}
		leaves(client, e)
		left := time.Now()
		time.Sleep(virtualSession - time.Second)
		if !hasTheApplications(e) {
			t.Errorf("the session has ended %v after it was left, and its lease may have lasted", time.Since(left))
		}
		time.Sleep(virtualSession/4 + 2*time.Second)
		if hasTheApplications(e) {
			t.Errorf("the session has not ended %v after it was left", time.Since(left))
		}
		// Then there is nothing more to end.
		client.Refuse(true)
		if err := client.Close(inTime(t)); err != nil {
			t.Error(err)
		}
	})
}

// Z51. The client closes as one session is over and the next one has not begun, or has begun meanwhile and cannot be ended. The application's
// request waits in go-zookeeper, and is carried out in the next session: Close does not say nil over what comes of it.
func TestCloseBetweenSessions(t *testing.T) {
	for name, end := range map[string]func(client *wired, e *zkfake.Ensemble){
		"left": leaves,
		"expired": func(client *wired, e *zkfake.Ensemble) {
			client.Hold(true, true)
			e.Expire(client.Conn().SessionID())
			time.Sleep(virtualSession / 4)
			client.Wire.Break()
			client.Hold(false, false)
		},
	} {
		for n := range 120 {
			after, lost := time.Duration(n)*5*time.Millisecond, n%2 == 1
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				client := dialWired(t, e, zklock.Options{})
				acquire(t, client, "a")
				time.Sleep(time.Second)
				client.Delay(25 * time.Millisecond)
				before := client.Conn().SessionID()
				end(client, e)
				go func() {
					for client.Conn().SessionID() == before {
						time.Sleep(time.Millisecond)
					}
					_ = createOfTheApplication(client)
				}()
				time.Sleep(after)
				if lost {
					client.LoseRequest(opCloseSession)
				}
				ctx, cancel := context.WithTimeout(t.Context(), virtualSession)
				defer cancel()
				err := client.Close(ctx)
				if stands := hasTheApplications(e); err == nil && stands {
					t.Errorf("%s, Close %v after: it is confirmed, and a znode stands", name, after)
				}
				time.Sleep(time.Second)
				if stands := hasTheApplications(e); err == nil && stands {
					t.Errorf("%s, Close %v after: it is confirmed, and a znode has come", name, after)
				}
			})
		}
	}
}

// Z51, Z55. The servers lose their data when a session has been left and the next has not begun, or when a client closes that has
// left one: what was seen then hinders nobody.
func TestWipedWhileASessionIsLeft(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{})
		acquire(t, client, "a")
		client.Delay(25 * time.Millisecond)
		leaves(client, e)
		for client.SessionTimeout() == virtualSession {
			time.Sleep(time.Millisecond)
		}
		e.Wipe()
		began := time.Now()
		if _, err := client.Acquire(inTime(t), "b"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > virtualSession {
			t.Errorf("a new session has taken %v", took)
		}
		if err := client.Close(inTime(t)); err != nil {
			t.Error(err)
		}
	})
}

// Servers that serve nobody without credentials hang up on any request that comes before them.
func TestCredentialsComeFirst(t *testing.T) {
	const tries = 100
	synctest.Test(t, func(t *testing.T) {
		latency := func() time.Duration { return time.Duration(rand.N(int64(5 * time.Millisecond))) }
		e := zkfake.New(zkfake.Config{Latency: latency, Closed: true})
		t.Cleanup(e.Close)
		for range tries {
			client := dialWired(t, e, zklock.Options{Auth: []zklock.Auth{{Scheme: "digest", Credentials: "user:password"}}})
			if n := client.dials.Load(); n != 1 {
				t.Fatalf("%d connections until Dial has returned", n)
			}
			acquire(t, client, "a")
			client.Break()
			time.Sleep(time.Second)
			if err := client.Close(inTime(t)); err != nil {
				t.Error(err)
			}
			if n := client.dials.Load(); n != 2 {
				t.Fatalf("%d connections, of which one was broken", n)
			}
		}
	})
}

// Clients without credentials are refused in every call, however many wait, and whichever request had the server's answer.
func TestNoCredentials_ServerDemandsThem_EveryCallIsDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		latency := func() time.Duration { return time.Duration(rand.N(int64(5 * time.Millisecond))) }
		e := zkfake.New(zkfake.Config{Latency: latency, Closed: true})
		t.Cleanup(e.Close)
		client := dialWired(t, e, zklock.Options{})
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() {
				_, acquire := client.Acquire(inTime(t), "a")
				_, try := client.TryAcquire(inTime(t), "a")
				_, inspect := client.Inspect(inTime(t), "a")
				for call, err := range map[string]error{"Acquire": acquire, "TryAcquire": try, "Inspect": inspect} {
					if !errors.Is(err, holdfast.ErrDenied) {
						t.Errorf("%s: %v, want ErrDenied", call, err)
					}
				}
			})
		}
		calls.Wait()
		_ = client.Close(inTime(t))
	})
}
