package integration_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/zklock"
)

// pausedChild is the child process of TestPause: it acquires a lock and polls it with one method. When the time between two calls
// shows that the process was stopped, it reports the first result of that method.
const pausedChild = "paused"

func init() { children[pausedChild] = runPaused }

const pauseProbed = "probed"

// pauseProbes are the ways to check a lock, by the name of the method. Each returns why the lock is over; nil: it is live.
var pauseProbes = map[string]func(*holdfast.Lock) error{
	"Err": func(lock *holdfast.Lock) error { return lock.Err() },
	"Done": func(lock *holdfast.Lock) error {
		select {
		case <-lock.Done():
			return lock.Err()
		default:
			return nil
		}
	},
	"Context": func(lock *holdfast.Lock) error {
		ctx, cancel := lock.Context(context.Background())
		defer cancel()
		return context.Cause(ctx)
	},
	"Deadline": func(lock *holdfast.Lock) error {
		if time.Now().Before(lock.Deadline()) {
			return nil
		}
		return lock.Err()
	},
	"Extend": func(lock *holdfast.Lock) error { return lock.Extend(time.Hour) },
	"Verify": func(lock *holdfast.Lock) error {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := lock.Verify(ctx); !errors.Is(err, context.Canceled) { // it checks the clock first
			return err
		}
		return nil
	},
}

func runPaused() int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := zklock.Dial(ctx, []string{os.Args[1]}, &zklock.Options{SessionTimeout: time.Second})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	report(fleetReport{What: fleetReady})
	for {
		lock, err := client.Acquire(ctx, os.Args[2])
		if err != nil { // the first lock was lost in a slow moment: the parent gives the verdict
			fmt.Fprintln(os.Stderr, err)
			return 0
		}
		report(fleetReport{What: fleetAcquired, Token: uint64(lock.Token())})
		// Call only this one method: another might reveal the loss that this one would miss.
		for last := time.Now(); ; time.Sleep(200 * time.Microsecond) {
			// A call under way when the process was stopped may have read the clock before: then the next one counts as the first.
			began := time.Now()
			paused := began.Sub(last)
			said := pauseProbes[os.Args[3]](lock)
			if said != nil {
				paused = max(paused, time.Since(began))
			}
			if paused > 3*time.Second {
				report(fleetReport{What: pauseProbed, Note: fmt.Sprintf("%v, after a pause of %v", said, paused)})
				_, _ = io.Copy(io.Discard, os.Stdin) // until the parent closes the pipe
				return 0
			}
			last = began
			if said != nil {
				break // a slow moment of the machine; try again
			}
		}
	}
}

// TestPause (Z11): every method of a lock compares the clocks. A process that was stopped for longer than its session, and resumes
// when another one has the lock, learns of the loss from its first call.
func TestPause(t *testing.T) {
	start(t)
	for name := range pauseProbes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, key := server(t).Addr(), newKey(t)
			p := startPeer(t, peerZklock, name, []string{childVariable + "=" + pausedChild, os.Args[0], addr, key, name}, nil)
			p.expected.Store(true) // it ends if it cannot acquire the lock again
			holder := p.says(fleetAcquired)
			next := dialServers(t, *options(), addr)

			must(t, p.Signal(syscall.SIGSTOP))
			stopped := time.Now()
			lock := take(t, next, key) // as soon as the session has expired
			if uint64(lock.Token()) <= holder.Token {
				t.Errorf("token %d after %d", lock.Token(), holder.Token)
			}
			time.Sleep(time.Until(stopped.Add(3500 * time.Millisecond))) // so that the child can notice
			if err := lock.Err(); err != nil {
				must(t, fmt.Errorf("the next holder has lost its lock: %w", err))
			}
			must(t, p.Signal(syscall.SIGCONT))
			r := receive(t, "what the child says", p.answers)
			for r.What == fleetAcquired { // it had lost the first lock and acquired another before it was stopped
				r = receive(t, "what the child says", p.answers)
			}
			switch {
			case r.What != pauseProbed && strings.Contains(p.logged(), "acquire"): // its session of a second ended before it was stopped
				verdict.Inconclusive(t, "the child lost its lock too early:\n%s", p.logged())
			case r.What != pauseProbed:
				verdict.Fatalf(t, "the child ended without a report:\n%s", p.logged())
			case !strings.Contains(r.Note, holdfast.ErrSessionExpired.Error()):
				t.Errorf("%s said %s; want session expired", name, r.Note)
			}
		})
	}
}
