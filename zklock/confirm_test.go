package zklock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// slowly starts three members that are a millisecond from each other and from clients.
func slowly(t *testing.T) *zkfake.Ensemble {
	t.Helper()
	ms := func() time.Duration { return time.Millisecond }
	e := zkfake.New(zkfake.Config{Members: 3, SyncLimit: 8, Latency: ms, Delay: ms})
	t.Cleanup(e.Close)
	return e
}

// Z60. A leader that has lost its followers says that a session is over which it has been asked to end. That session goes on.
func TestCloseAtALeaderThatIsAlone(t *testing.T) {
	for _, breaks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := slowly(t)
			client := dialMember(t, e, e.Leader(), zklock.Options{})
			acquire(t, client, "a")
			time.Sleep(100 * time.Millisecond)
			e.Part(e.Leader())
			if breaks {
				time.AfterFunc(50*time.Millisecond, client.Break)
			}
			err := client.Close(t.Context())
			if left := e.Children(virtualRoot + "/a"); err == nil && len(left) > 0 {
				t.Errorf("connection breaks: %v: Close is confirmed, and there is %q", breaks, left)
			}
		})
	}
}

// Z60. The same with a session that it has let expire, and the release of a lock.
func TestReleaseAtALeaderThatIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := slowly(t)
		leader := e.Leader()
		follower := (leader + 1) % 3
		link := e.Link()
		link.Wire(leader).Refuse(true)
		client := dialBy(t, []string{e.Addrs()[follower], e.Addrs()[leader]}, link.Dial)
		lock, err := client.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		e.Part(leader)
		released := make(chan error, 1)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		go func() { released <- lock.Release(ctx) }()
		time.Sleep(virtualSession + 3*time.Second)
		link.Wire(leader).Refuse(false)
		err = <-released
		if left := e.Children(virtualRoot + "/a"); err == nil && len(left) > 0 {
			t.Errorf("Release is confirmed, and there is %q", left)
		}
	})
}

// Z59, Z60, Z62. Whatever happens to the network and the servers, Close says nil only if nothing is left, and returns.
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
				"part":    e.Part,
				"kill":    e.Kill,
				"limit":   func(int) { e.Limit(2*time.Second, 2*virtualSession, 20*time.Second); link.Break() },
				"alone": func(leader int) { // if it is that, it lets the session expire
					e.Part(leader)
					for i := range 3 {
						link.Wire(i).Refuse(true)
					}
					link.Break()
					time.AfterFunc(virtualSession, func() { link.Wire(leader).Refuse(false) })
				},
			}
			kinds := []string{"break", "refuse", "silence", "part", "kill", "limit", "alone"}
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

// Z59. Servers that resume a session and do not let it be ended are not asked again and again: each time its timeout begins anew.
func TestEndIsRefused(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{Auth: []zklock.Auth{{Scheme: "custom", Credentials: "token"}}})
		acquire(t, client, "a")
		time.Sleep(time.Second)
		const opSetAuth, authFailed = 100, -115
		for range 1000 {
			client.Answer(opSetAuth, authFailed)
		}
		client.LoseRequest(opCloseSession)
		began := time.Now()
		if err := client.Close(t.Context()); err == nil {
			t.Error("Close is confirmed")
		}
		for len(e.Children(virtualRoot+"/a")) > 0 {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took > virtualSession+2*time.Second {
			t.Errorf("what Close has left goes %v after it began", took)
		}
	})
}

// The error of Close says how long the servers keep the session: for the timeout that they gave it last.
func TestEndNamesTheTimeout(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{})
		acquire(t, client, "a")
		time.Sleep(time.Second)
		const longer = 9 * time.Second
		e.Limit(2*time.Second, longer, 20*time.Second)
		client.Break()
		time.Sleep(time.Second)
		client.LoseRequest(opCloseSession)
		client.Refuse(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := client.Close(ctx); err == nil || !strings.Contains(err.Error(), longer.String()) {
			t.Errorf("Close: %v", err)
		}
	})
}

// Z60. What asks whether a session is over has a session of its own, in which it makes a write: what hinders that is no refusal to end the
// other, and is tried again; and a deletion that is in vain is a write, whatever the reason.
func TestConfirmationIsHindered(t *testing.T) {
	const opSetAuth, authFailed = 100, -115
	for name, c := range map[string]struct {
		config zkfake.Config
		hinder func(t *testing.T, client *wired)
	}{
		"slow, where sessions are short": {
			zkfake.Config{Tick: 50 * time.Millisecond, Max: 20 * time.Second, Latency: func() time.Duration { return 25 * time.Millisecond }},
			func(*testing.T, *wired) {},
		},
		"too busy for a while": {zkfake.Config{}, func(_ *testing.T, client *wired) {
			client.Throttle(func(kind int32) bool { return kind == opDelete })
			time.AfterFunc(500*time.Millisecond, func() { client.Throttle(nil) })
		}},
		"credentials are refused twice": {zkfake.Config{}, func(_ *testing.T, client *wired) {
			client.Answer(opSetAuth, authFailed)
			client.Answer(opSetAuth, authFailed)
		}},
		"the znode is there": {zkfake.Config{}, func(t *testing.T, client *wired) {
			if _, err := client.Conn().Create("/holdfast-no-such-znode", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := zkfake.New(c.config)
				t.Cleanup(e.Close)
				client := dialWired(t, e, zklock.Options{Auth: []zklock.Auth{{Scheme: "digest", Credentials: "user:password"}}})
				acquire(t, client, "a")
				time.Sleep(time.Second)
				c.hinder(t, client)
				client.LoseReply(opCloseSession)
				if err := client.Close(inTime(t)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Z60. That the session is over is no confirmation either if it is the answer to its end.
func TestEndIsSaidToBeOver(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{})
		acquire(t, client, "a")
		time.Sleep(time.Second)
		const sessionExpired = -112
		client.Answer(opCloseSession, sessionExpired)
		began := time.Now()
		err := client.Close(inTime(t))
		if left := e.Children(virtualRoot + "/a"); err != nil || len(left) > 0 {
			t.Errorf("Close: %v, and there is %q", err, left)
		}
		if took := time.Since(began); took > virtualSession/2 {
			t.Errorf("Close took %v", took)
		}
	})
}

// Z51, Z59. The error of Close names each session that may stand.
func TestCloseNamesAll(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{})
		acquire(t, client, "a")
		time.Sleep(time.Second)
		client.Delay(25 * time.Millisecond)
		first := client.Conn().SessionID()
		leaves(client, e)
		for id := first; id == first || id == 0; id = client.Conn().SessionID() {
			time.Sleep(time.Millisecond)
		}
		acquire(t, client, "b")
		second := client.Conn().SessionID()
		client.Refuse(true)
		client.LoseRequest(opCloseSession)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := client.Close(ctx)
		for _, id := range []int64{first, second} {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%#x", id)) {
				t.Errorf("session %#x is not named: %v", id, err)
			}
		}
	})
}
