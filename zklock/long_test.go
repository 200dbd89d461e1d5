package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// crowd puts more znodes into the queue of key "k" than can be listed.
func crowd(t *testing.T, w *wired) {
	t.Helper()
	const each, length = 2000, 200
	for i := range 17 << 20 / each / length {
		creations := make([]any, each)
		for j := range creations {
			name := fmt.Sprintf("%s/k/%s-%d-%d", virtualRoot, strings.Repeat("x", length), i, j)
			creations[j] = &zk.CreateRequest{Path: name, Acl: zk.WorldACL(zk.PermAll)}
		}
		if _, err := w.Conn().Multi(creations...); err != nil {
			t.Fatal(err)
		}
	}
}

// Z26. The queue of a key is longer than what is read of an answer. Calls for that key say so, and nothing else is disturbed: not the
// client's other locks, and not its connection.
func TestQueueTooLong(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		lock := acquire(t, client, "another")
		acquire(t, client, "k") // makes the parent
		crowd(t, other)
		before, queue := client.dials.Load(), len(e.Children(virtualRoot+"/k"))
		for name, call := range map[string]func() error{
			"Acquire":    func() error { _, err := client.Acquire(inTime(t), "k"); return err },
			"TryAcquire": func() error { _, err := client.TryAcquire(inTime(t), "k"); return err },
			"Inspect":    func() error { _, err := client.Inspect(inTime(t), "k"); return err },
			"Observe": func() error {
				for _, err := range client.Observe(inTime(t), "k") {
					if err != nil {
						return err
					}
				}
				return nil
			},
			"List": func() error {
				for _, err := range client.List(inTime(t), "") {
					if err != nil {
						return err
					}
				}
				return nil
			},
		} {
			began := time.Now()
			err := call()
			if err == nil || !strings.Contains(err.Error(), "16 MiB") || !strings.Contains(err.Error(), "/k") || errors.Is(err, holdfast.ErrDisconnected) {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(began); took > virtualSession {
				t.Errorf("%s took %v", name, took)
			}
		}
		time.Sleep(10 * virtualSession)
		if n := client.dials.Load() - before; n > 0 {
			t.Errorf("%d connections more", n)
		}
		if n := len(e.Children(virtualRoot + "/k")); n != queue {
			t.Errorf("the queue had %d znodes, and has %d", queue, n)
		}
		if err := lock.Err(); err != nil {
			t.Error(err)
		}
	})
}

// slowConn is a connection of so many bytes per second.
type slowConn struct {
	net.Conn
	rate int
}

func (c *slowConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b[:min(len(b), 64<<10)])
	time.Sleep(time.Duration(n) * time.Second / time.Duration(c.rate))
	return n, err
}

// Z26. Such an answer takes longer than a heartbeat waits, so the connection is left. The call has failed by then, and is not repeated.
func TestQueueTooLongOverASlowLink(t *testing.T) {
	for _, rate := range []int{4 << 20, 100 << 10} {
		t.Run(fmt.Sprint(rate>>10, " KiB per s"), func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				other := dialWired(t, e, zklock.Options{})
				acquire(t, other, "k")
				crowd(t, other)
				link := e.Link()
				var dials atomic.Int32
				ctx := network.With(t.Context(), func(ctx context.Context, network, address string) (net.Conn, error) {
					dials.Add(1)
					conn, err := link.Dial(ctx, network, address)
					if err != nil {
						return nil, err
					}
					return &slowConn{conn, rate}, nil
				})
				client, err := zklock.Dial(ctx, e.Addrs()[:1], &zklock.Options{Root: virtualRoot, SessionTimeout: virtualSession})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close(context.Background())
				lock, err := client.Acquire(t.Context(), "another")
				if err != nil {
					t.Fatal(err)
				}
				if _, err = client.Inspect(inTime(t), "k"); err == nil || !strings.Contains(err.Error(), "16 MiB") {
					t.Errorf("Inspect: %v", err)
				}
				time.Sleep(10 * virtualSession)
				if n := dials.Load(); n > 3 {
					t.Errorf("%d connections", n)
				}
				if err := lock.Err(); err != nil {
					t.Errorf("the lock: %v", err)
				}
			})
		})
	}
}
