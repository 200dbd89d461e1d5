package zklock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// A client reads through a follower that lags behind: it shows what was confirmed to others before, and neither Ask nor Break
// misses a grant that stands. A follower that is cut off from its leader for ever ends each call after a session timeout.
func TestReads_FollowerLags_ShowWhatWasConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := zkfake.New(zkfake.Config{
			Members: 3,
			Latency: func() time.Duration { return time.Millisecond },
			Delay:   func() time.Duration { return 20 * time.Millisecond },
		})
		t.Cleanup(e.Close)
		follower := (e.Leader() + 1) % 3
		holder, reader := dialMember(t, e, e.Leader(), zklock.Options{}), dialMember(t, e, follower, zklock.Options{})
		take := func(key string) *holdfast.Lock {
			lock, err := holder.Acquire(inTime(t), key, holdfast.WithData([]byte("old")))
			if err != nil {
				t.Fatal(err)
			}
			return lock
		}
		list := func() (info holdfast.Info, err error) {
			for info, err = range reader.List(inTime(t), "k") {
				break
			}
			return info, err
		}
		inspect := func() (holdfast.Info, error) { return reader.Inspect(inTime(t), "k") }
		for name, look := range map[string]func() (holdfast.Info, error){"Inspect": inspect, "List": list} {
			lock := take("k")
			time.Sleep(time.Second)
			if err := lock.SetData(inTime(t), []byte("new")); err != nil {
				t.Fatal(err)
			}
			if info, err := look(); err != nil || string(info.Data) != "new" {
				t.Errorf("%s after SetData: %+v, %v", name, info, err)
			}
			time.Sleep(time.Second)
			if err := lock.Release(inTime(t)); err != nil {
				t.Fatal(err)
			}
			if info, err := look(); err != nil || info.Held {
				t.Errorf("%s after Release: %+v, %v", name, info, err)
			}
		}
		calls := map[string]func(context.Context, holdfast.Info) error{
			"Ask": reader.Ask, "Break": reader.Client.Break,
			"Inspect": func(ctx context.Context, info holdfast.Info) error {
				_, err := reader.Inspect(ctx, info.Key)
				return err
			},
		}
		grant := func(key string) holdfast.Info {
			take(key)
			info, err := holder.Inspect(inTime(t), key)
			if err != nil {
				t.Fatal(err)
			}
			return info
		}
		for name, call := range calls {
			if err := call(inTime(t), grant(name)); err != nil {
				t.Errorf("%s of a live grant: %v", name, err)
			}
		}
		e.Turn(follower, true, false)
		unseen := grant("unseen")
		for name, call := range calls {
			if err := call(t.Context(), unseen); !errors.Is(err, holdfast.ErrDisconnected) {
				t.Errorf("%s through a follower that is cut off: %v", name, err)
			}
		}
		e.Turn(follower, false, false)
	})
}
