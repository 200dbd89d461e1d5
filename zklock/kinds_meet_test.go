package zklock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

const ephemeralSequence = zk.FlagEphemeral | zk.FlagSequence

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
			told = append(told, info.Token)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return func() []holdfast.Token {
		synctest.Wait()
		return told
	}
}

// Z46. Whoever waits for a permit may be there before there is anything for leases. A lock that comes after it is refused,
// as it will be for those who look later.
func TestLockAfterAPlace(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		acquire(t, other, "another") // makes the root
		createNode(t, other, "k", "2", 0)
		createNode(t, other, "k/locks", "", 0)
		createNode(t, other, "k/locks/_c_0-lock-", "", ephemeralSequence)
		_, try := client.TryAcquire(inTime(t), "k")
		_, wait := client.Acquire(inTime(t), "k", holdfast.WithShared())
		for what, err := range map[string]error{"a try": try, "a reader that waits": wait} {
			var mismatch *holdfast.MismatchError
			if !errors.As(err, &mismatch) || mismatch.Have != 2 {
				t.Errorf("%s: %v; want a MismatchError that names the limit", what, err)
			}
		}
		told := observed(t, client, "k")
		time.Sleep(time.Second)
		createNode(t, other, "k/_c_1-lock-", "", ephemeralSequence)
		late := observed(t, other, "k")
		time.Sleep(time.Second)
		if want := []holdfast.Token{0}; !slices.Equal(told(), want) || !slices.Equal(late(), want) {
			t.Errorf("told of %v and %v; want nobody, as the lock is about to be refused", told(), late())
		}
	})
}

// Z46. kazoo's semaphore has its queue beside the key, where no lock looks: a lock that was granted after somebody came to that
// queue is held also when the permit comes, which is refused.
func TestLockAfterAPlaceOfKazoo(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		kazoo := zklock.Options{Names: zklock.KazooNames}
		client, other := dialWired(t, e, kazoo), dialWired(t, e, kazoo)
		acquire(t, other, "another") // makes the root
		createNode(t, other, "k", "2", 0)
		createNode(t, other, "k-__lock__", "", 0)
		createNode(t, other, "k-__lock__/0123456789abcdef0123456789abcdef__lock__", "", ephemeralSequence)
		lock := acquire(t, client, "k")
		told := observed(t, client, "k")
		time.Sleep(time.Second)
		createNode(t, other, "k/0123456789abcdef0123456789abcdef", "", zk.FlagEphemeral)
		late := observed(t, other, "k")
		time.Sleep(time.Second)
		if want := []holdfast.Token{lock.Token()}; !slices.Equal(told(), want) || !slices.Equal(late(), want) {
			t.Errorf("told of %v and %v; want %v", told(), late(), want)
		}
	})
}

// What can have leases is made while an observer looks, at one moment or another: it hears of the permit.
func TestObservedFromTheFirstLease(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		acquire(t, other, "another") // makes the root
		client.Delay(20 * time.Millisecond)
		for after := time.Duration(0); after < 400*time.Millisecond; after += 10 * time.Millisecond {
			key := after.String()
			createNode(t, other, key, "2", 0)
			createNode(t, other, key+"/locks", "", 0)
			told := observed(t, client, key)
			time.Sleep(after)
			createNode(t, other, key+"/leases", "", 0)
			time.Sleep(time.Second)
			lease := createNode(t, other, key+"/leases/_c_0-lease-", "", ephemeralSequence)
			time.Sleep(time.Second)
			if want := []holdfast.Token{0, holdfast.Token(lease)}; !slices.Equal(told(), want) {
				t.Errorf("leases after %v: told of %v, want %v", after, told(), want)
			}
		}
	})
}
