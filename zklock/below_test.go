package zklock_test

import (
	"bytes"
	"context"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// These are named as permits are.
const (
	hexKey   = "/app/0123456789abcdef0123456789abcdef" // kazoo's
	leaseKey = "/app/leases/release-1732792601"        // Curator's
)

// Z77. A lock on a key is no business of a key whose path it is below, whatever its name.
func TestLockBelowLocks(t *testing.T) {
	for _, keys := range [][]string{
		{"/app/locks/job", "/app/locks", "/app"},
		{"/app/leases/job", "/app"},
		{"/app/leases", "/app"},
		{"/app/leases/job", "/app/leases", hexKey, "/app"},
		{"/app/leases/job", "/app/locks/job", "/app"},
		{hexKey, "/app"},
		{"/app/release-1732792601", "/app"}, // ends as Curator's permits do
		{leaseKey, "/app"},
		{"/app/leases/job", "/app/locks/thread-1732792601", "/app"}, // and as places do
	} {
		for name, names := range map[string]zklock.Names{"curator": zklock.CuratorNames, "kazoo": zklock.KazooNames} {
			t.Run(name+path.Join(keys...), func(t *testing.T) {
				withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
					client, other := dialWired(t, e, zklock.Options{Names: names}), dialWired(t, e, zklock.Options{})
					for _, key := range keys {
						told := observed(t, other, key)
						lock, err := client.TryAcquire(inTime(t), key)
						if err != nil {
							t.Fatalf("%s: %v", key, err)
						}
						time.Sleep(time.Second)
						if all := told(); len(all) == 0 || all[len(all)-1] != lock.Token() {
							t.Errorf("%s: told of %v, want %v in the end", key, all, lock.Token())
						}
						for info, err := range other.List(inTime(t), key) {
							if err != nil || info.Key == key && info.Token != lock.Token() {
								t.Errorf("%s: listed as %+v, %v; want %v", key, info, err, lock.Token())
							}
						}
						if key != "/app" {
							continue
						}
						if err := lock.Release(inTime(t)); err != nil {
							t.Fatal(err)
						}
						time.Sleep(time.Second)
						info, err := other.Inspect(inTime(t), key)
						if all := told(); err != nil || info.Held || all[len(all)-1] != 0 {
							t.Errorf("%s: told of %v, and by Inspect of %+v, %v; want nobody", key, all, info, err)
						}
						acquire(t, client, key)
					}
				})
			})
		}
	}
}

// Z77. Whoever wants a permit of a key is not refused because of locks and permits of a key below it, and reclaims none of them, nor the
// znode of that key.
func TestPermitAboveLocks(t *testing.T) {
	const owner = "3" // as the data of a key of which there are so many permits
	for _, key := range []string{"/app/leases", "/app/leases/job", leaseKey, hexKey} {
		for name, mode := range map[string][]holdfast.Option{"lock": nil, "permit": {holdfast.WithLimit(3)}} {
			for form, names := range map[string][2]zklock.Names{ // below, and above
				"curator":                 {},
				"kazoo":                   {zklock.CuratorNames, zklock.KazooNames},
				"kazoo's below Curator's": {zklock.KazooNames, zklock.CuratorNames},
			} {
				t.Run(form+key+"/"+name, func(t *testing.T) {
					withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
						client, other := dialWired(t, e, zklock.Options{Names: names[0]}), dialWired(t, e, zklock.Options{Names: names[1]})
						lock, err := client.TryAcquire(inTime(t), key, append(mode, holdfast.WithOwner(owner))...)
						if err != nil {
							t.Fatal(err)
						}
						for _, opts := range [][]holdfast.Option{nil, {holdfast.WithReclaim(), holdfast.WithOwner(owner)}} {
							permit, err := other.TryAcquire(inTime(t), "/app", append(opts, holdfast.WithLimit(3))...)
							if err != nil {
								t.Fatal(err)
							}
							info, err := client.Inspect(inTime(t), "/app")
							if err != nil || info.Token != permit.Token() || len(info.Holders) != 1 {
								t.Errorf("held by %+v, %v; want the permit", info, err)
							}
							if err := permit.Release(inTime(t)); err != nil {
								t.Fatal(err)
							}
						}
						if err := lock.Verify(inTime(t)); err != nil {
							t.Error(err)
						}
					})
				})
			}
		}
	}
}

