package dynamolock_test

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

// D80. Somebody breaks a grant before the call that it was made for knows of it: the key is taken anew. Neither does the call wait for its own
// grant until the lease of that is over, nor is a try refused over it, nor a lock granted that is broken.
func TestBrokenBeforeItIsKnown(t *testing.T) {
	for _, try := range []bool{false, true} {
		for _, shared := range []bool{false, true} {
			for _, refusedFor := range []time.Duration{2 * time.Second, lease / 2} {
				t.Run(fmt.Sprintf("try %v, shared %v, %v", try, shared, refusedFor), func(t *testing.T) {
					bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
						a, b := h.pair(t)
						began := time.Now()
						a.conn.SetFault(func(dynamofake.Op) dynamofake.Fault {
							switch since := time.Since(began); {
							case since == 0:
								return dynamofake.LoseReply(io.ErrUnexpectedEOF)
							case since < refusedFor:
								return dynamofake.Refuse()
							}
							return dynamofake.Fault{}
						})
						time.AfterFunc(time.Second, func() { b.breakIt(t, "k", false) })
						opts := []holdfast.Option{holdfast.WithRetry(holdfast.Retry{Initial: 10 * time.Millisecond, Max: 10 * time.Millisecond})}
						if shared {
							opts = append(opts, holdfast.WithShared())
						}
						acquire := a.Acquire
						if try {
							acquire = a.TryAcquire
						}
						lock, err := acquire(t.Context(), "k", opts...)
						if err != nil {
							t.Fatalf("after %v: %v", time.Since(began), err)
						}
						if d := time.Since(began) - refusedFor; d > 3*time.Second {
							t.Errorf("after %v", d)
						}
						time.Sleep(lease)
						mustVerify(t, lock)
						mustRelease(t, lock)
						h.isFree(t, "k")
					})
				})
			}
		}
	}
}

// D80. The same, by a write that was late (D60), and another of its client is before it in the line by then.
func TestSecondInLineIsBrokenBeforeItKnows(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		held := a.hold(t, "k")
		time.Sleep(time.Second)
		first, second := b.secondInLine(t)
		holder := guidOf(h.item("k"))
		var arrived atomic.Bool
		broken := make(chan struct{})
		b.conn.SetFault(func(dynamofake.Op) dynamofake.Fault {
			switch now := h.item("k"); {
			case leaseOf(now) == 1 && !arrived.Load(): // it is released, and the late write is to take it
				return dynamofake.Refuse()
			case guidOf(now) == holder:
			default: // the late write has, and b is about to see it
				if arrived.CompareAndSwap(false, true) {
					a.breakIt(t, "k", false)
					time.Sleep(time.Second) // all replicas know of it
					close(broken)
				}
				<-broken
			}
			return dynamofake.Fault{}
		})
		mustRelease(t, held)
		released := time.Now()
		if err1, err2 := <-first, <-second; err1 != nil || err2 != nil || time.Since(released) > lease/2 || !arrived.Load() {
			t.Errorf("after %v: %v; %v; broken: %v", time.Since(released), err1, err2, arrived.Load())
		}
	})
}

// D81. Somebody breaks what a call has left, before its client gives it back, or just then: it is given back all the same. The holder, who is
// to learn of the break before anybody else has the key, is nobody.
func TestBrokenBeforeItIsGivenBack(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for _, meanwhile := range []bool{false, true} {
			t.Run(fmt.Sprintf("shared %v, meanwhile %v", shared, meanwhile), func(t *testing.T) {
				bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
					a, b := h.pair(t)
					began := time.Now()
					a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
						switch since := time.Since(began); {
						case since == 0:
							return dynamofake.LoseReply(io.ErrUnexpectedEOF)
						case since < lease/2:
							return dynamofake.Refuse()
						case meanwhile && purposeOf(op) != "":
							meanwhile = false
							b.breakIt(t, "k", false)
						}
						return dynamofake.Fault{}
					})
					if !meanwhile {
						time.AfterFunc(time.Second, func() { b.breakIt(t, "k", false) })
					}
					var opts []holdfast.Option
					if shared {
						opts = append(opts, holdfast.WithShared())
					}
					if lock, err := a.Acquire(within(t, lease/4), "k", opts...); err == nil {
						t.Fatalf("granted: %v", lock)
					}
					time.Sleep(lease / 4)
					if d := took(func() { mustRelease(t, b.hold(t, "k")) }); d > lease/4 {
						t.Errorf("the key was free only %v later", d)
					}
					time.Sleep(2 * lease)
					if n := dynamolock.Leftovers(a.Client); n != 0 {
						t.Errorf("%d leftovers", n)
					}
				})
			})
		}
	}
}

