package zklock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// Z70. The event of a new sharer is lost, and then the event of another sharer's end arrives. The observer is told of the present
// holders in the end, and the server gets few requests.
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
				for range 2 { // the second time, the client has left a server a moment ago
					observer.LoseEvents(true)
					second := share()
					time.Sleep(time.Second)
					observer.LoseEvents(false)
					before := observer.requests.Load()
					if err := first.Release(t.Context()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
					if n := observer.requests.Load() - before; n > 50 {
						t.Errorf("%d requests", n)
					}
					first = second
				}
				time.Sleep(virtualSession)
				if got := told(); got[len(got)-1] != first.Token() {
					t.Errorf("told %d, and %d is there", got, first.Token())
				}
			})
		})
	}
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

// TestObserve_FreeKeysLeft_ReconnectReadsNoneOfThem: watches without a waiter cost no requests.
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
