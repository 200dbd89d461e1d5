package holdfast_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
)

// readiness answers 200 and the leader's name, or 503 if there is no leader or the client cannot see it.
type readiness struct{ leader atomic.Pointer[holdfast.Info] }

// follow returns when ctx ends.
func (r *readiness) follow(ctx context.Context, client *holdfast.Client) error {
	for leader, err := range client.Observe(ctx, "leader") {
		if err != nil {
			return err
		}
		r.leader.Store(&leader)
	}
	return nil
}

func (r *readiness) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	leader := r.leader.Load()
	if leader == nil || !leader.Held || leader.Stale {
		http.Error(w, "no leader is known", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, leader.Owner)
}

// A readiness endpoint names the leader, and fails during an outage: another one may lead by then.
func ExampleClient_Observe() {
	store := memlock.NewStore() // stands in for a server
	client, err := memlock.New(&memlock.Options{Store: store, Owner: "ann"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	if _, err := client.Acquire(context.Background(), "leader"); err != nil {
		log.Fatal(err)
	}
	ready := &readiness{}
	go func() { log.Print(ready.follow(context.Background(), client.Client)) }()
	probe := func(want int) {
		for {
			answer := httptest.NewRecorder()
			if ready.ServeHTTP(answer, nil); answer.Code == want {
				fmt.Print(answer.Code, " ", answer.Body)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	probe(http.StatusOK)
	store.Cut(client)
	probe(http.StatusServiceUnavailable)
	store.Heal(client)
	probe(http.StatusOK)
	// Output:
	// 200 ann
	// 503 no leader is known
	// 200 ann
}
