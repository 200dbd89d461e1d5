package zklock_test

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/zkfake"
	"github.com/holdfast-go/holdfast/zklock"
)

// chain is a queue for the permits of a large limit: two are held, and a first and a second waiter want one.
type chain struct {
	holder, first, second *wired
	held                  []*holdfast.Lock
}

func newChain(t *testing.T, e *zkfake.Ensemble, member int) *chain {
	t.Helper()
	dial := func(member int) *wired {
		w := dialMember(t, e, member, zklock.Options{})
		w.Chain()
		return w
	}
	c := &chain{holder: dial(e.Leader()), first: dial(member), second: dial(member)}
	for range 2 {
		c.held = append(c.held, c.permit(t, c.holder))
	}
	return c
}

func (c *chain) permit(t *testing.T, w *wired) *holdfast.Lock {
	t.Helper()
	lock, err := w.Acquire(inTime(t), "k", holdfast.WithLimit(2))
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// waits begins a call, and lets it look at the queue.
func (c *chain) waits(t *testing.T, w *wired) <-chan error {
	got := make(chan error, 1)
	go func() {
		_, err := w.Acquire(t.Context(), "k", holdfast.WithLimit(2))
		got <- err
	}()
	time.Sleep(virtualSession / 10)
	return got
}

// ends fails the test unless a call returns within a few session timeouts.
func (c *chain) ends(t *testing.T, what string, got <-chan error) {
	t.Helper()
	select {
	case <-got:
	case <-time.After(20 * virtualSession):
		t.Errorf("%s still waits after 20 session timeouts", what)
	}
}

func (c *chain) release(t *testing.T, i int) {
	t.Helper()
	if err := c.held[i].Release(inTime(t)); err != nil {
		t.Fatal(err)
	}
}

// kindOf returns the kind of a request, and whether it sets a watch.
func kindOf(frame []byte) (kind int32, watch bool) {
	if len(frame) < 13 {
		return 0, false
	}
	return int32(binary.BigEndian.Uint32(frame[8:12])), frame[len(frame)-1] == 1
}

// Z42. Each case hides from a waiter that it may have a permit.
func TestChain_AnythingHidden_WaiterIsServed(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, e *zkfake.Ensemble, c *chain){
		"event of the announcement lost": func(t *testing.T, _ *zkfake.Ensemble, c *chain) {
			first, second := c.waits(t, c.first), c.waits(t, c.second)
			c.second.LoseEvents(true)
			c.release(t, 0)
			c.ends(t, "the first", first)
			c.release(t, 1)
			c.ends(t, "the second", second)
		},
		"watch on the queue refused": func(t *testing.T, _ *zkfake.Ensemble, c *chain) {
			refused := false
			c.first.sends(func(frame []byte) {
				if kind, watch := kindOf(frame); kind == opGetChildren2 && watch && !refused {
					refused = true
					c.first.Answer(opGetChildren2, -102)
				}
			})
			c.ends(t, "the first", c.waits(t, c.first))
		},
		"diverged server": func(t *testing.T, e *zkfake.Ensemble, c *chain) {
			acquire(t, c.first, "another")
			time.Sleep(time.Second)
			diverge := e.Keep((e.Leader()+1)%3, virtualRoot)
			if err := c.holder.Client.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			diverge()
			got, dials := c.waits(t, c.first), c.first.dials.Load()
			time.Sleep(20 * virtualSession)
			if len(got) == 0 && c.first.dials.Load() == dials {
				t.Error("it has not left the server in 20 session timeouts")
			}
		},
		"announced after another program wrote": func(t *testing.T, e *zkfake.Ensemble, c *chain) {
			first := c.waits(t, c.first)
			queue := e.Children(virtualRoot + "/k")
			last := slices.MaxFunc(queue, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
			reads := 0
			c.second.sends(func(frame []byte) {
				kind, watch := kindOf(frame)
				if kind != opGetData || !watch || !strings.Contains(string(frame), last) {
					return
				}
				if reads++; reads == 3 {
					_ = c.held[0].Release(t.Context())
					time.Sleep(100 * time.Millisecond)
				}
			})
			second := c.waits(t, c.second)
			for range 2 {
				if _, err := c.holder.Conn().Set(virtualRoot+"/k/"+last, []byte("foreign"), -1); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			c.ends(t, "the first", first)
			c.release(t, 1)
			c.ends(t, "the second", second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := zkfake.New(zkfake.Config{Members: 3, Latency: func() time.Duration { return time.Millisecond }})
				t.Cleanup(e.Close)
				test(t, e, newChain(t, e, (e.Leader()+1)%3))
			})
		})
	}
}
