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
	election *holdfast.Election
	progress atomic.Int64 // when the work last made progress, in Unix time
}

// run leads whenever it is this pod's turn, until ctx ends. Serve the probes before
// calling it. work reports progress.
func (r *replica) run(ctx context.Context, work func(ctx context.Context, term *holdfast.Lock) error) error {
	return r.election.Run(ctx, func(ctx context.Context, term *holdfast.Lock) error {
		r.progressed()
		return work(ctx, term)
	})
}

func (r *replica) progressed() { r.progress.Store(time.Now().Unix()) }

// probes serves the kubelet, and clients that look for the leader.
func (r *replica) probes() http.Handler {
	mux := http.NewServeMux()
	// A standby pod is ready. If only the leader were, no rollout would ever finish.
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	// The client renews the lock in the background even if the work is stuck. Do not ask
	// the engine here: its outage would restart every pod.
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		if err := r.election.Check(10 * time.Second); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if r.election.Term() != nil && time.Since(time.Unix(r.progress.Load(), 0)) > time.Minute {
			http.Error(w, "the leader's work is stuck", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /leader", func(w http.ResponseWriter, _ *http.Request) {
		term := r.election.Term()
		if term == nil {
			http.Error(w, "another pod leads", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, term.Token())
	})
	return mux
}

// Pods of a Deployment elect a leader. Readiness and liveness do not depend on
// which of them leads.
func Example_kubernetes() {
	client, err := memlock.New(nil) // stands in for zklock.Dial or dynamolock.New
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())

	election, err := client.Election("leader", nil)
	if err != nil {
		log.Fatal(err)
	}
	r := replica{election: election}
	probe := func(when string) {
		for _, path := range []string{"/readyz", "/livez", "/leader"} {
			answer := httptest.NewRecorder()
			r.probes().ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
			fmt.Println(when, path, answer.Code)
		}
	}
	probe("standby")
	_ = r.run(context.Background(), func(context.Context, *holdfast.Lock) error {
		probe("leader")
		r.progress.Store(0)
		probe("stuck")
		return holdfast.ErrWithdrawn
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
