package zklock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

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
