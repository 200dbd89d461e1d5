package zklock_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// After the ensemble was wiped, an observer is told of holders with lower tokens than before.
func TestObserve_EnsembleWiped_TellsTheNewHolder(t *testing.T) {
	for name, opts := range map[string][]holdfast.Option{"lock": nil, "reader": {holdfast.WithShared()}, "permit": {holdfast.WithLimit(2)}} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				take := func() *holdfast.Lock {
					lock, err := dialWired(t, e, zklock.Options{}).Acquire(inTime(t), "k", opts...)
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					return lock
				}
				eye := dialWired(t, e, zklock.Options{})
				for range 50 {
					if err := acquire(t, eye, "another").Release(inTime(t)); err != nil {
						t.Fatal(err)
					}
				}
				told := observed(t, eye, "k")
				before := take()
				e.Wipe()
				time.Sleep(time.Minute)
				lock := take()
				if lock.Token() >= before.Token() {
					t.Fatalf("the token is %d, not less than %d", lock.Token(), before.Token())
				}
				if err := lock.Release(inTime(t)); err != nil {
					t.Fatal(err)
				}
				next := take()
				if want := []holdfast.Token{0, before.Token(), 0, lock.Token(), 0, next.Token()}; !slices.Equal(slices.Compact(slices.Clone(told())), want) {
					t.Errorf("told %d, want %d", told(), want)
				}
			})
		})
	}
}

// No server that shows the past makes tokens begin anew: a follower that has diverged, a follower that lags behind, and a leader that
// is deposed. The observer is told of each later holder in the end, and of no former one again.
func TestObserve_ServerShowsThePast_TokensRise(t *testing.T) {
	for name, fault := range map[string]func(e *zkfake.Ensemble, member int) (undo func()){
		"diverged": func(e *zkfake.Ensemble, member int) func() {
			return e.Keep(member, virtualRoot+"/k")
		},
		"lags": func(e *zkfake.Ensemble, member int) func() {
			e.Turn(member, true, false)
			return func() { e.Turn(member, false, false) }
		},
		"deposed": func(e *zkfake.Ensemble, member int) func() {
			e.Part(member)
			return func() { e.Mend(member) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := zkfake.New(zkfake.Config{Members: 3, Latency: func() time.Duration { return time.Millisecond }})
				t.Cleanup(e.Close)
				leader, follower := e.Leader(), (e.Leader()+1)%3
				at := follower
				if name == "deposed" {
					at = leader
				}
				eye, other := dialMember(t, e, at, zklock.Options{}), dialMember(t, e, (leader+2)%3, zklock.Options{})
				told := observed(t, eye, "k")
				lock := acquire(t, other, "k")
				time.Sleep(time.Second)
				undo := fault(e, at)
				if err := lock.Release(inTime(t)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(virtualSession / 2)
				next := acquire(t, other, "k")
				time.Sleep(virtualSession)
				undo()
				eye.Break()
				time.Sleep(3 * virtualSession)
				if all := told(); all[len(all)-1] != next.Token() {
					t.Errorf("told %d, and %d has the key", all, next.Token())
				}
				held := slices.DeleteFunc(slices.Clone(told()), func(token holdfast.Token) bool { return token == 0 })
				if !slices.IsSorted(held) {
					t.Errorf("told %d", held)
				}
			})
		})
	}
}
