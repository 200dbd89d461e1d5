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

// A replica is one of several pods of a Deployment. One of them leads.
type replica struct {
	lock     atomic.Pointer[holdfast.Lock] // nil: another pod leads
	progress atomic.Int64                  // when the work last got anywhere, in Unix time
}

// run leads whenever it is this pod's turn, until ctx ends. Call it after the probes
// are served, since connecting may take a while. work calls progressed as it goes.
func (r *replica) run(ctx context.Context, client *holdfast.Client, work func(ctx context.Context, lock *holdfast.Lock) error) error {
	return campaign(ctx, client, func(ctx context.Context, lock *holdfast.Lock) error {
		r.progressed()
		r.lock.Store(lock)
		defer r.lock.Store(nil)
		return work(ctx, lock)
	})
}

func (r *replica) progressed() { r.progress.Store(time.Now().Unix()) }

// probes answers the kubelet, and whoever looks for the leader.
func (r *replica) probes() http.Handler {
	mux := http.NewServeMux()
	// A pod that stands by is ready. If only the leader were, no rollout would ever end.
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	// The client renews the lock in the background even if the work is stuck. Do not ask
	// the engine here: its outage would restart every pod.
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		if r.lock.Load() != nil && time.Since(time.Unix(r.progress.Load(), 0)) > time.Minute {
			http.Error(w, "the leader's work is stuck", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /leader", func(w http.ResponseWriter, _ *http.Request) {
		lock := r.lock.Load()
		if lock == nil || lock.Err() != nil {
			http.Error(w, "another pod leads", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, lock.Token())
	})
	return mux
}

// Pods of a Deployment elect a leader. Its readiness and liveness do not depend on
// which of them leads.
func Example_kubernetes() {
	client, err := memlock.New(nil) // in the place of zklock.Dial or dynamolock.New
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())

	var r replica
	probe := func(when string) {
		for _, path := range []string{"/readyz", "/livez", "/leader"} {
			answer := httptest.NewRecorder()
			r.probes().ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
			fmt.Println(when, path, answer.Code)
		}
	}
	probe("standby")
	ctx, stop := context.WithCancel(context.Background())
	_ = r.run(ctx, client.Client, func(context.Context, *holdfast.Lock) error {
		probe("leader")
		r.progress.Store(0)
		probe("stuck")
		stop()
		return nil
	})
	// Output:
	// standby /readyz 200
	// standby /livez 200
	// standby /leader 503
	// leader /readyz 200
	// leader /livez 200
	// leader /leader 200
	// stuck /readyz 200
	// stuck /livez 503
	// stuck /leader 200
}
