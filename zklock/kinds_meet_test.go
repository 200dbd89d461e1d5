package zklock_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// createNode creates a node as another client would, and returns its zxid.
func createNode(t *testing.T, client *wired, path, data string, flags int32) int64 {
	t.Helper()
	name, err := client.Conn().Create(virtualRoot+"/"+path, []byte(data), flags, zk.WorldACL(zk.PermAll))
	if err != nil {
		t.Fatal(err)
	}
	_, stat, err := client.Conn().Exists(name)
	if err != nil {
		t.Fatal(err)
	}
	return stat.Czxid
}

// observed collects the tokens that an observer of a key is told, 0 for nobody. What it returns returns them.
func observed(t *testing.T, client *wired, key string) func() []holdfast.Token {
	t.Helper()
	var told []holdfast.Token
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for info, err := range client.Observe(ctx, key) {
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			if !info.Stale {
				told = append(told, info.Token)
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return func() []holdfast.Token {
		synctest.Wait()
		return told
	}
}

// Z46. A lock knows a semaphore by its leases. If there was nothing for them when it came, it was granted, also if somebody was
// waiting for a permit already, who is refused: observers tell of the lock.
func TestLockAfterAPlace(t *testing.T) {
	for name, c := range map[string]struct {
		names zklock.Names
		place []string // the znodes, the place last
		lease []string
	}{
		"curator": {zklock.CuratorNames, []string{"k/locks", "k/locks/_c_0-lock-"}, []string{"k/leases", "k/leases/_c_0-lease-0000000000"}},
		"kazoo": {
			zklock.KazooNames,
			[]string{"k-__lock__", "k-__lock__/0123456789abcdef0123456789abcdef__lock__"},
			[]string{"k/0123456789abcdef0123456789abcdef"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				opts := zklock.Options{Names: c.names}
				client, other := dialWired(t, e, opts), dialWired(t, e, opts)
				acquire(t, other, "another") // makes the root
				createNode(t, other, "k", "2", 0)
				createNode(t, other, c.place[0], "", 0)
				createNode(t, other, c.place[1], "", zk.FlagEphemeral|zk.FlagSequence)
				lock := acquire(t, client, "k")
				told := observed(t, client, "k")
				time.Sleep(time.Second)
				for i, path := range c.lease {
					flags := int32(0)
					if i == len(c.lease)-1 {
						flags = zk.FlagEphemeral
					}
					createNode(t, other, path, "", flags)
					time.Sleep(time.Second)
				}
				late := observed(t, other, "k")
				time.Sleep(time.Second)
				info, err := other.Inspect(inTime(t), "k")
				if want := []holdfast.Token{lock.Token()}; err != nil || info.Token != want[0] || !slices.Equal(told(), want) || !slices.Equal(late(), want) {
					t.Errorf("told of %v and %v, and by Inspect of %v, %v; want %v", told(), late(), info.Token, err, want)
				}
			})
		})
	}
}

// Z45. Whoever takes a permit has looked for a lock before it made its lease. One that was taken since then has found no lease, and
// is seen by the look at what there is afterwards. So not both hold.
func TestLockBeforeTheLease(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		quick, slow := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		acquire(t, quick, "another") // makes the root
		slow.Delay(50 * time.Millisecond)
		var locks, permits int
		for after := time.Duration(0); after < 400*time.Millisecond; after += 10 * time.Millisecond {
			key := "k" + strconv.Itoa(int(after.Milliseconds()))
			first, err := quick.TryAcquire(inTime(t), key, holdfast.WithLimit(2)) // makes it a semaphore
			if err != nil {
				t.Fatal(err)
			}
			if err := first.Release(inTime(t)); err != nil {
				t.Fatal(err)
			}
			result := make(chan error, 1)
			go func() {
				time.Sleep(after)
				_, err := quick.TryAcquire(inTime(t), key)
				result <- err
			}()
			_, late := slow.TryAcquire(inTime(t), key, holdfast.WithLimit(2))
			early := <-result
			switch {
			case early == nil && late == nil:
				t.Errorf("after %v: both hold", after)
			case early == nil:
				locks++
			case late == nil:
				permits++
			}
			if err := errors.Join(early, late); !errors.Is(err, driver.ErrMismatch) {
				t.Errorf("after %v: %v and %v", after, late, early)
			}
		}
		if locks == 0 || permits == 0 {
			t.Errorf("%d locks and %d permits were taken, want some of both", locks, permits)
		}
		t.Logf("%d locks and %d permits were taken", locks, permits)
	})
}

