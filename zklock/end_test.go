package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// Z59. The end of the session is lost on its way, or the answer to it: Close goes back and makes sure, as long as its ctx allows.
func TestEndIsLost(t *testing.T) {
	for name, lose := range map[string]func(w *wired){
		"the request":              func(w *wired) { w.LoseRequest(opCloseSession) },
		"the answer":               func(w *wired) { w.LoseReply(opCloseSession) },
		"the answer, and the next": func(w *wired) { w.LoseReply(opCloseSession); w.LoseReply(opCloseSession) },
	} {
		for _, resumed := range []bool{false, true} {
			for _, auth := range [][]zklock.Auth{nil, {{Scheme: "digest", Credentials: "user:password"}}} {
				t.Run(fmt.Sprintf("%s/resumed: %v/%d credentials", name, resumed, len(auth)), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						e := zkfake.New(zkfake.Config{Closed: auth != nil, Latency: func() time.Duration { return time.Millisecond }})
						t.Cleanup(e.Close)
						client := dialWired(t, e, zklock.Options{Auth: auth})
						acquire(t, client, "a")
						if resumed {
							client.Break()
							time.Sleep(time.Second)
						}
						lose(client)
						began := time.Now()
						if err := client.Close(t.Context()); err != nil {
							t.Error(err)
						}
						if left := e.Children(virtualRoot + "/a"); len(left) > 0 {
							t.Errorf("left: %q", left)
						}
						if took := time.Since(began); took > virtualSession/2 {
							t.Errorf("Close took %v", took)
						}
					})
				})
			}
		}
	}
}

// Close returns nil only if the session has left no znode, whatever happens meanwhile.
func TestCloseUnderFaults(t *testing.T) {
	const schedules = 400
	confirmed := 0
	for seed := range uint64(schedules) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			e := slowly(t)
			link := e.Link()
			opts := &zklock.Options{Root: virtualRoot, SessionTimeout: virtualSession}
			client, err := zklock.Dial(network.With(t.Context(), link.Dial), e.Addrs(), opts)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Acquire(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
			lost := r.IntN(3)
			for i := range 3 {
				switch lost {
				case 0:
					link.Wire(i).LoseRequest(opCloseSession)
				case 1:
					link.Wire(i).LoseReply(opCloseSession)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+r.IntN(8000))*time.Millisecond)
			defer cancel()
			var done []string
			faults := map[string]func(i int){
				"break":   func(int) { link.Break() },
				"refuse":  func(i int) { link.Wire(i).Refuse(true) },
				"silence": func(i int) { link.Wire(i).Silence(true) },
				"limit":   func(int) { e.Limit(2*time.Second, 2*virtualSession, 20*time.Second); link.Break() },
			}
			kinds := []string{"break", "refuse", "silence", "limit"}
			parted := seed%4 == 1
			if parted {
				kinds = kinds[:3]
			}
			plan := rand.New(rand.NewPCG(seed, 8))
			ended := make(chan struct{})
			faulted := make(chan struct{})
			go func() {
				defer close(faulted)
				for range 1 + plan.IntN(4) {
					select {
					case <-time.After(time.Duration(plan.IntN(1500)) * time.Millisecond / time.Duration(1+plan.IntN(200))):
					case <-ended:
						return
					}
					kind := kinds[plan.IntN(len(kinds))]
					faults[kind](plan.IntN(3))
					done = append(done, kind)
				}
			}()
			time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
			if seed%2 == 0 {
				time.Sleep(virtualSession + time.Duration(r.IntN(3000))*time.Millisecond)
			}
			if parted { // a leader without followers takes the end of a session, and says later that the session is over
				e.Part(e.Leader())
				time.Sleep(10 * time.Millisecond)
			}
			began := time.Now()
			err = client.Close(ctx)
			took, left := time.Since(began), e.Children(virtualRoot+"/a")
			close(ended)
			<-faulted
			story := strings.Join(done, ", ")
			if took > virtualSession+3*time.Second {
				t.Errorf("seed %d: %s: Close took %v", seed, story, took)
			}
			if err == nil {
				confirmed++
				if len(left) > 0 {
					t.Errorf("seed %d: %s: Close is confirmed after %v, and there is %q", seed, story, took, left)
				}
			}
		})
	}
	if confirmed < schedules/2 {
		t.Errorf("Close was confirmed %d times of %d", confirmed, schedules)
	}
}

// Z51. The shortest session timeout of the servers grows so much that the lease of the session cannot be renewed: the lock is lost, and
// the client begins a new session.
func TestTimeoutGrows(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{})
		lock := acquire(t, client, "a")
		session := client.Conn().SessionID()
		e.Limit(2*time.Second, 2*virtualSession, 20*time.Second)
		client.Wire.Break()
		<-lock.Done()
		if err := lock.Err(); !errors.Is(err, holdfast.ErrSessionExpired) {
			t.Errorf("%v, %v before the deadline", err, time.Until(lock.Deadline()))
		}
		time.Sleep(2 * time.Second)
		if acquire(t, client, "a"); client.Conn().SessionID() == session || client.SessionTimeout() != 2*virtualSession {
			t.Errorf("the session goes on, with %v", client.SessionTimeout())
		}
	})
}

// Z51. The request that ends a grown session is lost, or its reply, or connections are shorter than its lease: the holder knows first, and
// a lock can be acquired again.
func TestTimeoutGrows_Faults_HolderKnowsFirst(t *testing.T) {
	for name, fault := range map[string]func(t *testing.T, e *zkfake.Ensemble, client *wired, lock *holdfast.Lock){
		"the lease is over before the session is resumed": func(_ *testing.T, _ *zkfake.Ensemble, client *wired, lock *holdfast.Lock) {
			client.Refuse(true)
			<-lock.Done()
			client.Refuse(false)
		},
		"the end is lost, and the next server grants less": func(_ *testing.T, e *zkfake.Ensemble, client *wired, _ *holdfast.Lock) {
			time.Sleep(virtualSession - time.Second)
			client.LoseRequest(opCloseSession)
			e.Limit(2*time.Second, virtualSession, 7*virtualSession/5)
		},
		"the reply to the end is lost": func(t *testing.T, e *zkfake.Ensemble, client *wired, lock *holdfast.Lock) {
			client.LoseReply(opCloseSession)
			acquire(t, dialWired(t, e, zklock.Options{}), "a")
			if lock.Err() == nil {
				t.Error("two holders")
			}
		},
		"short connections": func(_ *testing.T, e *zkfake.Ensemble, client *wired, _ *holdfast.Lock) {
			time.Sleep(100 * time.Millisecond)
			e.Limit(2*time.Second, 4*time.Second, 4*virtualSession)
			for range 10 {
				time.Sleep(virtualSession * 9 / 10)
				client.Wire.Break()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				client := dialWired(t, e, zklock.Options{})
				lock := acquire(t, client, "a")
				time.Sleep(virtualSession)
				e.Limit(2*time.Second, 2*virtualSession, 4*virtualSession)
				client.Wire.Break()
				fault(t, e, client, lock)
				if _, err := client.Acquire(inTime(t), "b"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
