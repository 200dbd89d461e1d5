package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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
						for _, path := range []string{"/a", "/a/leases", "/a/locks"} {
							for _, left := range e.Children(virtualRoot + path) {
								if left != "leases" && left != "locks" {
									t.Errorf("left: %s/%s", path, left)
								}
							}
						}
					})
				})
			}
		}
	}
}

// Z61. At the end of its counter, all znodes of a lock would have the same number. If the reply to a creation is lost, the next says
// that there is such a znode, and every one after that.
func TestReplyLostAtTheEndOfTheCounter(t *testing.T) {
	for name, data := range map[string][]byte{"sent with others": nil, "sent alone": make([]byte, 2000)} {
		withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
			client := dialWired(t, e, zklock.Options{})
			for range 2 { // with no number and then with the last
				if err := acquire(t, client, "a").Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				e.SetCounter(virtualRoot+"/a", math.MaxInt32)
			}
			client.LoseReply(opCreate)
			lock, err := client.Acquire(inTime(t), "a", holdfast.WithData(data))
			if err == nil {
				err = lock.Release(t.Context())
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			time.Sleep(virtualSession)
			if left := e.Children(virtualRoot + "/a"); len(left) > 0 {
				t.Errorf("%s: left: %q", name, left)
			}
		})
	}
}

// Z63. At the end of the counter, a creation that is carried out late has the name of the znode that the client has kept, and given back
// since, or given up for another, or that somebody has taken from it.
func TestLateAtTheEndOfTheCounter(t *testing.T) {
	for name, mode := range map[string][]holdfast.Option{
		"lock": nil, "reader": {holdfast.WithShared()}, "permit": {holdfast.WithLimit(1)},
	} {
		for _, broken := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/broken: %v", name, broken), func(t *testing.T) {
				withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
					client, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
					first, err := other.Acquire(t.Context(), "a", mode...)
					if err != nil {
						t.Fatal(err)
					}
					second, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if lock, err := client.Acquire(second, "a", mode...); err == nil && lock.Release(t.Context()) != nil {
						t.Fatal("the release failed")
					} // it makes the parents
					parent := virtualRoot + "/a"
					e.SetCounter(parent, math.MaxInt32)
					time.AfterFunc(time.Second, func() {
						if err := first.Release(t.Context()); err != nil {
							t.Error(err)
						}
					})
					time.Sleep(2 * time.Second)
					client.Late(opCreate, 3*time.Second)
					lock, err := client.Acquire(inTime(t), "a", mode...)
					switch {
					case err != nil:
					case broken:
						err = other.Conn().Delete(parent+"/"+e.Children(parent)[0], -1)
					default:
						err = lock.Release(t.Context())
					}
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(4 * virtualSession)
					if left := e.Children(parent); len(left) > 0 {
						t.Errorf("left: %q", left)
					}
				})
			})
		}
	}
}