// D84. Somebody breaks a lock, and its holder's request that frees the key is lost: it is sent again, though the lock is over, and neither
// do the others wait for the lease nor does Close leave it.
func TestBrokenAndNotFreed(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for _, told := range []bool{false, true} { // before it releases
			for _, closes := range []bool{false, true} {
				t.Run(fmt.Sprintf("shared %v, told %v, closes %v", shared, told, closes), func(t *testing.T) {
					bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
						a, b := h.pair(t)
						var opts []holdfast.Option
						if shared {
							opts = append(opts, holdfast.WithShared())
						}
						lock := a.hold(t, "k", opts...)
						b.breakIt(t, "k", false)
						releases := 0
						a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
							if purposeOf(op) != release {
								return dynamofake.Fault{}
							}
							if releases++; told || releases == 2 { // the first one finds that it is broken
								a.conn.SetFault(nil)
								return dynamofake.Fail(dynamofake.Reset())
							}
							return dynamofake.Fault{}
						})
						if told {
							<-lock.Done()
						}
						if err := lock.Release(t.Context()); !errors.Is(err, holdfast.ErrBroken) {
							t.Errorf("released: %v", err)
						}
						if closes {
							if err := a.Close(t.Context()); err != nil {
								t.Error(err)
							}
							h.isFree(t, "k")
						}
						if d := took(func() { mustRelease(t, b.hold(t, "k")) }); d > lease/4 {
							t.Errorf("the key was free only %v later", d)
						}
						time.Sleep(2 * lease)
						if n := dynamolock.Leftovers(a.Client); n != 0 && !closes {
							t.Errorf("%d leftovers", n)
						}
					})
				})
			}
		}
	}
}

// D81. The same, of what a write takes whose caller has given up while it was under way.
func TestBrokenAsItIsGivenBack(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared %v", shared), func(t *testing.T) {
			bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
				a, b := h.pair(t)
				a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
					switch purposeOf(op) {
					case acquire:
						return dynamofake.Delay(2 * time.Second)
					case release:
						a.conn.SetFault(nil)
						time.AfterFunc(time.Second, func() { b.breakIt(t, "k", false) })
						return dynamofake.Delay(2 * time.Second)
					}
					return dynamofake.Fault{}
				})
				var opts []holdfast.Option
				if shared {
					opts = append(opts, holdfast.WithShared())
				}
				if lock, err := a.Acquire(within(t, time.Second), "k", opts...); err == nil {
					t.Fatalf("granted: %v", lock)
				}
				time.Sleep(5 * time.Second)
				if d := took(func() { mustRelease(t, b.hold(t, "k")) }); d > lease/4 {
					t.Errorf("the key was free only %v later", d)
				}
				time.Sleep(2 * lease)
				if n := dynamolock.Leftovers(a.Client); n != 0 {
					t.Errorf("%d leftovers", n)
				}
			})
		})
	}
}

// D86. What gives a key back is refused for a second, since credentials have run out: it is tried again, as after a reset, and Close does
// not say that nothing is left.
func TestGiveBackIsDenied(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for _, broken := range []bool{false, true} {
			for _, closes := range []bool{false, true} {
				t.Run(fmt.Sprintf("shared %v, broken %v, closes %v", shared, broken, closes), func(t *testing.T) {
					bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
						a, b := h.pair(t)
						var opts []holdfast.Option
						if shared {
							opts = append(opts, holdfast.WithShared())
						}
						lock := a.hold(t, "k", opts...)
						if broken {
							b.breakIt(t, "k", false)
							<-lock.Done()
						}
						a.conn.SetFault(always(dynamofake.Fail(dynamofake.Denied())))
						time.AfterFunc(time.Second, func() { a.conn.SetFault(nil) })
						if err := lock.Release(t.Context()); err == nil {
							t.Error("released, without credentials")
						}
						if closes {
							if err := a.Close(t.Context()); err == nil {
								h.isFree(t, "k")
							}
							return
						}
						if d := took(func() { mustRelease(t, b.hold(t, "k")) }); d > lease/4 {
							t.Errorf("the key was free only %v later", d)
						}
						time.Sleep(2 * lease)
						if n := dynamolock.Leftovers(a.Client); n != 0 {
							t.Errorf("%d leftovers", n)
						}
					})
				})
			}
		}
	}
}

// D87. The table has said that somebody broke the lock, and ctx ends while what is left of it is being removed: Close says that it is lost.
func TestBrokenAsCloseEnds(t *testing.T) {
	bubble(t, dynamolock.Options{}, func(t *testing.T, h *harness) {
		a, b := h.pair(t)
		a.hold(t, "k")
		b.breakIt(t, "k", false)
		releases := 0
		a.conn.SetFault(func(op dynamofake.Op) dynamofake.Fault {
			if purposeOf(op) == release {
				if releases++; releases == 2 { // the first one finds that it is broken
					return dynamofake.Delay(3 * time.Second)
				}
			}
			return dynamofake.Fault{}
		})
		if err := a.Close(within(t, time.Second/2)); !errors.Is(err, holdfast.ErrBroken) {
			t.Error(err)
		}
	})
}
