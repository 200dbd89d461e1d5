package zklock_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// Z28. A holder hears of a break by its next heartbeats if no event tells it, however many locks it has.
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
			if late := time.Since(began); late > virtualSession/2 || !errors.Is(lock.Err(), holdfast.ErrBroken) {
				t.Errorf("%s: ended %v after it was broken: %v", lock.Key(), late, lock.Err())
			}
		}
	})
}

// Z28. A znode that its client may not read any more ends that lock, and costs none of the others, nor do they hear later of a break.
func TestUnreadableNodeAmongMany(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		for _, parents := range []bool{false, true} { // may not be read either
			synctest.Test(t, func(t *testing.T) {
				e := zkfake.New(zkfake.Config{Guarded: guarded, Discreet: guarded, Latency: func() time.Duration { return time.Millisecond }})
				t.Cleanup(e.Close)
				holder, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
				var locks []*holdfast.Lock
				for i := range 40 {
					locks = append(locks, acquire(t, holder, fmt.Sprint(i)))
				}
				time.Sleep(time.Second)
				hidden := []int{3, 8, 33}
				for _, i := range hidden {
					path := virtualRoot + "/" + locks[i].Key()
					for _, path := range []string{path + "/" + e.Children(path)[0], path} {
						if _, err := other.Conn().SetACL(path, zk.WorldACL(zk.PermAll&^zk.PermRead), -1); err != nil {
							t.Fatal(err)
						}
						if !parents {
							break
						}
					}
				}
				time.Sleep(2 * virtualSession)
				for i, lock := range locks {
					if err := lock.Err(); slices.Contains(hidden, i) != (errors.Is(err, holdfast.ErrBroken) && errors.Is(err, holdfast.ErrDenied)) {
						t.Errorf("%s: %v", lock.Key(), err)
					}
				}
				for _, i := range hidden {
					if left := e.Children(virtualRoot + "/" + locks[i].Key()); len(left) > 0 {
						t.Errorf("left behind: %q", left)
					}
				}
				holder.LoseEvents(true)
				if err := other.Conn().Delete(virtualRoot+"/5/"+e.Children(virtualRoot + "/5")[0], -1); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				<-locks[5].Done()
				if late := time.Since(began); late > 2*virtualSession || !errors.Is(locks[5].Err(), holdfast.ErrBroken) {
					t.Errorf("ended %v after it was broken: %v", late, locks[5].Err())
				}
			})
		}
	}
}

// Z28. Of many locks many are broken, those that stand together or nearly all, and no event tells it. The session is proved by the
// others, or else by a write about what is above one of them.
func TestBreakOfMany(t *testing.T) {
	for all, broken := range map[int]int{3000: 1500, 2000: 1900} {
		withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
			holder, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
			if _, err := other.Conn().SetACL("/", zk.WorldACL(zk.PermAll&^zk.PermRead), -1); err != nil {
				t.Fatal(err)
			}
			var locks []*holdfast.Lock
			for i := range all {
				locks = append(locks, acquire(t, holder, fmt.Sprint(i)))
			}
			time.Sleep(time.Second)
			holder.LoseEvents(true)
			for _, lock := range locks[:broken] {
				path := virtualRoot + "/" + lock.Key()
				if err := other.Conn().Delete(path+"/"+e.Children(path)[0], -1); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(10 * virtualSession)
			for _, lock := range locks[broken:] {
				if err := lock.Err(); err != nil {
					t.Fatalf("%d of %d are broken: %v", broken, all, err)
				}
			}
		})
	}
}
