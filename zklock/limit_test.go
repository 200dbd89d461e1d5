package zklock_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// Z43. Whoever has read a limit makes no lease if it has been replaced meanwhile: an observer would take that for a permit.
func TestLimitIsReplacedBeforeTheLease(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		quick, slow := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		slow.Delay(50 * time.Millisecond)
		granted := []holdfast.Token{0}
		told := observed(t, quick, "k")
		take := func(client *wired, limit int) error {
			lock, err := client.TryAcquire(inTime(t), "k", holdfast.WithLimit(limit))
			if err != nil {
				return err
			}
			granted = append(granted, lock.Token())
			time.Sleep(time.Second)
			return lock.Release(inTime(t))
		}
		replaced := 0
		for after := time.Duration(0); after < 300*time.Millisecond; after += 10 * time.Millisecond {
			if err := take(quick, 2); err != nil {
				t.Fatal(err)
			}
			result := make(chan error, 1)
			go func() {
				time.Sleep(after)
				result <- take(quick, 3)
			}()
			late := take(slow, 2)
			early := <-result
			if late == nil == (early == nil) || !errors.Is(errors.Join(early, late), driver.ErrMismatch) {
				t.Errorf("after %v: %v and %v", after, late, early)
			}
			if early == nil {
				replaced++
			}
		}
		for _, token := range told() {
			if !slices.Contains(granted, token) {
				t.Errorf("an observer was told of token %d, and nobody has had that", token)
			}
		}
		t.Logf("%d limits were replaced", replaced)
	})
}

// places is where those who wait for a permit of the key k stand.
func places(names zklock.Names) string {
	if names == zklock.KazooNames {
		return virtualRoot + "/k-__lock__/"
	}
	return virtualRoot + "/k/locks/"
}

// Z75. Whoever has read a limit, and finds no permit free, does not wait for one of that limit if it has been replaced before its place
// stands: it would keep those permits from everybody that are more now.
func TestLimitIsReplacedBeforeThePlace(t *testing.T) {
	for name, names := range map[string]zklock.Names{"curator": zklock.CuratorNames, "kazoo": zklock.KazooNames} {
		for _, outage := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " in an outage"}[outage], func(t *testing.T) {
				withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
					opts := zklock.Options{Names: names}
					first, old, next, third := dialWired(t, e, opts), dialWired(t, e, opts), dialWired(t, e, opts), dialWired(t, e, opts)
					held, err := first.Acquire(inTime(t), "k", holdfast.WithLimit(1))
					if err != nil {
						t.Fatal(err)
					}
					replace := func() {
						if err := held.Release(inTime(t)); err != nil {
							t.Error(err)
						}
						if _, err := next.Acquire(inTime(t), "k", holdfast.WithLimit(3)); err != nil {
							t.Error(err)
						}
					}
					replaced := false
					old.sends(func(frame []byte) {
						if replaced || !bytes.Contains(frame, []byte(places(names))) {
							return
						}
						replaced = true
						if !outage {
							replace()
							return
						}
						old.LoseRequest(opCreate)
						old.Refuse(true)
						go func() {
							replace()
							old.Refuse(false)
						}()
					})
					refused := make(chan error, 1)
					go func() {
						_, err := old.Acquire(inTime(t), "k", holdfast.WithLimit(1))
						refused <- err
					}()
					time.Sleep(time.Second)
					synctest.Wait()
					if !replaced {
						t.Fatal("the limit was not replaced")
					}
					if _, err := third.TryAcquire(inTime(t), "k", holdfast.WithLimit(3)); err != nil {
						t.Errorf("one of three permits is taken: %v", err)
					}
					select {
					case err = <-refused:
					default:
						t.Error("it waits")
						err = <-refused
					}
					var mismatch *driver.MismatchError
					if !errors.As(err, &mismatch) || mismatch.Have != 3 || mismatch.Want != 1 {
						t.Errorf("with the former limit: %v", err)
					}
				})
			})
		}
	}
}