// Z77. The znode of such a key is removed, as it is when nobody has used it for a while, between two looks at it: nobody is refused for that.
func TestKeyBelowIsRemoved(t *testing.T) {
	limited := []holdfast.Option{holdfast.WithLimit(2)}
	for name, c := range map[string]struct {
		below string
		names zklock.Names // of who wants the key above
		opts  []holdfast.Option
		after string // what it has made by then
		other string // a program's own znode, which ends with its session
	}{
		"lock":                     {leaseKey, zklock.CuratorNames, nil, "-lock-", ""},
		"permit beside kazoo's":    {hexKey, zklock.CuratorNames, limited, "-lease-", ""},
		"kazoo's beside Curator's": {leaseKey, zklock.KazooNames, limited, "__lease__", ""},
		"lock beside a worker":     {hexKey, zklock.CuratorNames, nil, "-lock-", "/app/worker"},
		"permit beside a worker":   {hexKey, zklock.CuratorNames, limited, "-lease-", "/app/worker"},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				client, other := dialWired(t, e, zklock.Options{Names: c.names}), dialWired(t, e, zklock.Options{})
				lock, err := other.TryAcquire(inTime(t), c.below)
				if err != nil {
					t.Fatal(err)
				}
				if err := lock.Release(inTime(t)); err != nil {
					t.Fatal(err)
				}
				if c.opts != nil { // what a permit needs is there, so nobody looks once more for that
					permit, err := client.TryAcquire(inTime(t), "/app", c.opts...)
					if err != nil {
						t.Fatal(err)
					}
					if err := permit.Release(inTime(t)); err != nil {
						t.Fatal(err)
					}
				}
				if c.other != "" {
					if _, err := other.Conn().Create(c.other, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
						t.Fatal(err)
					}
				}
				made, removed := false, false
				client.sends(func(frame []byte) {
					made = made || bytes.Contains(frame, []byte(c.after))
					if made && !removed && bytes.Contains(frame, []byte(c.below)) {
						removed = true
						if err := other.Conn().Delete(c.below, -1); err != nil {
							t.Error(err)
						}
					}
				})
				if _, err := client.Acquire(inTime(t), "/app", c.opts...); err != nil {
					t.Error(err)
				}
				if !removed {
					t.Error("it did not look")
				}
			})
		})
	}
}

// Z77. Who has a permit of a key named as what Curator calls the queue of a semaphore does not stand in a queue: a lock on the key above is
// granted, and shown.
func TestLockAbovePermit(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{Names: zklock.KazooNames})
		permit, err := client.TryAcquire(inTime(t), "/app", holdfast.WithLimit(1)) // leaves what a semaphore has
		if err != nil {
			t.Fatal(err)
		}
		if err := permit.Release(inTime(t)); err != nil {
			t.Fatal(err)
		}
		if _, err := other.TryAcquire(inTime(t), "/app/locks", holdfast.WithLimit(1)); err != nil {
			t.Fatal(err)
		}
		lock, err := client.TryAcquire(inTime(t), "/app")
		if err != nil {
			t.Fatal(err)
		}
		if info, err := client.Inspect(inTime(t), "/app"); err != nil || info.Token != lock.Token() {
			t.Errorf("held by %+v, %v; want the lock", info, err)
		}
	})
}

// Z77. A key below takes a permit away from those who come later, and hides none who has one.
func TestPermitBesideLaterKeys(t *testing.T) {
	for name, c := range map[string]struct {
		names zklock.Names
		below string
	}{
		"curator": {below: "/app/leases/job"},
		"kazoo":   {names: zklock.KazooNames, below: "/app/job"},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				client, other := dialWired(t, e, zklock.Options{Names: c.names}), dialWired(t, e, zklock.Options{})
				permit, err := client.Acquire(inTime(t), "/app", holdfast.WithLimit(1))
				if err != nil {
					t.Fatal(err)
				}
				acquire(t, other, c.below)
				info, err := client.Inspect(inTime(t), "/app")
				if err != nil || info.Token != permit.Token() {
					t.Errorf("held by %+v, %v; want the permit", info, err)
				}
				told := observed(t, client, "/app")
				time.Sleep(time.Second)
				if all := told(); len(all) == 0 || all[len(all)-1] != permit.Token() {
					t.Errorf("told of %v, want %v", all, permit.Token())
				}
				if _, err := client.TryAcquire(inTime(t), "/app", holdfast.WithLimit(1)); err == nil {
					t.Error("a second permit of one")
				}
			})
		})
	}
}

