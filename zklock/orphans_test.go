package zklock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestOrphans_LongRefusedOrCutOff_Deleted: a node whose deletion is refused goes as soon as the client may delete it, after 70 session
// timeouts too in which it may not list the queue, or has no server.
func TestOrphans_LongRefusedOrCutOff_Deleted(t *testing.T) {
	for name, c := range map[string]struct {
		perms int32
		away  bool
	}{"may not list": {zk.PermAdmin, false}, "no server": {zk.PermAll &^ zk.PermDelete, true}} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				client, operator := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
				lock, path := acquire(t, client, "k"), virtualRoot+"/k"
				allow := func(perms int32) {
					t.Helper()
					if _, err := operator.Conn().SetACL(path, zk.WorldACL(perms), -1); err != nil {
						t.Fatal(err)
					}
				}
				allow(c.perms)
				if err := lock.Release(inTime(t)); err == nil {
					t.Error("Release returns nil, and the server has refused it")
				}
				if c.away {
					e.Kill(0)
				}
				time.Sleep(70 * virtualSession)
				if c.away {
					e.Start(0)
					time.Sleep(virtualSession / 2)
				}
				allow(zk.PermAll)
				time.Sleep(2 * virtualSession)
				if left := e.Children(path); len(left) > 0 {
					t.Errorf("there is %q", left)
				}
			})
		})
	}
}

// TestOrphans_ManyRefused_FewRequests: a refused deletion does not repeat all those that were refused before.
func TestOrphans_ManyRefused_FewRequests(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{ParentACL: zk.WorldACL(zk.PermAll &^ zk.PermDelete)})
		before := client.requests.Load()
		for i := range 100 {
			_ = acquire(t, client, fmt.Sprint(i)).Release(t.Context())
			time.Sleep(20 * time.Millisecond)
		}
		if n := client.requests.Load() - before; n > 1500 {
			t.Errorf("%d requests for 100 locks", n)
		}
	})
}

// TestWait_AnotherHolderWrites_LostEventIsFound: writes of a holder do not keep a waiter from asking about the node of another one.
func TestWait_AnotherHolderWrites_LostEventIsFound(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		var locks []*holdfast.Lock
		for range 2 {
			lock, err := dialWired(t, e, zklock.Options{}).Acquire(t.Context(), "k", holdfast.WithLimit(2))
			if err != nil {
				t.Fatal(err)
			}
			locks = append(locks, lock)
		}
		waiter, granted := dialWired(t, e, zklock.Options{}), make(chan error, 1)
		go func() {
			_, err := waiter.Acquire(t.Context(), "k", holdfast.WithLimit(2))
			granted <- err
		}()
		time.Sleep(time.Second)
		waiter.LoseEvents(true)
		if err := locks[0].Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		waiter.LoseEvents(false)
		for i := range 6 {
			time.Sleep(virtualSession)
			if err := locks[1].SetData(t.Context(), fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case err := <-granted:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("the waiter has no permit after six session timeouts")
		}
	})
}
