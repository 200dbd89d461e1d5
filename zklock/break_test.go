package zklock_test

import (
	"errors"
	"fmt"
	"testing"
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

// Z28. One node that its client may not read any more costs none of the other locks, and neither this lock.
func TestUnreadableNodeAmongMany(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		holder, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		var locks []*holdfast.Lock
		for i := range 12 {
			locks = append(locks, acquire(t, holder, fmt.Sprint(i)))
		}
		time.Sleep(time.Second)
		for _, i := range []int{3, 8} {
			path := virtualRoot + "/" + locks[i].Key()
			node := path + "/" + e.Children(path)[0]
			if _, err := other.Conn().SetACL(node, zk.WorldACL(zk.PermAll&^zk.PermRead), -1); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(20 * virtualSession)
		for _, lock := range locks {
			if err := lock.Err(); err != nil {
				t.Errorf("%s: %v", lock.Key(), err)
			}
		}
		holder.LoseEvents(true)
		if err := other.Conn().Delete(virtualRoot+"/5/"+e.Children(virtualRoot + "/5")[0], -1); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		<-locks[5].Done()
		if late := time.Since(began); late > virtualSession || !errors.Is(locks[5].Err(), holdfast.ErrBroken) {
			t.Errorf("ended %v after it was broken: %v", late, locks[5].Err())
		}
	})
}

// Z28. Of many locks, all of one part are broken, and no event tells it. The session is proved by the others.
func TestBreakOfHalf(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		const half = 1500
		holder, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		var locks []*holdfast.Lock
		for i := range 2 * half {
			locks = append(locks, acquire(t, holder, fmt.Sprint(i)))
		}
		time.Sleep(time.Second)
		holder.LoseEvents(true)
		for _, lock := range locks[:half] {
			path := virtualRoot + "/" + lock.Key()
			if err := other.Conn().Delete(path+"/"+e.Children(path)[0], -1); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * virtualSession)
		for _, lock := range locks[half:] {
			if err := lock.Err(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