// Z77. The znode of a key below is removed while somebody looks who has the permits: each of them is shown.
func TestPermitsAsAKeyGoes(t *testing.T) {
	for name, c := range map[string]struct {
		names zklock.Names
		below string
	}{
		"curator":              {below: "/app/leases/job"},
		"kazoo":                {names: zklock.KazooNames, below: "/app/job"},
		"curator, as a permit": {below: leaseKey},
		"kazoo, as a permit":   {names: zklock.KazooNames, below: hexKey},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				client, other := dialWired(t, e, zklock.Options{Names: c.names}), dialWired(t, e, zklock.Options{})
				limited := holdfast.WithLimit(2)
				for range 2 {
					if _, err := client.TryAcquire(inTime(t), "/app", limited); err != nil {
						t.Fatal(err)
					}
				}
				lock, err := other.TryAcquire(inTime(t), c.below)
				if err != nil {
					t.Fatal(err)
				}
				if err := lock.Release(inTime(t)); err != nil {
					t.Fatal(err)
				}
				removed := false
				client.sends(func(frame []byte) {
					if !removed && bytes.Contains(frame, []byte(c.below)) {
						removed = true
						if err := other.Conn().Delete(c.below, -1); err != nil {
							t.Error(err)
						}
					}
				})
				info, err := client.Inspect(inTime(t), "/app")
				if err != nil || len(info.Holders) != 2 || !removed {
					t.Errorf("held by %+v, %v; want both", info, err)
				}
			})
		})
	}
}

// Z77. A permit goes while somebody looks for permits, and the next one has come: it is shown. An observer looks twice: at a list that it
// reads, and at one that it watches if nobody is in the first.
func TestNextPermitIsShown(t *testing.T) {
	const first, next = "/app/0123456789abcdef0123456789abcdef", "/app/fedcba9876543210fedcba9876543210"
	inspect := func(ctx context.Context, of *zklock.Client) (holdfast.Info, error) { return of.Inspect(ctx, "/app") }
	observe := func(ctx context.Context, of *zklock.Client) (holdfast.Info, error) {
		for info, err := range of.Observe(ctx, "/app") {
			return info, err
		}
		return holdfast.Info{}, ctx.Err()
	}
	for name, c := range map[string]struct {
		look    func(ctx context.Context, of *zklock.Client) (holdfast.Info, error)
		watched bool // the first permit comes as late as the second list is read
	}{
		"Inspect":                 {look: inspect},
		"Observe":                 {look: observe},
		"Observe, a watched list": {look: observe, watched: true},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				client, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
				create := func(path, data string, flags int32) {
					if _, err := other.Conn().Create(path, []byte(data), flags, zk.WorldACL(zk.PermAll)); err != nil {
						t.Error(err)
					}
				}
				create("/app", "2", 0)
				come, gone := !c.watched, false
				if come {
					create(first, "", zk.FlagEphemeral)
				}
				client.sends(func(frame []byte) {
					switch {
					case !come && bytes.HasSuffix(frame, []byte("/app\x01")): // a read with a watch
						come = true
						create(first, "", zk.FlagEphemeral)
					case !gone && bytes.Contains(frame, []byte(first)):
						gone = true
						create(next, "", zk.FlagEphemeral)
						if err := other.Conn().Delete(first, -1); err != nil {
							t.Error(err)
						}
					}
				})
				info, err := c.look(inTime(t), client.Client)
				if err != nil || !gone || len(info.Holders) != 1 || !strings.HasSuffix(next, info.Grant) {
					t.Errorf("held by %+v, %v; want the next one", info, err)
				}
			})
		})
	}
}

// Z77. A key below takes a permit away from who came after it: that is not shown, as it is about to give up.
func TestPermitAfterKeys(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		acquire(t, other, "/app/leases/job")
		permit, err := client.TryAcquire(inTime(t), "/app", holdfast.WithLimit(2))
		if err != nil {
			t.Fatal(err)
		}
		_, err = other.Conn().Create("/app/leases/_c_0-lease-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil {
			t.Fatal(err)
		}
		info, err := client.Inspect(inTime(t), "/app")
		if err != nil || info.Token != permit.Token() || len(info.Holders) != 1 {
			t.Errorf("held by %+v, %v; want the permit", info, err)
		}
	})
}
