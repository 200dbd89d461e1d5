package zklock_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// The requests of the protocol that these tests name: ZooDefs.OpCode.
const (
	opCreate       = 1
	opDelete       = 2
	opCloseSession = -11
	opExists       = 3
	opGetData      = 4
	opSync         = 9
	opGetChildren2 = 12
	opMulti        = 14
	opSetAuth      = 100
)

// wired is a client in virtual time and its wire to the only server, with what it has asked for.
type wired struct {
	*zklock.Client
	*zkfake.Wire
	dials, requests atomic.Int64
	before          atomic.Pointer[func(frame []byte)]
}

// sends has a function called before each request is sent.
func (w *wired) sends(before func(frame []byte)) { w.before.Store(&before) }

// dialWired connects to the first member of an ensemble.
func dialWired(t *testing.T, e *zkfake.Ensemble, opts zklock.Options) *wired {
	t.Helper()
	return dialMember(t, e, 0, opts)
}

func dialMember(t *testing.T, e *zkfake.Ensemble, member int, opts zklock.Options) *wired {
	t.Helper()
	link := e.Link()
	w := &wired{Wire: link.Wire(member)}
	opts.Root, opts.SessionTimeout = virtualRoot, virtualSession
	ctx := network.With(t.Context(), func(ctx context.Context, network, address string) (net.Conn, error) {
		w.dials.Add(1)
		conn, err := link.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &countedConn{conn, w}, nil
	})
	client, err := zklock.Dial(ctx, e.Addrs()[member:member+1], &opts)
	if err != nil {
		t.Fatal(err)
	}
	w.Client = client
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return w
}

// countedConn counts requests: go-zookeeper sends each by one Write.
type countedConn struct {
	net.Conn
	client *wired
}

func (c *countedConn) Write(b []byte) (int, error) {
	c.client.requests.Add(1)
	if before := c.client.before.Load(); before != nil {
		(*before)(b)
	}
	return c.Conn.Write(b)
}

// withServer runs a test with one server, in virtual time.
func withServer(t *testing.T, test func(t *testing.T, e *zkfake.Ensemble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := zkfake.New(zkfake.Config{Latency: func() time.Duration { return time.Millisecond }})
		t.Cleanup(e.Close)
		test(t, e)
	})
}

func acquire(t *testing.T, client *wired, key string) *holdfast.Lock {
	t.Helper()
	lock, err := client.Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// inTime returns a context that ends long after what is waited for in virtual time.
func inTime(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*virtualSession)
	t.Cleanup(cancel)
	return ctx
}

// Z68. A server is too busy for whatever it is asked, but for the end of a session, which no server refuses for that: Close need not wait.
func TestCloseAtABusyServer(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{})
		acquire(t, client, "a")
		client.Throttle(func(int32) bool { return true })
		began := time.Now()
		err := client.Close(inTime(t))
		if took := time.Since(began); err != nil || took > time.Second {
			t.Errorf("Close took %v: %v", took, err)
		}
		if left := e.Children(virtualRoot + "/a"); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

// Z48. After a reconnect a server refuses to set the watches again. A waiter hears of the release all the same, and of the
// deletion of its node.
func TestWatchesRefused(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		holder, waiter := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		lock, other := acquire(t, holder, "a"), acquire(t, waiter, "b")
		granted := make(chan error, 1)
		go func() {
			_, err := waiter.Acquire(inTime(t), "a")
			granted <- err
		}()
		time.Sleep(time.Second)
		waiter.Throttle(func(kind int32) bool { return kind == opGetData })
		waiter.Break()
		time.Sleep(time.Second)
		waiter.Throttle(nil)
		if dials := waiter.dials.Load(); dials > 30 {
			t.Errorf("%d connections within a second", dials)
		}
		info, err := holder.Inspect(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(lock.Release(t.Context()), holder.Client.Break(t.Context(), info)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(virtualSession / 3)
		if err := other.Err(); !errors.Is(err, holdfast.ErrBroken) {
			t.Errorf("Err of a lock that was broken: %v", err)
		}
		select {
		case err := <-granted:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("the waiter has not heard of the release")
			<-granted
		}
	})
}

// Z53. A client whose answers are too slow to prove its session comes to the head of a queue: it lets those pass who are faster, and is
// told so.
func TestSlowClient(t *testing.T) {
	for name, mode := range map[string][]holdfast.Option{"lock": nil, "permit": {holdfast.WithLimit(1)}} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				holder, slow, fast := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
				lock, err := holder.Acquire(t.Context(), "a", mode...)
				if err != nil {
					t.Fatal(err)
				}
				slow.Delay(virtualSession * 13 / 100)
				slowly, granted := make(chan error, 1), make(chan error, 1)
				go func() {
					_, err := slow.Acquire(inTime(t), "a", append(mode, holdfast.WithRetry(holdfast.Retry{Attempts: 2}))...)
					slowly <- err
				}()
				time.Sleep(2 * virtualSession)
				go func() {
					next, err := fast.Acquire(inTime(t), "a", mode...)
					granted <- err
					_ = next.Release(t.Context())
				}()
				time.Sleep(virtualSession)
				released := time.Now()
				if err := lock.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := <-granted; err != nil {
					t.Errorf("the fast client: %v", err)
				}
				if took := time.Since(released); took > 3*virtualSession {
					t.Errorf("the fast client was granted the lock after %v", took)
				}
				if err := <-slowly; !errors.Is(err, holdfast.ErrDisconnected) || !strings.Contains(err.Error(), "too slow") {
					t.Errorf("the slow client: %v", err)
				}
			})
		})
	}
}

