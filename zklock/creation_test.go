package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// Z58. A server that shuts down says of a creation that there is such a znode, since it has carried it out twice. The znode is there, and
// is the call's own.
func TestCreatedTwice(t *testing.T) {
	for name, mode := range map[string][]holdfast.Option{
		"lock": nil, "reader": {holdfast.WithShared()}, "permit": {holdfast.WithLimit(2)},
	} {
		for _, names := range []zklock.Names{zklock.CuratorNames, zklock.KazooNames} {
			for _, given := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/given up: %v", name, names, given), func(t *testing.T) {
					withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
						client := dialWired(t, e, zklock.Options{Names: names})
						if lock, err := client.Acquire(t.Context(), "a", mode...); err != nil || lock.Release(t.Context()) != nil {
							t.Fatal(err)
						}
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						if given {
							time.AfterFunc(3*time.Millisecond/2, cancel)
						}
						client.AppliedTwice(opCreate)
						lock, err := client.Acquire(ctx, "a", mode...)
						switch {
						case err == nil:
							err = lock.Release(t.Context())
						case given && errors.Is(err, context.Canceled):
							err = nil
						}
						if err != nil {
							t.Error(err)
						}
						time.Sleep(virtualSession)
						if left := e.Children(virtualRoot + "/a"); len(left) > 0 {
							t.Errorf("left: %q", left)
						}
					})
				})
			}
		}
	}
}
