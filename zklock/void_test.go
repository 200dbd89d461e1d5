package zklock_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// A call finds the key free, and another client takes the key before the call's node is created. Whether the call is cut off then or
// not: its node is no holder for tries, Inspect and observers, and a try returns ErrHeld once its node is deleted.
func TestTry_ComesSecond_ItsNodeIsNoHolder(t *testing.T) {
	shared, permit := []holdfast.Option{holdfast.WithShared()}, []holdfast.Option{holdfast.WithLimit(1)}
	for name, c := range map[string]struct {
		names        zklock.Names
		mine, others []holdfast.Option
	}{
		"lock":              {},
		"reader":            {mine: shared},
		"permit":            {mine: permit, others: permit},
		"permit and a lock": {mine: permit},
		"kazoo lock":        {names: zklock.KazooNames},
		"kazoo permit":      {names: zklock.KazooNames, mine: permit, others: permit},
	} {
		for _, cut := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", cut off"}[cut], func(t *testing.T) {
				withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
					opts := zklock.Options{Names: c.names}
					slow, quick, eye := dialWired(t, e, opts), dialWired(t, e, opts), dialWired(t, e, opts)
					take := func() *holdfast.Lock {
						lock, err := quick.TryAcquire(inTime(t), "k", c.others...)
						if err != nil {
							t.Fatalf("nobody has the key, and a try is refused: %v", err)
						}
						return lock
					}
					before := take()
					if err := before.Release(inTime(t)); err != nil {
						t.Fatal(err)
					}
					told := observed(t, eye, "k")
					granted := []holdfast.Token{0}
					var first *holdfast.Lock
					slow.sends(func(frame []byte) {
						creates := len(frame) > 12 && slices.Contains([]uint32{opCreate, opMulti}, binary.BigEndian.Uint32(frame[8:]))
						if first == nil && creates && bytes.Contains(frame, []byte(virtualRoot+"/k/")) {
							first = take()
							if cut {
								time.AfterFunc(1500*time.Microsecond, func() { slow.Hold(true, true) }) // before the answer
							}
						}
					})
					ctx, cancel := context.WithTimeout(t.Context(), virtualSession/4)
					defer cancel()
					refused := make(chan error, 1)
					var left []string
					began, took := time.Now(), time.Duration(0)
					go func() {
						_, err := slow.TryAcquire(ctx, "k", c.mine...)
						left, took = e.Children(virtualRoot+"/k"), time.Since(began)
						refused <- err
					}()
					time.Sleep(40 * time.Millisecond)
					synctest.Wait()
					granted = append(granted, first.Token())
					if err := first.Release(inTime(t)); err != nil {
						t.Fatal(err)
					}
					if info, err := quick.Inspect(inTime(t), "k"); err != nil || info.Held {
						t.Errorf("held by %+v, %v; want nobody", info, err)
					}
					next := take()
					granted = append(granted, next.Token())
					defer func() { _ = next.Release(context.Background()) }()
					switch err := <-refused; {
					case cut:
						if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, holdfast.ErrDisconnected) {
							t.Errorf("cut off: %v, want ctx's error", err)
						}
					default:
						if !errors.Is(err, holdfast.ErrHeld) || len(left) != 1 || took > 12*time.Millisecond {
							t.Errorf("refused after %v: %v; then %q are there, want one", took, err, left)
						}
					}
					slow.Hold(false, false)
					time.Sleep(time.Second)
					for _, token := range told() {
						if !slices.Contains(granted, token) {
							t.Errorf("observers were told of token %d, which was never granted", token)
						}
					}
					if all := e.Children(virtualRoot + "/k"); len(all) > 1 {
						t.Errorf("%q are there, want one", all)
					}
				})
			})
		}
	}
}

// Of calls that try at the same time, as many are granted the key as it has room for.
func TestTries_AtTheSameTime_FillTheKey(t *testing.T) {
	const clients = 8
	for name, c := range map[string]struct {
		opts []holdfast.Option
		want int
	}{
		"locks":   {nil, 1},
		"readers": {[]holdfast.Option{holdfast.WithShared()}, clients},
		"permits": {[]holdfast.Option{holdfast.WithLimit(clients)}, clients},
		"too few": {[]holdfast.Option{holdfast.WithLimit(3)}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				results := make(chan error, clients)
				var all []*wired
				for range clients {
					all = append(all, dialWired(t, e, zklock.Options{}))
				}
				if name != "locks" { // makes the znodes
					lock, err := all[0].Acquire(inTime(t), "k", c.opts...)
					if err != nil {
						t.Fatal(err)
					}
					if err := lock.Release(inTime(t)); err != nil {
						t.Fatal(err)
					}
				}
				for _, client := range all {
					go func() {
						_, err := client.TryAcquire(inTime(t), "k", c.opts...)
						results <- err
					}()
				}
				granted := 0
				for range clients {
					switch err := <-results; {
					case err == nil:
						granted++
					case !errors.Is(err, holdfast.ErrHeld):
						t.Error(err)
					}
				}
				if granted != c.want {
					t.Errorf("%d were granted the key, want %d", granted, c.want)
				}
			})
		})
	}
}

// TestTry_EngineGoesAwayBeforeItsNode_EndsAfterASession: a try that comes second waits for its node's deletion, but not for an outage to end.
func TestTry_EngineGoesAwayBeforeItsNode_EndsAfterASession(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		slow, quick := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		_ = acquire(t, quick, "k").Release(inTime(t))
		var first *holdfast.Lock
		slow.sends(func(frame []byte) {
			switch {
			case first == nil && bytes.Contains(frame, []byte("/k/_c_")):
				first = acquire(t, quick, "k")
			case first != nil && len(frame) > 12 && binary.BigEndian.Uint32(frame[8:]) == opDelete:
				go slow.Hold(true, true)
			}
		})
		began := time.Now()
		_, err := slow.TryAcquire(t.Context(), "k")
		if took := time.Since(began); !errors.Is(err, holdfast.ErrDisconnected) || took > 2*virtualSession {
			t.Errorf("after %v: %v", took, err)
		}
		slow.sends(func([]byte) {})
		slow.Hold(false, false)
	})
}
