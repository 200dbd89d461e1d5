package zklock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// The queues of kazoo's semaphores are no keys, in whatever order the names of all of them are.
func TestListOfSemaphoresOfKazoo(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		opts := zklock.Options{Names: zklock.KazooNames}
		holder, waiter := dialWired(t, e, opts), dialWired(t, e, opts)
		ctx, cancel := context.WithCancel(t.Context())
		keys := []string{"a", "a-"}
		ended := make(chan error, len(keys))
		for _, key := range keys {
			if _, err := holder.Acquire(t.Context(), key, holdfast.WithLimit(1)); err != nil {
				t.Fatal(err)
			}
			go func() {
				_, err := waiter.Acquire(ctx, key, holdfast.WithLimit(1))
				ended <- err
			}()
		}
		time.Sleep(time.Second)
		var listed []string
		for info, err := range holder.List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			listed = append(listed, info.Key)
		}
		if !slices.Equal(listed, keys) {
			t.Errorf("%q, want %q", listed, keys)
		}
		cancel()
		for range keys {
			<-ended
		}
	})
}

// Z79. A semaphore in Curator's form has its queue below its key: another key that is named as a queue of kazoo's would be is a key.
func TestListBesideASemaphoreOfCurator(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{})
		keys := []string{"a", "a-__lock__"}
		if _, err := client.Acquire(t.Context(), keys[0], holdfast.WithLimit(1)); err != nil {
			t.Fatal(err)
		}
		acquire(t, client, keys[1])
		var listed []string
		for info, err := range client.List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			listed = append(listed, info.Key)
		}
		if !slices.Equal(listed, keys) {
			t.Errorf("%q, want %q", listed, keys)
		}
	})
}