// Z71. A key is removed while it is looked at, by an operator or since it is empty: whoever looks finds that it is free.
func TestKeyGoesAsItIsLookedAt(t *testing.T) {
	for name, c := range map[string]struct {
		names zklock.Names
		lease bool
		lists string // before which the key goes
		nth   int
		call  func(t *testing.T, client *wired) error
	}{
		"a permit beside another form of names": {zklock.KazooNames, false, "/k/leases", 1, func(t *testing.T, client *wired) error {
			_, err := client.Acquire(inTime(t), "k", holdfast.WithLimit(1))
			return err
		}},
		"Inspect of a semaphore": {zklock.CuratorNames, true, "/k", 2, func(t *testing.T, client *wired) error {
			info, err := client.Inspect(inTime(t), "k")
			if info.Held {
				t.Errorf("held by %+v", info)
			}
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				client, other := dialWired(t, e, zklock.Options{Names: c.names}), dialWired(t, e, zklock.Options{})
				acquire(t, other, "another") // makes the root
				key := virtualRoot + "/k"
				paths := []string{key + "/leases", key}
				createNode(t, other, "k", "1", 0)
				createNode(t, other, "k/leases", "", 0)
				if c.lease {
					createNode(t, other, "k/leases/_c_0-lease-", "", zk.FlagEphemeral|zk.FlagSequence)
					paths = append([]string{key + "/leases/" + e.Children(key + "/leases")[0]}, paths...)
				}
				lists := 0
				client.sends(func(frame []byte) {
					if path, _ := listing(frame); path != virtualRoot+c.lists {
						return
					}
					if lists++; lists != c.nth {
						return
					}
					for _, path := range paths {
						if err := other.Conn().Delete(path, -1); err != nil {
							t.Error(err)
						}
					}
				})
				if err := c.call(t, client); err != nil || lists < c.nth {
					t.Errorf("after %d lists: %v", lists, err)
				}
			})
		})
	}
}

// Z45. A permit of kazoo's is given back while a lock on the key looks at it: the lock is refused all the same, if others wait for that permit,
// or somebody has one in Curator's form. kazoo's next holder would not look for locks.
func TestLockAsAPermitGoes(t *testing.T) {
	const permit = "k/0123456789abcdef0123456789abcdef"
	const place = "k-__lock__/0123456789abcdef0123456789abcdef__lock__"
	for name, c := range map[string]struct {
		paths []string // the znodes of who holds or waits, that one last
		after int64    // requests since it was read; 0: before that
	}{
		"others wait":   {[]string{"k-__lock__", place}, 0},
		"... after":     {[]string{"k-__lock__", place}, 1},
		"another form":  {[]string{"k/leases", "k/leases/_c_0-lease-"}, 0},
		"... and after": {[]string{"k/leases", "k/leases/_c_0-lease-"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				client, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
				acquire(t, other, "another") // makes the root
				createNode(t, other, "k", "2", 0)
				createNode(t, other, c.paths[0], "", 0)
				createNode(t, other, c.paths[1], "", zk.FlagEphemeral|zk.FlagSequence)
				createNode(t, other, permit, "", zk.FlagEphemeral)
				var sent atomic.Int64 // from the read on
				client.sends(func(frame []byte) {
					if sent.Load() == 0 && !bytes.Contains(frame, []byte(permit)) || sent.Add(1) != c.after+1 {
						return
					}
					if err := other.Conn().Delete(virtualRoot+"/"+permit, -1); err != nil {
						t.Error(err)
					}
				})
				if _, err := client.Acquire(inTime(t), "k"); !errors.Is(err, driver.ErrMismatch) || sent.Load() <= c.after {
					t.Errorf("%v; want it refused", err)
				}
			})
		})
	}
}

// Z73. What a semaphore in Curator's form has left below a key is no permit in kazoo's form, and does not keep anybody from another limit.
func TestKazooPermitWhereCuratorsWere(t *testing.T) {
	for name, left := range map[string][]string{"leases": {"leases"}, "locks": {"locks"}, "both": {"leases", "locks"}} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				former, next := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{Names: zklock.KazooNames})
				lock, err := former.Acquire(inTime(t), "k", holdfast.WithLimit(1))
				if err != nil {
					t.Fatal(err)
				}
				if err := lock.Release(inTime(t)); err != nil {
					t.Fatal(err)
				}
				for _, node := range []string{"leases", "locks"} {
					path := virtualRoot + "/k/" + node
					there, _, err := former.Conn().Exists(path)
					switch want := slices.Contains(left, node); {
					case err != nil:
						t.Fatal(err)
					case want && !there:
						createNode(t, former, "k/"+node, "", 0)
					case there && !want:
						if err := former.Conn().Delete(path, -1); err != nil {
							t.Fatal(err)
						}
					}
				}
				for _, limit := range []int{1, 2} {
					lock, err := next.TryAcquire(inTime(t), "k", holdfast.WithLimit(limit))
					if err != nil {
						t.Fatalf("limit %d: %v", limit, err)
					}
					if err := lock.Release(inTime(t)); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}
