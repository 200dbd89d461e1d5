package zklock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// The client's server is silent from some moment on, whether or not it still takes connections: the client leaves it while there is time
// to reach another one, and to prove there that its session lives. So its locks survive.
func TestSilentServer(t *testing.T) {
	const phases = 40 // of the time from one heartbeat to the next
	for name, fault := range map[string]func(w *zkfake.Wire){
		"takes connections": func(w *zkfake.Wire) { w.Silence(true) },
		"takes none":        func(w *zkfake.Wire) { w.Hold(true, true) },
	} {
		t.Run(name, func(t *testing.T) {
			for phase := range time.Duration(phases) {
				synctest.Test(t, func(t *testing.T) {
					e := slowly(t)
					link := e.Link()
					opts := &zklock.Options{Root: virtualRoot, SessionTimeout: virtualSession}
					client, err := zklock.Dial(network.With(t.Context(), link.Dial), e.Addrs(), opts)
					if err != nil {
						t.Fatal(err)
					}
					lock, err := client.Acquire(t.Context(), "a")
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(3*virtualSession + phase*virtualSession/6/phases)
					for i := range 3 {
						if w := link.Wire(i); w.Used() {
							fault(w)
						}
					}
					deadline, began := lock.Deadline(), time.Now()
					<-client.Events().Disconnected()
					if left := time.Until(deadline); left < virtualSession/8 {
						t.Errorf("it left the server after %v, %v before its lease was over", time.Since(began), left)
					}
					time.Sleep(2 * virtualSession)
					if err := lock.Verify(t.Context()); err != nil {
						t.Error(err)
					}
					if err := client.Close(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

// slowly starts three members that are a millisecond from each other and from clients.
func slowly(t *testing.T) *zkfake.Ensemble {
	t.Helper()
	ms := func() time.Duration { return time.Millisecond }
	e := zkfake.New(zkfake.Config{Members: 3, SyncLimit: 8, Latency: ms, Delay: ms})
	t.Cleanup(e.Close)
	return e
}
