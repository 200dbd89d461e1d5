package holdfast_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

func withdraw(context.Context, *holdfast.Lock) error { return holdfast.ErrWithdrawn }

// Each call of Fit, the first too, has a goroutine of its own: one that ends it is an error of Fit, and not the end of Run.
func TestFitEndsItsGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := renewing(t, &engine{}, driver.Config{})
		asked := 0
		e := election(t, c, &holdfast.ElectionOptions{Fit: func(context.Context) error {
			if asked++; asked == 1 || asked == 3 {
				runtime.Goexit()
			}
			return nil
		}})
		terms := 0
		result := make(chan error, 1)
		go func() {
			defer close(result)
			result <- e.Run(t.Context(), func(ctx context.Context, _ *holdfast.Lock) error {
				if terms++; terms == 2 {
					return holdfast.ErrWithdrawn
				}
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, holdfast.ErrUnfit) {
					t.Errorf("the term ended for %v", cause)
				}
				return ctx.Err()
			})
		}()
		if err, ok := <-result; err != nil || !ok || terms != 2 || asked != 4 {
			t.Errorf("Run returned %v: %v; %d terms, asked %d times", ok, err, terms, asked)
		}
		mustClose(t, c)
	})
}

// Close waits for a call of Fit, but for no more than the grace if that ignores its ctx.
func TestCloseWaitsForFit(t *testing.T) {
	for name, o := range map[string]struct {
		call        int
		takes, want time.Duration // after the end of its ctx
	}{
		"before it stands":               {1, 100 * time.Millisecond, 100 * time.Millisecond},
		"while it leads":                 {2, 100 * time.Millisecond, 100 * time.Millisecond},
		"for a moment only":              {1, time.Minute, time.Second},
		"for a moment only, in a term":   {2, time.Minute, time.Second},
		"which returns at the same time": {2, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := renewing(t, &engine{}, driver.Config{})
				asked := 0
				var returned atomic.Bool
				e := election(t, c, &holdfast.ElectionOptions{FitEvery: time.Minute, Fit: func(ctx context.Context) error {
					if asked++; asked == o.call {
						<-ctx.Done()
						time.Sleep(o.takes)
						returned.Store(true)
					}
					return nil
				}})
				result := make(chan error, 1)
				go func() {
					result <- e.Run(t.Context(), func(ctx context.Context, _ *holdfast.Lock) error {
						<-ctx.Done()
						return ctx.Err()
					})
				}()
				time.Sleep(time.Duration(o.call)*time.Minute - time.Second)
				began := time.Now()
				mustClose(t, c)
				if took := time.Since(began); took != o.want || returned.Load() != (o.takes == o.want) {
					t.Errorf("Close took %v, want %v; Fit had returned: %v", took, o.want, returned.Load())
				}
				if err := <-result; !errors.Is(err, holdfast.ErrClosed) || !returned.Load() || asked != o.call {
					t.Errorf("Run: %v; Fit was asked %d times, and has returned: %v", err, asked, returned.Load())
				}
			})
		})
	}
}

// Fit may close its client: Close does not wait for it for ever.
func TestCloseInFit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := renewing(t, &engine{}, driver.Config{})
		e := election(t, c, &holdfast.ElectionOptions{Fit: func(context.Context) error { return c.Close(context.Background()) }})
		began := time.Now()
		if err := e.Run(t.Context(), withdraw); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// lookedAt is a context that does something when it is looked at, as it is right before Fit is called.
type lookedAt struct {
	context.Context
	do func()
}

func (c lookedAt) Deadline() (time.Time, bool) {
	c.do()
	return c.Context.Deadline()
}

// No call of Fit begins after Close.
func TestFitIsNotCalledAfterClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := renewing(t, &engine{}, driver.Config{})
		e := election(t, c, &holdfast.ElectionOptions{Fit: func(context.Context) error {
			t.Error("it is called")
			return nil
		}})
		if err := e.Run(lookedAt{t.Context(), func() { mustClose(t, c) }}, withdraw); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("Run: %v", err)
		}
	})
}

// After a term that ended although ctx did not, Run waits for the engine's confirmation as long as after any other.
func TestRunWaitsForTheConfirmation(t *testing.T) {
	for _, want := range []error{holdfast.ErrResigned, holdfast.ErrAsked, holdfast.ErrUnfit} {
		t.Run(want.Error(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				confirmed := false
				b := &engine{release: func(context.Context) error {
					time.Sleep(9 * time.Second)
					confirmed = true
					return nil
				}}
				c := renewing(t, b, driver.Config{})
				var ask func()
				b.acquire = func(_ context.Context, req *driver.Request) (driver.Grant, error) {
					ask = req.Asked
					return b.grant(), nil
				}
				var unfit atomic.Bool
				e := election(t, c, &holdfast.ElectionOptions{
					StepDownWhenAsked: true, FitEvery: time.Second, Fit: func(context.Context) error {
						if unfit.Load() {
							return errors.New("for a moment")
						}
						return nil
					},
				})
				terms := 0
				err := e.Run(t.Context(), func(ctx context.Context, _ *holdfast.Lock) error {
					if terms++; terms == 2 {
						if !confirmed {
							t.Error("it stood again before the key was given back")
						}
						return holdfast.ErrWithdrawn
					}
					switch want {
					case holdfast.ErrResigned:
						go func() { _ = e.Resign(t.Context()) }()
					case holdfast.ErrAsked:
						ask()
					default:
						unfit.Store(true)
					}
					<-ctx.Done()
					unfit.Store(false)
					if cause := context.Cause(ctx); !errors.Is(cause, want) {
						t.Errorf("the term ended for %v", cause)
					}
					return ctx.Err()
				})
				if err != nil || terms != 2 {
					t.Errorf("%d terms; Run: %v", terms, err)
				}
				mustClose(t, c)
			})
		})
	}
}
