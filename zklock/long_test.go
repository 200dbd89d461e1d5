package zklock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// crowd puts more znodes into the queue of key "k" than can be listed.
func crowd(t *testing.T, w *wired) {
	t.Helper()
	const each, length = 2000, 200
	for i := range 17 << 20 / each / length {
		creations := make([]any, each)
		for j := range creations {
			name := fmt.Sprintf("%s/k/%s-%d-%d", virtualRoot, strings.Repeat("x", length), i, j)
			creations[j] = &zk.CreateRequest{Path: name, Acl: zk.WorldACL(zk.PermAll)}
		}
		if _, err := w.Conn().Multi(creations...); err != nil {
			t.Fatal(err)
		}
	}
}

// Z26. The queue of a key is longer than the longest reply that is read. Calls for that key say so, and are not repeated. Each costs a
// connection, and none of the client's other locks.
func TestQueueTooLong(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		lock := acquire(t, client, "another")
		acquire(t, client, "k") // makes the parent
		crowd(t, other)
		before, queue := client.dials.Load(), len(e.Children(virtualRoot+"/k"))
		for name, call := range map[string]func() error{
			"Acquire":    func() error { _, err := client.Acquire(inTime(t), "k"); return err },
			"TryAcquire": func() error { _, err := client.TryAcquire(inTime(t), "k"); return err },
			"Inspect":    func() error { _, err := client.Inspect(inTime(t), "k"); return err },
			"Observe": func() error {
				for _, err := range client.Observe(inTime(t), "k") {
					if err != nil {
						return err
					}
				}
				return nil
			},
			"List": func() error {
				for _, err := range client.List(inTime(t), "") {
					if err != nil {
						return err
					}
				}
				return nil
			},
		} {
			began := time.Now()
			err := call()
			if err == nil || !strings.Contains(err.Error(), "16 MiB") || !strings.Contains(err.Error(), "/k") || errors.Is(err, holdfast.ErrDisconnected) {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(began); took > virtualSession {
				t.Errorf("%s took %v", name, took)
			}
		}
		time.Sleep(10 * virtualSession)
		if n := client.dials.Load() - before; n > 8 {
			t.Errorf("%d connections more", n)
		}
		if n := len(e.Children(virtualRoot + "/k")); n != queue {
			t.Errorf("the queue had %d znodes, and has %d", queue, n)
		}
		if err := lock.Err(); err != nil {
			t.Error(err)
		}
	})
}
