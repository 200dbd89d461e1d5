package zklock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// Z72. What asks for a lock has overwritten the owner's name, by whichever of the two words, and its process has died: the next one of that name
// has the lock at once.
func TestReclaimOfWhatWasAskedFor(t *testing.T) {
	for _, word := range []string{"__REVOKE__", "unlock"} {
		t.Run(word, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				former, next := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
				opts := []holdfast.Option{holdfast.WithOwner("worker"), holdfast.WithReclaim()}
				if _, err := former.Acquire(t.Context(), "k", opts...); err != nil {
					t.Fatal(err)
				}
				path := virtualRoot + "/k"
				if _, err := next.Conn().Set(path+"/"+e.Children(path)[0], []byte(word), -1); err != nil {
					t.Fatal(err)
				}
				former.Hold(true, true)
				began := time.Now()
				if _, err := next.Acquire(inTime(t), "k", opts...); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
