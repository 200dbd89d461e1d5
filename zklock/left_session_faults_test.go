package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver/drivertest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// dialBy opens a client that dials by a function.
func dialBy(t *testing.T, servers []string, dialer network.Dialer) *zklock.Client {
	t.Helper()
	opts := zklock.Options{Root: virtualRoot, SessionTimeout: virtualSession}
	client, err := zklock.Dial(network.With(t.Context(), dialer), servers, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

// Z51. Two sessions are left one after the other: the second one, in which a lock is held, is not ended together with the first.
func TestTwoLeftSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := zkfake.New(zkfake.Config{Members: 3, Latency: func() time.Duration { return time.Millisecond }})
		t.Cleanup(e.Close)
		other := dialBy(t, e.Addrs()[2:], e.Link().Dial)
		link := e.Link()
		client := dialBy(t, e.Addrs()[:2], link.Dial)
		time.Sleep(time.Second)
		first := client.Conn().SessionID()
		e.Limit(2*time.Second, 2*virtualSession, 60*time.Second)
		link.Break()
		left := time.Now()
		for client.Conn().SessionID() == first || !link.Wire(1).Used() { // the second session, at the second server
			if client.Conn().SessionID() != first {
				link.Break()
			}
			time.Sleep(300 * time.Millisecond)
		}
		lock, err := client.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		granted := make(chan struct{})
		go func() {
			defer close(granted)
			if _, err := other.Acquire(inTime(t), "k"); err != nil {
				t.Error(err)
			}
			if lock.Err() == nil {
				t.Errorf("two holders, %v after the first session was left; the lease of the one lasts for another %v",
					time.Since(left), time.Until(lock.Deadline()))
			}
		}()
		time.Sleep(virtualSession - time.Since(left) - 400*time.Millisecond)
		link.Wire(0).Delay(20 * time.Millisecond)
		e.Limit(2*time.Second, 4*virtualSession, 60*time.Second)
		link.Wire(1).Silence(true)
		link.Wire(1).Break() // and at the first server, the second session is left
		<-granted
	})
}

// What cannot be ended in the background is left to the servers: seldom is it tried again, and so that it does not last for that.
func TestLeftSessionCannotBeEnded(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{Auth: []zklock.Auth{{Scheme: "custom", Credentials: "token"}}})
		if err := errors.Join(acquire(t, client, "a").Release(t.Context()), createOfTheApplication(client)); err != nil {
			t.Fatal(err)
		}
		leaves(client, e)
		time.Sleep(time.Second)
		const opSetAuth, authFailed = 100, -115
		for range 1000 {
			client.Answer(opSetAuth, authFailed)
		}
		before := client.dials.Load()
		time.Sleep(100 * virtualSession)
		if hasTheApplications(e) {
			t.Error("the session is kept alive by what is to end it")
		}
		if n := client.dials.Load() - before; n > 12 {
			t.Errorf("%d connections", n)
		}
	})
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{})
		leaves(client, e)
		time.Sleep(time.Second)
		client.Refuse(true) // others than the present connection
		before := client.dials.Load()
		time.Sleep(1000 * virtualSession)
		if n := client.dials.Load() - before; n > 12 {
			t.Errorf("%d connections", n)
		}
	})
}

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

// Nothing of it is left when the client has closed, though that is not confirmed.
func TestLeftSessionAtClose(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		fake, link := &drivertest.Clock{}, e.Link()
		opts := zklock.Options{Root: virtualRoot, SessionTimeout: virtualSession}
		client, err := zklock.Dial(clock.With(network.With(t.Context(), link.Dial), fake), e.Addrs(), &opts)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		e.Limit(2*time.Second, 2*virtualSession, 20*time.Second)
		link.Break()
		time.Sleep(time.Second)
		link.Wire(0).Refuse(true)
		link.Break()
		err = client.Close(t.Context())
		if n := fake.Pending.Load(); n != 0 || err == nil {
			t.Errorf("Close: %v; %d timers run on", err, n)
		}
	})
}

// stuckReader is a connection whose reader stands still between the bytes and what is made of them, until the connection is closed.
type stuckReader struct {
	net.Conn
	armed  *atomic.Bool
	read   chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (c *stuckReader) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.armed.CompareAndSwap(true, false) {
		close(c.read)
		<-c.closed
	}
	return n, err
}

func (c *stuckReader) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// The greeting by which a session is left is read as the client closes.
func TestLeavesAsItCloses(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		link, armed, read := e.Link(), &atomic.Bool{}, make(chan struct{})
		client := dialBy(t, e.Addrs(), func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := link.Dial(ctx, network, address)
			return &stuckReader{Conn: conn, armed: armed, read: read, closed: make(chan struct{})}, err
		})
		time.Sleep(time.Second)
		e.Limit(2*time.Second, 2*virtualSession, 20*time.Second)
		armed.Store(true)
		link.Break()
		<-read
		now, cancel := context.WithCancel(t.Context())
		cancel()
		if err := client.Close(now); !errors.Is(err, holdfast.ErrReleasePending) {
			t.Errorf("Close without time: %v", err)
		}
	})
}

// Z59. Close returns when its time is over, and a second for go-zookeeper does not come on top of that, which waits so long where it has no
// connection.
func TestCloseKeepsItsTime(t *testing.T) {
	for name, fault := range map[string]func(c *wired, e *zkfake.Ensemble){
		"refused":        func(c *wired, _ *zkfake.Ensemble) { c.Refuse(true); c.Break() },
		"stalled":        func(_ *wired, e *zkfake.Ensemble) { e.Stall(0) },
		"silent":         func(c *wired, _ *zkfake.Ensemble) { c.Silence(true) },
		"silent, broken": func(c *wired, _ *zkfake.Ensemble) { c.Silence(true); c.Break() },
	} {
		for n := range 16 {
			locked, since := n%2 == 1, time.Duration(n/2)*time.Second
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				client := dialWired(t, e, zklock.Options{})
				if locked {
					acquire(t, client, "a")
				}
				fault(client, e)
				time.Sleep(since)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				began := time.Now()
				err := client.Close(ctx)
				if took := time.Since(began); took > 1300*time.Millisecond || err == nil {
					t.Errorf("%s for %v, with a lock: %v: Close took %v: %v", name, since, locked, took, err)
				}
			})
		}
	}
}
