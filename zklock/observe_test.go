package zklock_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// listing returns which znode a request lists, and whether it watches that; "" for any other request.
func listing(frame []byte) (path string, watches bool) {
	const at = 16
	if len(frame) < at || binary.BigEndian.Uint32(frame[8:]) != opGetChildren2 {
		return "", false
	}
	end := at + int(binary.BigEndian.Uint32(frame[at-4:]))
	return string(frame[at:end]), frame[end] != 0
}

// Z69. What the leases are in is removed, and made again, between two looks of an observer: it hears of the permits that are taken there.
func TestLeasesComeBackAsAnObserverLooks(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		observer, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		acquire(t, other, "another") // makes the root
		key := virtualRoot + "/k"
		createNode(t, other, "k", "1", 0)
		createNode(t, other, "k/leases", "", 0)
		seen := 0
		observer.sends(func(frame []byte) {
			switch path, watches := listing(frame); {
			case path == key+"/leases" && watches && seen == 0:
				seen++
				if err := other.Conn().Delete(key+"/leases", -1); err != nil {
					t.Error(err)
				}
			case path == key && watches && seen == 1:
				seen++
				createNode(t, other, "k/leases", "", 0)
			}
		})
		told := observed(t, observer, "k")
		time.Sleep(time.Second)
		if got := told(); seen != 2 || !slices.Equal(got, []holdfast.Token{0}) {
			t.Fatalf("told %d, after %d steps", got, seen)
		}
		lock, err := other.Acquire(t.Context(), "k", holdfast.WithLimit(1))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(virtualSession)
		if got := told(); !slices.Equal(got, []holdfast.Token{0, lock.Token()}) {
			t.Errorf("told %d, and %d has a permit", got, lock.Token())
		}
	})
}

// Z70. An event is lost that tells who shares a key, and then somebody goes of whom another one tells: who is told of last is who is there, and
// the server is not asked without an end.
func TestObserverLooksAtAnOldList(t *testing.T) {
	for name, option := range map[string]holdfast.Option{"locks": holdfast.WithShared(), "permits": holdfast.WithLimit(3)} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				observer, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
				share := func() *holdfast.Lock {
					lock, err := other.Acquire(t.Context(), "k", option)
					if err != nil {
						t.Fatal(err)
					}
					return lock
				}
				first := share()
				told := observed(t, observer, "k")
				time.Sleep(time.Second)
				observer.LoseEvents(true)
				second := share()
				time.Sleep(time.Second)
				observer.LoseEvents(false)
				before := observer.requests.Load()
				if err := first.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(virtualSession)
				if got := told(); got[len(got)-1] != second.Token() {
					t.Errorf("told %d, and %d is there", got, second.Token())
				}
				if n := observer.requests.Load() - before; n > 50 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

// Z70. A waiter finds a permit free by a list that an observer of its client watches, as an event was lost. It makes leases in vain, but not
// without an end.
func TestPermitFreeByAnOldList(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		waiter, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		share := func(client *wired) (*holdfast.Lock, error) {
			return client.Acquire(inTime(t), "k", holdfast.WithLimit(2))
		}
		first, err := share(other)
		if err != nil {
			t.Fatal(err)
		}
		told := observed(t, waiter, "k")
		time.Sleep(time.Second)
		waiter.LoseEvents(true)
		if _, err := share(other); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		waiter.LoseEvents(false)
		before := waiter.requests.Load()
		granted := make(chan error, 1)
		go func() {
			_, err := share(waiter)
			granted <- err
		}()
		time.Sleep(virtualSession)
		if n := waiter.requests.Load() - before; n > 100 {
			t.Errorf("%d requests, told %d", n, told())
		}
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-granted; err != nil {
			t.Error(err)
		}
	})
}

// R25. A lock's znode is removed and made again, so its sequence numbers begin anew: an observer hears of a holder whose node has
// the name of the one before.
func TestObserverOfANameThatComesBack(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		observer, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		acquire(t, other, "another") // makes the root
		told := observed(t, observer, "k")
		time.Sleep(time.Second)
		want := []holdfast.Token{0}
		for range 2 {
			createNode(t, other, "k", "", 0)
			token := createNode(t, other, "k/lock-", "", zk.FlagEphemeral|zk.FlagSequence)
			time.Sleep(time.Second)
			for _, path := range []string{"/k/lock-0000000000", "/k"} {
				if err := other.Conn().Delete(virtualRoot+path, -1); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
			want = append(want, holdfast.Token(token), 0)
		}
		if got := told(); !slices.Equal(got, want) {
			t.Errorf("told %d, want %d", got, want)
		}
	})
}

// TestObserve_FreeKeysLeft_ReconnectReadsNoneOfThem: watches that nobody waits on cost no requests.
func TestObserve_FreeKeysLeft_ReconnectReadsNoneOfThem(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		for i := range 200 {
			for range client.Observe(t.Context(), fmt.Sprint("left-", i)) {
				break
			}
		}
		for i := range 200 { // and waiters that have given up
			acquire(t, other, fmt.Sprint("held-", i))
			ctx, cancel := context.WithTimeout(t.Context(), virtualSession/100)
			if _, err := client.Acquire(ctx, fmt.Sprint("held-", i)); err == nil {
				t.Fatal("granted twice")
			}
			cancel()
		}
		seen := make(chan bool, 10)
		go func() {
			for info, err := range client.Observe(t.Context(), "kept") {
				if err != nil {
					return
				}
				seen <- info.Held
			}
		}()
		<-seen
		before := client.requests.Load()
		client.Break()
		time.Sleep(virtualSession / 2)
		if n := client.requests.Load() - before; n > 50 {
			t.Errorf("%d requests at a reconnect", n)
		}
		acquire(t, other, "kept")
		for !<-seen { // the state that was stale
		}
		for info := range client.Observe(t.Context(), "left-7") {
			if info.Held {
				t.Error("the key is free")
			}
			break
		}
	})
}
