package zklock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// Z72. What asks for a lock has overwritten the owner's name, by whichever of the two words, and its process has died: the next one of that name
// has the lock at once.
func TestReclaimOfWhatWasAskedFor(t *testing.T) {
	for _, word := range []string{"__REVOKE__", "unlock"} {
		t.Run(word, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				former, next := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
				opts := []holdfast.Option{holdfast.WithOwner("worker"), holdfast.WithReclaim()}
				if _, err := former.Acquire(t.Context(), "k", opts...); err != nil {
					t.Fatal(err)
				}
				path := virtualRoot + "/k"
				if _, err := next.Conn().Set(path+"/"+e.Children(path)[0], []byte(word), -1); err != nil {
					t.Fatal(err)
				}
				former.Hold(true, true)
				began := time.Now()
				if _, err := next.Acquire(inTime(t), "k", opts...); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// Z74. A former self, which waited for a permit, gets it while its place is about to be reclaimed: that is ended, too.
func TestReclaimOfAPlaceThatBecomesAPermit(t *testing.T) {
	for name, former := range map[string][]holdfast.Option{
		"that reclaims, too": {holdfast.WithOwner("worker"), holdfast.WithLimit(1), holdfast.WithReclaim()},
		"that does not":      {holdfast.WithOwner("worker"), holdfast.WithLimit(1)},
	} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				holder, f, next := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
				held, err := holder.Acquire(inTime(t), "k", holdfast.WithLimit(1))
				if err != nil {
					t.Fatal(err)
				}
				granted := make(chan *holdfast.Lock, 1)
				go func() {
					lock, err := f.Acquire(inTime(t), "k", former...)
					if err != nil {
						t.Error(err)
					}
					granted <- lock
				}()
				time.Sleep(time.Second)
				place := virtualRoot + "/k/locks/" + e.Children(virtualRoot + "/k/locks")[0]
				var lock *holdfast.Lock
				next.sends(func(frame []byte) {
					if lock != nil || !bytes.Contains(frame, []byte(place)) {
						return
					}
					if err := held.Release(inTime(t)); err != nil {
						t.Error(err)
					}
					lock = <-granted
				})
				began := time.Now()
				_, err = next.Acquire(inTime(t), "k", holdfast.WithOwner("worker"), holdfast.WithLimit(1), holdfast.WithReclaim())
				if took := time.Since(began); err != nil || took > time.Second {
					t.Fatalf("after %v: %v", took, err)
				}
				time.Sleep(time.Second)
				if err := lock.Err(); !errors.Is(err, holdfast.ErrReclaimed) {
					t.Errorf("the former self: %v, want ErrReclaimed", err)
				}
			})
		})
	}
}

// Z74. Somebody who reclaims is reclaimed while it looks for the permits of its former self, and finds that of the later one.
func TestReclaimSparesTheLater(t *testing.T) {
	for _, lost := range []bool{false, true} { // the reply to the creation of its place
		t.Run(fmt.Sprintf("lost: %v", lost), func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				former, later, other := dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{}), dialWired(t, e, zklock.Options{})
				opts := []holdfast.Option{holdfast.WithOwner("worker"), holdfast.WithLimit(1), holdfast.WithReclaim()}
				first, err := other.Acquire(inTime(t), "k", holdfast.WithLimit(1)) // makes the parents
				if err != nil {
					t.Fatal(err)
				}
				if _, err := later.TryAcquire(inTime(t), "k", opts...); !errors.Is(err, holdfast.ErrHeld) {
					t.Fatal(err)
				}
				if err := first.Release(inTime(t)); err != nil {
					t.Fatal(err)
				}
				if lost {
					former.LoseReply(opCreate)
				}
				var lock *holdfast.Lock
				former.sends(func(frame []byte) {
					path, _ := listing(frame)
					if path != virtualRoot+"/k/leases" || lock != nil || len(e.Children(virtualRoot+"/k/locks")) == 0 {
						return
					}
					if lock, err = later.Acquire(inTime(t), "k", opts...); err != nil {
						t.Error(err)
					}
				})
				soon, cancel := context.WithTimeout(t.Context(), 2*virtualSession)
				defer cancel()
				_, err = former.Acquire(soon, "k", opts...) // or it queues again, if it has not watched its place by then
				if !errors.Is(err, holdfast.ErrReclaimed) && !errors.Is(err, holdfast.ErrHeld) {
					t.Errorf("the former self: %v, want ErrReclaimed or ErrHeld", err)
				}
				if lock == nil {
					t.Fatal("it did not look for permits")
				}
				if err := lock.Verify(inTime(t)); err != nil {
					t.Errorf("the later one: %v", err)
				}
			})
		})
	}
}

// atEach is a log handler that calls a function.
type atEach struct {
	slog.Handler
	do func(slog.Record)
}

func (h atEach) Enabled(context.Context, slog.Level) bool { return true }

func (h atEach) Handle(_ context.Context, r slog.Record) error {
	h.do(r)
	return nil
}

// Z74. The session ends while somebody reclaims: what is left of that is done in the next.
func TestReclaimOverTwoSessions(t *testing.T) {
	for name, mode := range map[string]holdfast.Option{"locks": holdfast.WithShared(), "permits": holdfast.WithLimit(3)} {
		t.Run(name, func(t *testing.T) {
			withServer(t, func(t *testing.T, e *zkfake.Ensemble) {
				var next *wired
				ended := false
				logger := slog.New(atEach{slog.DiscardHandler, func(r slog.Record) {
					if r.Message != "lock reclaimed" || ended {
						return
					}
					ended = true
					e.Expire(next.Conn().SessionID())
					time.Sleep(virtualSession)
				}})
				former := dialWired(t, e, zklock.Options{})
				next = dialWired(t, e, zklock.Options{Logger: logger})
				var old []*holdfast.Lock
				for range 2 {
					lock, err := former.Acquire(inTime(t), "k", mode, holdfast.WithOwner("worker"))
					if err != nil {
						t.Fatal(err)
					}
					old = append(old, lock)
				}
				time.Sleep(time.Second)
				if _, err := next.Acquire(inTime(t), "k", mode, holdfast.WithOwner("worker"), holdfast.WithReclaim()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				for _, lock := range old {
					if err := lock.Err(); !errors.Is(err, holdfast.ErrReclaimed) && !errors.Is(err, holdfast.ErrBroken) {
						t.Errorf("the former self: %v, want ErrReclaimed or ErrBroken", err)
					}
				}
				if !ended {
					t.Error("the session did not end")
				}
			})
		})
	}
}
