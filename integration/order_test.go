package integration_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/zklock"
)

// TestLongWaitKeepsItsPlace: a session that only waits sends no heartbeats, so the proof
// that it is valid expires. When its turn comes, it must prove its session again, even if
// its predecessor was not the holder, and must not go to the end of the queue.
func TestLongWaitKeepsItsPlace(t *testing.T) {
	start(t)
	addr := server(t).Addr()
	key := newKey(t)
	opts := &zklock.Options{SessionTimeout: 3 * time.Second} // long enough for a machine that stalls
	holder, second, third, fourth := dial(t, addr, opts), dial(t, addr, opts), dial(t, addr, opts), dial(t, addr, opts)
	lock, err := holder.Acquire(limited(t), key)
	if err != nil {
		t.Fatal(err)
	}
	conn := plain(t, addr)
	order := make(chan string, 3)
	for i, waiter := range []struct {
		name   string
		client *zklock.Client
	}{{"second", second}, {"third", third}, {"fourth", fourth}} {
		go func() {
			got, err := waiter.client.Acquire(limited(t), key)
			if err != nil {
				t.Errorf("%s: %v", waiter.name, err)
				order <- ""
				return
			}
			order <- waiter.name
			if err := got.Release(context.Background()); err != nil {
				t.Errorf("%s: %v", waiter.name, err)
			}
		}()
		holds(t, conn, under(key), i+2)
	}
	time.Sleep(2 * holder.SessionTimeout()) // the wait is what is tested
	if err := lock.Release(limited(t)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"second", "third", "fourth"} {
		if got := receive(t, want+" is granted", order); got != want {
			t.Fatalf("granted: %s, want %s", got, want)
		}
	}
}