// Z80. Whoever reclaims a permit, by a limit that has been replaced before its place stands, is refused, and ends nothing.
func TestLimitIsReplacedBeforeTheReclaim(t *testing.T) {
	for name, names := range map[string]zklock.Names{"curator": zklock.CuratorNames, "kazoo": zklock.KazooNames} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				opts := zklock.Options{Names: names}
				first, late, next := dialWired(t, e, opts), dialWired(t, e, opts), dialWired(t, e, opts)
				held, err := first.Acquire(inTime(t), "k", holdfast.WithLimit(1))
				if err != nil {
					t.Fatal(err)
				}
				me := holdfast.WithOwner("me")
				var permits []*holdfast.Lock
				late.sends(func(frame []byte) {
					if len(permits) > 0 || !bytes.Contains(frame, []byte(places(names))) {
						return
					}
					if err := held.Release(inTime(t)); err != nil {
						t.Error(err)
					}
					for range 2 {
						permit, err := next.Acquire(inTime(t), "k", holdfast.WithLimit(3), me)
						if err != nil {
							t.Error(err)
							return
						}
						permits = append(permits, permit)
					}
				})
				_, err = late.Acquire(inTime(t), "k", holdfast.WithLimit(1), me, holdfast.WithReclaim())
				var mismatch *driver.MismatchError
				if !errors.As(err, &mismatch) || mismatch.Have != 3 || mismatch.Want != 1 {
					t.Errorf("with the former limit: %v", err)
				}
				for _, permit := range permits {
					if err := permit.Verify(inTime(t)); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// Z76. The request for a lease is lost, and the limit is replaced before it is repeated: no lease is made then either, which would
// be taken for a permit, and whoever wanted it is told of the limit.
func TestLimitIsReplacedBeforeTheLeaseIsRepeated(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		quick, slow := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		first, err := quick.Acquire(inTime(t), "k", holdfast.WithLimit(2))
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Release(inTime(t)); err != nil {
			t.Fatal(err)
		}
		var told []holdfast.Token
		observing, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for info := range quick.Observe(observing, "k") {
				for grant := range info.Each() {
					told = append(told, grant.Token)
				}
			}
		}()
		defer func() { cancel(); <-ended }()
		time.Sleep(time.Second)
		slow.Delay(50 * time.Millisecond)
		leases := 0
		var permit *holdfast.Lock
		slow.sends(func(frame []byte) {
			if !bytes.Contains(frame, []byte("/k/leases/_c_")) {
				return
			}
			switch leases++; leases {
			case 1:
				slow.LoseRequest(opMulti)
			case 2:
				lock, err := quick.Acquire(inTime(t), "k", holdfast.WithLimit(3))
				if err != nil {
					t.Error(err)
				}
				permit = lock
			}
		})
		_, err = slow.Acquire(inTime(t), "k", holdfast.WithLimit(2))
		var mismatch *driver.MismatchError
		if !errors.As(err, &mismatch) || mismatch.Have != 3 || mismatch.Want != 2 {
			t.Errorf("with the former limit: %v", err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if permit == nil {
			t.Fatal("the request for the lease was not repeated")
		}
		for _, token := range told {
			if token != permit.Token() {
				t.Errorf("an observer was told of token %d, and nobody has had that", token)
			}
		}
	})
}

// Z78. A try that has made a lease and does not keep it, since somebody stands in kazoo's queue by then, is not told of that lease as
// the holder's.
func TestTryIsNotRefusedOverItself(t *testing.T) {
	for name, held := range map[string]bool{"nobody else has a permit": false, "another has one": true} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				opts := zklock.Options{Names: zklock.KazooNames}
				client, other := dialWired(t, e, opts), dialWired(t, e, opts)
				acquire(t, other, "another") // makes the root
				createNode(t, other, "k-__lock__", "", 0)
				var want holdfast.Token
				if held {
					lock, err := other.Acquire(inTime(t), "k", holdfast.WithLimit(2))
					if err != nil {
						t.Fatal(err)
					}
					want = lock.Token()
				}
				stands := false
				client.sends(func(frame []byte) {
					if !stands && bytes.Contains(frame, []byte("__lease__")) {
						stands = true
						createNode(t, other, "k-__lock__/0123456789abcdef0123456789abcdef__lock__", "", zk.FlagEphemeral|zk.FlagSequence)
					}
				})
				deletes := 0
				client.Throttle(func(kind int32) bool { // the lease stays for a while
					if kind == opDelete {
						deletes++
					}
					return kind == opDelete && deletes < 3
				})
				_, err := client.TryAcquire(inTime(t), "k", holdfast.WithLimit(2), holdfast.WithOwner("me"))
				client.Throttle(nil)
				var refusal *holdfast.HeldError
				if !errors.As(err, &refusal) || !stands {
					t.Fatalf("%v, want a HeldError", err)
				}
				if refusal.Holder.Token != want || refusal.Holder.Owner == "me" || len(refusal.Holder.Holders) > 1 {
					t.Errorf("held by %+v, want token %d", refusal.Holder, want)
				}
			})
		})
	}
}