// Z56. A client that may not read its own znode would not hear of its deletion. It does not wait, and leaves nothing behind.
func TestUnreadableNode(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := zkfake.New(zkfake.Config{Guarded: guarded, Discreet: guarded, Latency: func() time.Duration { return time.Millisecond }})
			t.Cleanup(e.Close)
			client := dialWired(t, e, zklock.Options{ACL: zk.WorldACL(zk.PermAll &^ zk.PermRead)})
			other := dialWired(t, e, zklock.Options{})
			denied := func(key string) {
				t.Helper()
				began := time.Now()
				if _, err := client.Acquire(inTime(t), key); !errors.Is(err, holdfast.ErrDenied) || time.Since(began) > virtualSession {
					t.Errorf("%s: %v after %v", key, err, time.Since(began))
				}
			}
			lock := acquire(t, client, "free")
			<-lock.Done()
			if err := lock.Err(); !errors.Is(err, holdfast.ErrBroken) || !errors.Is(err, holdfast.ErrDenied) {
				t.Errorf("a lock that was granted: %v", err)
			}
			quiet := dialWired(t, e, zklock.Options{Heartbeat: -1})
			lock = acquire(t, quiet, "again")
			time.Sleep(time.Second)
			quiet.Answer(opGetData, -102) // NOAUTH
			quiet.Wire.Break()
			time.Sleep(virtualSession / 2)
			if err := lock.Err(); !errors.Is(err, holdfast.ErrBroken) || !errors.Is(err, holdfast.ErrDenied) {
				t.Errorf("a lock whose watch cannot be set again: %v", err)
			}
			if err := acquire(t, other, "reply lost").Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			client.LoseReply(opCreate)
			denied("reply lost")
			held := acquire(t, other, "held")
			denied("held")
			if err := held.Err(); err != nil {
				t.Error(err)
			}
			time.Sleep(virtualSession)
			for key, want := range map[string]int{"free": 0, "reply lost": 0, "held": 1} {
				if left := e.Children(virtualRoot + "/" + key); len(left) != want {
					t.Errorf("%s: left behind: %q", key, left)
				}
			}
		})
	}
}

// Z56. A server fails to read a znode, for a reason of its own: a lock is none the less there, and who waits goes on, or fails and leaves
// nothing behind.
func TestOddAnswerToARead(t *testing.T) {
	for _, code := range []int32{-1, -2, -6, -8} { // SYSTEMERROR, RUNTIMEINCONSISTENCY, UNIMPLEMENTED, BADARGUMENTS
		withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
			holder, waiter := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
			holder.Answer(opGetData, code)
			lock := acquire(t, holder, "k")
			time.Sleep(virtualSession)
			waiter.Answer(opGetData, code) // of its own znode, or of that before it
			result := make(chan error, 1)
			go func() {
				next, err := waiter.Acquire(inTime(t), "k")
				if err == nil {
					err = next.Release(inTime(t))
				}
				result <- err
			}()
			time.Sleep(virtualSession)
			if err := lock.Release(inTime(t)); err != nil {
				t.Errorf("%d: the lock: %v", code, err)
			}
			if err := <-result; errors.Is(err, context.DeadlineExceeded) || errors.Is(err, holdfast.ErrDenied) {
				t.Errorf("%d: %v", code, err)
			}
			time.Sleep(virtualSession)
			if left := e.Children(virtualRoot + "/k"); len(left) > 0 {
				t.Errorf("%d: left behind: %q", code, left)
			}
		})
	}
}

// A try cannot delete its node, since the server is too busy, and asks the caller's Retry, which refuses once and then allows another
// attempt. The holder has released the key meanwhile. The node, which the background deletes, is not granted the lock.
func TestTry_DeletionRefused_NotGrantedByItsOldNode(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		slow, quick := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		first := acquire(t, quick, "k")
		busy, asked := 0, 0
		slow.Throttle(func(kind int32) bool {
			if kind == opDelete {
				busy++
			}
			return kind == opDelete && busy <= 7
		})
		retry := holdfast.Retry{Delay: func(int) (time.Duration, bool) {
			if asked++; asked > 1 {
				return time.Millisecond, true
			}
			if err := first.Release(t.Context()); err != nil {
				t.Error(err)
			}
			return 0, false
		}}
		lock, err := slow.TryAcquire(t.Context(), "k", holdfast.WithReclaim(), holdfast.WithOwner("me"), holdfast.WithRetry(retry))
		if asked == 0 {
			t.Error("no deletion was refused")
		}
		if err == nil {
			time.Sleep(virtualSession / 4)
			if err := lock.Err(); err != nil {
				t.Error(err)
			}
			if nodes := e.Children(virtualRoot + "/k"); len(nodes) != 1 {
				t.Errorf("the node of a live lock is gone: %q", nodes)
			}
		}
	})
}
