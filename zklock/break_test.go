package zklock_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
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
		for _, lock := range slices.Backward(locks) { // the heartbeat checks the first one first
			time.Sleep(virtualSession)
			info, err := other.Inspect(inTime(t), lock.Key())
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Client.Break(inTime(t), info); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			select {
			case <-lock.Done():
			case <-time.After(10 * virtualSession):
			}
			if late := time.Since(began); late > 14*virtualSession/6 || !errors.Is(lock.Err(), holdfast.ErrBroken) {
				t.Errorf("%s: ended %v after it was broken: %v", lock.Key(), late, lock.Err())
			}
		}
	})
}

// Z9. A reconnect sets the watches of thousands of locks again: their holder hears of a break within a session timeout.
func TestBreak_ManyLocksAfterAReconnect_HeardInTime(t *testing.T) {
	const locks, rtt = 3000, 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		e := zkfake.New(zkfake.Config{Latency: func() time.Duration { return rtt / 2 }})
		t.Cleanup(e.Close)
		client := dialWired(t, e, zklock.Options{})
		held := make([]*holdfast.Lock, locks)
		all(locks, func(i int) { held[i] = acquire(t, client, fmt.Sprint(i)) })
		time.Sleep(time.Second)
		client.Wire.Break()
		time.Sleep(200 * time.Millisecond)
		for i := 0; i < locks; i += locks / 20 {
			e.Remove(virtualRoot+fmt.Sprint("/", i), func(c []string) string { return c[0] })
		}
		time.Sleep(virtualSession)
		for i, lock := range held {
			if broken := i%(locks/20) == 0; errors.Is(lock.Err(), holdfast.ErrBroken) != broken {
				t.Errorf("%d: broken: %v, Err: %v", i, broken, lock.Err())
			}
		}
	})
}

// TestBreak_HolderHasNotReadAnAsk_IsNoReclaim: a holder that hangs is asked and then broken, while another owner reclaims its own place.
func TestBreak_HolderHasNotReadAnAsk_IsNoReclaim(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		holder, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		lock := acquire(t, holder, "k")
		go func() { _, _ = other.Acquire(t.Context(), "k", holdfast.WithReclaim()) }()
		time.Sleep(time.Second)
		holder.Hold(false, true)
		info, err := other.Inspect(inTime(t), "k")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(other.Ask(inTime(t), info), other.Client.Break(inTime(t), info)); err != nil {
			t.Fatal(err)
		}
		holder.Hold(false, false)
		if <-lock.Done(); !errors.Is(lock.Err(), holdfast.ErrBroken) {
			t.Error(lock.Err())
		}
	})
}

// TestBreak_WhileItReclaims_ReclaimsAgain: an operator deletes the node of a contender before its reclaim arrives.
func TestBreak_WhileItReclaims_ReclaimsAgain(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		former, next := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
		opts := []holdfast.Option{holdfast.WithOwner("me"), holdfast.WithReclaim()}
		lock, err := former.Acquire(inTime(t), "k", opts...)
		if err != nil {
			t.Fatal(err)
		}
		held, broken := e.Children(virtualRoot + "/k")[0], ""
		next.sends(func(frame []byte) {
			if broken == "" && len(frame) > 12 && binary.BigEndian.Uint32(frame[8:]) == opMulti && bytes.Contains(frame, []byte(held)) {
				broken = e.Remove(virtualRoot+"/k", func(c []string) string { return c[1-slices.Index(c, held)] })
			}
		})
		began := time.Now()
		if _, err := next.Acquire(inTime(t), "k", opts...); err != nil || broken == "" {
			t.Fatal(err, broken)
		}
		took := time.Since(began)
		if <-lock.Done(); took > virtualSession/2 || !errors.Is(lock.Err(), holdfast.ErrReclaimed) {
			t.Errorf("granted after %v; the former incarnation: %v", took, lock.Err())
		}
	})
}

// Data and owner names that would read as an ask are refused, and the lock lives on.
func TestData_ReadsAsAnAsk_IsRefused(t *testing.T) {
	withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
		client := dialWired(t, e, zklock.Options{})
		for _, opt := range []holdfast.Option{holdfast.WithData([]byte("x\x00__REVOKE__")), holdfast.WithOwner("__REVOKE__")} {
			if _, err := client.TryAcquire(inTime(t), "k", opt); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("TryAcquire: %v", err)
			}
		}
		lock := acquire(t, client, "held")
		if err := lock.SetData(inTime(t), []byte("__REVOKE__")); !errors.Is(err, holdfast.ErrInvalid) || lock.Err() != nil {
			t.Errorf("SetData: %v, Err: %v", err, lock.Err())
		}
	})
}
