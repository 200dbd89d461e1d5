package zklock_test

import (
	"context"
	"errors"
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

// The session ends while somebody reclaims: what is left of that is done in the next.
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
