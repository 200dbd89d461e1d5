package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/zklock"
)

// pausedChild is the child process of TestPause: it acquires a lock and polls it with one
// method. When the time between two calls shows that the process was stopped, it reports
// the first result of that method.
const pausedChild = "paused"

func init() { children[pausedChild] = runPaused }

// pauseReport is the child's report.
type pauseReport struct {
	Token   holdfast.Token
	Paused  time.Duration // 0 in the first report, which says that the lock is held
	Lost    bool          // the result of the first call
	Expired bool          // it matched ErrSessionExpired
	Said    string
}

// pauseProbes are the ways to check a lock, by the name of the method. Each returns why
// the lock is over; nil: it is live.
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
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := zklock.Dial(ctx, []string{os.Args[1]}, &zklock.Options{SessionTimeout: time.Second})
	if err != nil {
		return fail(err)
	}
	probe := pauseProbes[os.Args[3]]
	out := json.NewEncoder(os.Stdout)
	for {
		lock, err := client.Acquire(ctx, os.Args[2])
		if err != nil { // the first lock was lost in a slow moment: the parent gives the verdict
			fmt.Fprintln(os.Stderr, err)
			return 0
		}
		if err := out.Encode(pauseReport{Token: lock.Token()}); err != nil {
			return fail(err)
		}
		// Call only this one method: another might reveal the loss that this one would
		// miss.
		for last := time.Now(); ctx.Err() == nil; {
			// A call under way when the process was stopped may have read the clock before:
			// then the next one counts as the first.
			began := time.Now()
			paused := began.Sub(last)
			said := probe(lock)
			if said != nil {
				paused = max(paused, time.Since(began))
			}
			if paused > 3*time.Second {
				r := pauseReport{Token: lock.Token(), Paused: paused, Lost: said != nil, Expired: errors.Is(said, holdfast.ErrSessionExpired), Said: fmt.Sprint(said)}
				if err := out.Encode(r); err != nil {
					return fail(err)
				}
				_, _ = io.Copy(io.Discard, os.Stdin) // until the parent closes the pipe
				return 0
			}
			last = began
			if said != nil {
				break // a slow moment of the machine; try again
			}
			time.Sleep(200 * time.Microsecond)
		}
		if ctx.Err() != nil {
			return fail(ctx.Err())
		}
	}
}

// TestPause tests the cure of hazard Z11: every method of a lock compares the clocks. A
// process that was stopped for longer than its session, and resumes when another one has
// the lock, learns of the loss from its first call.
func TestPause(t *testing.T) {
	start(t)
	for name := range pauseProbes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, key := server(t).Addr(), newKey(t)
			p := &fleetProcess{name: name, language: peerZklock, log: filepath.Join(t.TempDir(), "log"), gone: make(chan struct{})}
			var err error
			p.Process, err = child.Start(p.log, true, "env", childVariable+"="+pausedChild, os.Args[0], addr, key, name)
			must(t, err)
			t.Cleanup(func() {
				_ = p.Signal(syscall.SIGCONT)
				p.finish(t)
			})
			reports := make(chan pauseReport, 16)
			go func() {
				defer close(p.gone)
				defer close(reports)
				defer p.Stdout.Close()
				for lines := json.NewDecoder(p.Stdout); ; {
					var r pauseReport
					if lines.Decode(&r) != nil {
						return
					}
					reports <- r
				}
			}()
			holder := receive(t, "the child holds the lock", reports)
			next := dialServers(t, *options(), addr)

			must(t, p.Signal(syscall.SIGSTOP))
			stopped := time.Now()
			lock := take(t, next, key) // as soon as the session has expired
			if lock.Token() <= holder.Token {
				t.Errorf("token %d after %d", lock.Token(), holder.Token)
			}
			time.Sleep(time.Until(stopped.Add(3500 * time.Millisecond))) // so that the child can notice
			if err := lock.Err(); err != nil {
				must(t, fmt.Errorf("the next holder has lost its lock: %w", err))
			}
			must(t, p.Signal(syscall.SIGCONT))
			for r := range reports {
				if r.Paused == 0 {
					holder = r // it had lost the first lock and acquired another before it was stopped
					continue
				}
				t.Logf("after a pause of %v: %s", r.Paused, r.Said)
				if !r.Lost {
					t.Errorf("after the pause, %s said that the lock is live", name)
				} else if !r.Expired {
					t.Errorf("after the pause, %s said %q, want session expired", name, r.Said)
				}
				return
			}
			verdict.Fatalf(t, "the child ended without a report:\n%s", p.logged())
		})
	}
}
