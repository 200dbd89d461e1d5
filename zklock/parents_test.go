package zklock_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// Calls that are given up at any moment leave no parent: those that were never granted anything are deleted by the
// client. A parent that had a grant stays if it is persistent, and is removed by the server if it is a container.
func TestParents_CallGivenUp_AreDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		names      zklock.Names
		opts       []holdfast.Option
		below      string
		persistent bool // by option
	}{
		"lock":         {},
		"persistent":   {persistent: true},
		"reader":       {opts: []holdfast.Option{holdfast.WithShared()}},
		"kazoo lock":   {names: zklock.KazooNames},
		"permit":       {opts: []holdfast.Option{holdfast.WithLimit(2)}},
		"kazoo permit": {names: zklock.KazooNames, opts: []holdfast.Option{holdfast.WithLimit(2)}},
		"lock below":   {below: "/app/jobs"},
		"kazoo below":  {below: "/app/jobs", names: zklock.KazooNames},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				acquire(t, dialWired(t, e, zklock.Options{}), "another") // makes the root
				client := dialWired(t, e, zklock.Options{Names: c.names, PersistentParents: c.persistent})
				var granted []string
				call := func(client *wired, i int, limit time.Duration) {
					key := fmt.Sprint("k", i)
					if c.below != "" {
						key = fmt.Sprint(c.below, i, "/", key)
					}
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					acquire := client.Acquire
					if i%2 == 1 {
						acquire = client.TryAcquire
					}
					lock, err := acquire(ctx, key, c.opts...)
					if err != nil {
						return
					}
					granted = append(granted, key)
					if err := lock.Release(inTime(t)); err != nil {
						t.Error(err)
					}
				}
				for i := range 60 {
					call(client, i, time.Duration(i)*time.Millisecond/2)
				}
				time.Sleep(10 * time.Minute)
				if len(granted) == 0 || len(granted) == 60 {
					t.Fatalf("%d calls were granted the key", len(granted))
				}
				left := slices.Concat(e.Children(virtualRoot), e.Children("/app"))
				for _, name := range left {
					kept := (c.names == zklock.KazooNames || c.persistent) && slices.ContainsFunc(granted, func(key string) bool {
						return strings.Contains(key+"/", name+"/") || strings.TrimSuffix(name, "-__lock__") == key
					})
					if name != "another" && !kept {
						t.Errorf("%q is left", name)
					}
				}
				if (c.names == zklock.KazooNames || c.persistent) && c.below == "" {
					for _, key := range granted {
						if !slices.Contains(left, key) {
							t.Errorf("%q had a grant, and is gone", key)
						}
					}
				}
			})
		})
	}
}

// TestParents_CreationCutOff: with KazooNames a parent is deleted although the reply to the creation below it was lost. It stays if
// another client had a grant, although the client that created it had none.
func TestParents_CreationCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		fault   func(a *wired, giveUp func())
		granted bool // to another client
	}{
		"lost reply": {fault: func(a *wired, giveUp func()) {
			a.LoseReply(opCreate)
			time.AfterFunc(time.Millisecond, giveUp)
		}},
		"lost reply, then refused": {fault: func(a *wired, giveUp func()) {
			a.LoseReply(opCreate)
			a.Refuse(true)
			time.AfterFunc(time.Second, giveUp)
		}},
		"another grant": {fault: func(a *wired, _ func()) { a.Hold(true, true) }, granted: true},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				acquire(t, dialWired(t, e, zklock.Options{}), "another")
				a, b := dialWired(t, e, zklock.Options{Names: zklock.KazooNames}), dialWired(t, e, zklock.Options{Names: zklock.KazooNames})
				ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
				defer cancel()
				cut := false
				a.sends(func(frame []byte) { // of its first creation below the parent
					if !cut && bytes.Contains(frame, []byte("__lock__")) && slices.Contains(e.Children(virtualRoot), "k") {
						cut = true
						c.fault(a, cancel)
					}
				})
				if c.granted {
					go func() {
						time.Sleep(100 * time.Millisecond)
						_ = acquire(t, b, "k").Release(inTime(t))
					}()
				}
				if _, err := a.Acquire(ctx, "k"); err == nil || !cut {
					t.Fatalf("cut off: %v, %v", cut, err)
				}
				a.Refuse(false)
				a.Break()
				a.Hold(false, false)
				time.Sleep(10 * time.Minute)
				if left := slices.Contains(e.Children(virtualRoot), "k"); left != c.granted {
					t.Errorf("the parent is left: %v", left)
				}
			})
		})
	}
}
