package zklock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// Z28. A holder learns of a break by heartbeats if no event reports it: they check its locks in turn.
func TestBreakOfOneAmongMany(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		holder, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		var locks []*holdfast.Lock
		for i := range 12 {
			locks = append(locks, acquire(t, holder, fmt.Sprint(i)))
		}
		holder.LoseEvents(true)
		for _, lock := range locks {
			time.Sleep(virtualSession)
			info, err := other.Inspect(inTime(t), lock.Key())
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Client.Break(inTime(t), info); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			<-lock.Done()
			if late := time.Since(began); late > 14*virtualSession/6 || !errors.Is(lock.Err(), holdfast.ErrBroken) {
				t.Errorf("%s: ended %v after it was broken: %v", lock.Key(), late, lock.Err())
			}
		}
	})
}
