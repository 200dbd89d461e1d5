package zklock_test

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// workers are by the forms of names where a program may have a znode of its own beside the permits of "/app".
var workers = map[zklock.Names]string{zklock.CuratorNames: "/app/leases/worker", zklock.KazooNames: "/app/worker"}

// Z77. A program has ephemeral znodes of its own beside permits. They take permits away, as Curator and kazoo count, but have none: those who
// have are told of, and others are refused because of them.
func TestWorkerHasNoPermit(t *testing.T) {
	for names, worker := range workers {
		t.Run(names.String(), func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				client, other := dialWired(t, e, zklock.Options{Names: names}), dialWired(t, e, zklock.Options{})
				permit, err := client.TryAcquire(inTime(t), "/app", holdfast.WithLimit(1))
				if err != nil {
					t.Fatal(err)
				}
				told := observed(t, client, "/app")
				other.create(t, worker, nil, zk.FlagEphemeral)
				time.Sleep(time.Second)
				for _, token := range told() {
					if token != permit.Token() {
						t.Errorf("told of %v, want %v", token, permit.Token())
					}
				}
				info, err := client.Inspect(inTime(t), "/app")
				if err != nil || info.Token != permit.Token() || len(info.Holders) != 1 {
					t.Errorf("held by %+v, %v; want the permit", info, err)
				}
				if _, err := client.TryAcquire(inTime(t), "/app", holdfast.WithLimit(1)); err == nil {
					t.Error("a second permit of one")
				}
				if err := permit.Release(inTime(t)); err != nil {
					t.Fatal(err)
				}
				if info, err := client.Inspect(inTime(t), "/app"); err != nil || info.Held {
					t.Errorf("held by %+v, %v; want nobody", info, err)
				}
				time.Sleep(time.Second)
				if all := told(); len(all) != 2 || all[0] != permit.Token() || all[1] != 0 {
					t.Errorf("told of %v, want the permit and then nobody", all)
				}
			})
		})
	}
}

// Z77. Nor is a lock refused for an older znode of that kind: it is shown, even while a permit is there that came after it.
func TestWorkerBeforeALock(t *testing.T) {
	for names, worker := range workers {
		t.Run(names.String(), func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				client, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
				other.create(t, "/app", nil, 0)
				late := hexKey
				if dir := path.Dir(worker); dir != "/app" {
					other.create(t, dir, nil, 0)
					late = dir + "/_c_9b2a0c1e-5d0f-4f43-8a59-0a6c7e1d2b3f-lease-0000000001"
				}
				other.create(t, worker, nil, zk.FlagEphemeral)
				lock, err := client.TryAcquire(inTime(t), "/app")
				if err != nil {
					t.Fatal(err)
				}
				other.create(t, late, nil, zk.FlagEphemeral)
				if info, err := client.Inspect(inTime(t), "/app"); err != nil || info.Token != lock.Token() {
					t.Errorf("held by %+v, %v; want the lock", info, err)
				}
			})
		})
	}
}

// Z77. Such a znode has the owner's name for its data: whoever reclaims permits leaves it alone.
func TestWorkerIsNotReclaimed(t *testing.T) {
	for names, worker := range workers {
		t.Run(names.String(), func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				client, other := dialWired(t, e, zklock.Options{Names: names}), dialWired(t, e, zklock.Options{Names: names})
				options := []holdfast.Option{holdfast.WithLimit(2), holdfast.WithOwner("me"), holdfast.WithReclaim()}
				former, err := other.TryAcquire(inTime(t), "/app", options...)
				if err != nil {
					t.Fatal(err)
				}
				other.create(t, worker, []byte("me"), zk.FlagEphemeral)
				if _, err := client.Acquire(inTime(t), "/app", options...); err != nil {
					t.Fatal(err)
				}
				if err := former.Verify(inTime(t)); err == nil {
					t.Error("the former permit was not reclaimed")
				}
				if there, _, err := other.Conn().Exists(worker); err != nil || !there {
					t.Errorf("the worker's znode is gone, %v", err)
				}
			})
		})
	}
}

// create makes a znode as other programs do.
func (c *wired) create(t *testing.T, path string, data []byte, flags int32) {
	t.Helper()
	if _, err := c.Conn().Create(path, data, flags, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
}

// Z77. Many keys below a key are named as permits of kazoo's are, and one after the other goes while somebody looks: each of the others is
// looked at once.
func TestKeysBelowComeAndGo(t *testing.T) {
	const keys = 100
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		create := func(path string) {
			if _, err := other.Conn().Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
				t.Error(err)
			}
		}
		lasting := func(i int) string { return fmt.Sprintf("/app/%032x", i) }
		passing := func(i int) string { return fmt.Sprintf("/app/%s%08x", strings.Repeat("f", 24), i) }
		create("/app")
		for i := range keys {
			create(lasting(i))
		}
		create(passing(0))
		looked, gone := 0, 0
		client.sends(func(frame []byte) {
			if !bytes.Contains(frame, []byte("/app/00000000")) {
				return
			}
			looked++
			if looked%keys == 1 && gone < 10 {
				create(passing(gone + 1))
				if err := other.Conn().Delete(passing(gone), -1); err != nil {
					t.Error(err)
				}
				gone++
			}
		})
		if info, err := client.Inspect(inTime(t), "/app"); err != nil || info.Held {
			t.Errorf("held by %+v, %v; want nobody", info, err)
		}
		if looked != keys {
			t.Errorf("looked %d times at %d keys", looked, keys)
		}
	})
}

// Z77. A key below is named as a permit of kazoo's is, and only others may read it. That is nothing to the key above, where a
// server tells anybody that there is a znode.
func TestKeyBelowIsSecret(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		create := func(path string, acl []zk.ACL) {
			if _, err := other.Conn().Create(path, nil, 0, acl); err != nil {
				t.Fatal(err)
			}
		}
		create("/app", zk.WorldACL(zk.PermAll))
		create(hexKey, zk.WorldACL(zk.PermAll&^zk.PermRead))
		lock, err := client.TryAcquire(inTime(t), "/app")
		if err != nil {
			t.Fatal(err)
		}
		if info, err := client.Inspect(inTime(t), "/app"); err != nil || info.Token != lock.Token() {
			t.Errorf("held by %+v, %v; want the lock", info, err)
		}
	})
}
