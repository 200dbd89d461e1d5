package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// told has the engine's Observe called by hand: the channel has the tell of each call, which goes on until its ctx
// ends or an error is sent.
type told struct {
	tells chan func(driver.Info)
	fail  chan error
}

func (b *engine) told() *told {
	s := &told{tells: make(chan func(driver.Info), 10), fail: make(chan error)}
	b.observe = func(ctx context.Context, _ string, tell func(driver.Info)) error {
		s.tells <- tell
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.fail:
			return err
		}
	}
	return s
}

// observing collects what a loop gets, as text.
type observing struct {
	mu  sync.Mutex
	got []string
	err error
	end context.CancelFunc
}

func observe(t *testing.T, c *holdfast.Client) *observing {
	ctx, cancel := context.WithCancel(t.Context())
	o := &observing{end: cancel}
	go func() {
		for info, err := range c.Observe(ctx, "k") {
			o.mu.Lock()
			stale := map[bool]string{true: " stale"}[info.Stale]
			switch {
			case err != nil:
				o.err = err
			case info.Held:
				tokens := []string{fmt.Sprint(info.Token)}
				for _, h := range info.Holders[min(1, len(info.Holders)):] {
					tokens = append(tokens, fmt.Sprint(h.Token))
				}
				o.got = append(o.got, strings.Join(tokens, "+")+string(info.Data)+stale)
			default:
				o.got = append(o.got, "-"+stale)
			}
			o.mu.Unlock()
		}
	}()
	return o
}

func (o *observing) expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Equal(o.got, want) {
		t.Errorf("told %v, want %v", o.got, want)
	}
}

func state(token holdfast.Token, data string) driver.Info {
	return driver.Info{Key: "k", Held: true, Holder: driver.Holder{Token: token, Grant: fmt.Sprint("grant ", token), Data: []byte(data)}}
}

func unfenced(token holdfast.Token) driver.Info {
	info := state(token, "")
	info.Unfenced = true
	return info
}

func sharers(tokens ...holdfast.Token) driver.Info {
	var holders []driver.Holder
	for _, token := range tokens {
		holders = append(holders, driver.Holder{Token: token, Grant: fmt.Sprint("grant ", token)})
	}
	return driver.Together("k", 0, holders)
}

var nobody, wiped = driver.Info{Key: "k"}, driver.Info{Key: "wiped"}

func TestObserveDropsWhatIsNoNews(t *testing.T) {
	for name, c := range map[string]struct {
		engine []driver.Info
		want   []string
	}{
		"the same again":            {[]driver.Info{nobody, nobody, state(1, ""), state(1, ""), nobody}, []string{"-", "1", "-"}},
		"a holder after the next":   {[]driver.Info{state(2, ""), state(1, ""), state(3, "")}, []string{"2", "3"}},
		"... though it is free now": {[]driver.Info{state(2, ""), nobody, state(1, ""), state(2, ""), state(3, "")}, []string{"2", "-", "3"}},
		"new data":                  {[]driver.Info{state(1, "a"), state(1, "b"), state(1, "b")}, []string{"1a", "1b"}},
		"no tokens": {
			[]driver.Info{
				{Key: "k", Held: true, Holder: driver.Holder{Grant: "x"}},
				nobody,
				{Key: "k", Held: true, Holder: driver.Holder{Grant: "x"}},
				{Key: "k", Held: true, Holder: driver.Holder{Grant: "y"}},
			},
			[]string{"0", "-", "0", "0"},
		},
		"another grant of the same name": { // R25
			[]driver.Info{{Key: "k", Held: true, Holder: driver.Holder{Token: 1, Grant: "x"}}, nobody, {Key: "k", Held: true, Holder: driver.Holder{Token: 2, Grant: "x"}}},
			[]string{"1", "-", "2"},
		},
		"readers that do not keep to the order": {
			[]driver.Info{state(1, ""), unfenced(9), state(2, ""), nobody, state(3, "")},
			[]string{"1", "9", "2", "-", "3"},
		},
		"a holder that comes back, and one that counts from 1": {
			[]driver.Info{state(5, ""), unfenced(7), nobody, unfenced(7), unfenced(1), state(4, ""), state(6, "")},
			[]string{"5", "7", "-", "7", "1", "6"},
		},
		"a grant that was broken and has another name": {
			[]driver.Info{state(1, ""), {Key: "k", Held: true, Holder: driver.Holder{Token: 1, Grant: "broken"}}, nobody},
			[]string{"1", "-"},
		},
		"a sharer that was over": {
			[]driver.Info{sharers(1, 2), sharers(1), sharers(1, 2), sharers(1, 2, 3), sharers(2, 3), nobody, sharers(2, 4)},
			[]string{"1+2", "1", "1+3", "3", "-", "4"},
		},
		"after a wipe": {
			[]driver.Info{sharers(8, 9), nobody, wiped, state(3, ""), state(2, ""), nobody, wiped, sharers(1, 2)},
			[]string{"8+9", "-", "3", "-", "1+2"},
		},
		"the last sharer, when that was over": {[]driver.Info{sharers(1, 2), sharers(1), sharers(2), sharers(3)}, []string{"1+2", "1", "3"}},
		"the queue": {[]driver.Info{state(1, ""), {
			Key: "k", Held: true, Holder: driver.Holder{Token: 1, Grant: "grant 1"}, Queue: []driver.Waiter{{Owner: "w"}},
		}}, []string{"1"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				client, b, _ := openFake(t)
				defer client.Close(t.Context())
				s := b.told()
				o := observe(t, client)
				tell := <-s.tells
				o.expect(t)
				for _, info := range c.engine {
					if info.Key == wiped.Key {
						s.fail <- driver.ErrHistoryLost
						tell = <-s.tells
						continue
					}
					tell(info)
					synctest.Wait()
				}
				o.expect(t, c.want...)
			})
		})
	}
}

// A slow observer gets the newest state, and no other waits for it.
func TestObserveConflates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, b, _ := openFake(t)
		defer client.Close(t.Context())
		s := b.told()
		ready := make(chan struct{})
		var tell func(driver.Info)
		go func() {
			tell = <-s.tells
			tell(nobody)
			close(ready)
		}()
		var got []holdfast.Token
		for info, err := range client.Observe(t.Context(), "k") {
			if err != nil {
				t.Fatal(err)
			}
			<-ready
			if got = append(got, info.Token); info.Token == 100 {
				break
			}
			for token := range holdfast.Token(50) {
				tell(state(info.Token+token+1, ""))
			}
		}
		if !slices.Equal(got, []holdfast.Token{0, 50, 100}) {
			t.Errorf("told %v", got)
		}
	})
}

// An observation that has failed has failed for all, and the next one asks again.
func TestObserveFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client, b, _ := openFake(t)
		defer client.Close(t.Context())
		s := b.told()
		x, y := observe(t, client), observe(t, client)
		synctest.Wait()
		(<-s.tells)(state(1, ""))
		s.fail <- fmt.Errorf("the engine: %w", holdfast.ErrDenied)
		for _, o := range []*observing{x, y} {
			o.expect(t, "1") // what was told before the error is told before it
			if !errors.Is(o.err, holdfast.ErrDenied) {
				t.Errorf("it ended with %v", o.err)
			}
		}
		z := observe(t, client)
		s.fail <- nil // an engine must not, but its observers must not wait for ever
		synctest.Wait()
		if z.err == nil {
			t.Error("it did not end with an error")
		}
	})
}

// Observers that come and go at the same time are told the last state, and the engine's calls end with them.
func TestObserversComeAndGo(t *testing.T) {
	client, b, _ := openFake(t)
	var mu sync.Mutex
	var newest holdfast.Token
	tells := map[int]func(driver.Info){}
	calls := 0
	b.observe = func(ctx context.Context, _ string, tell func(driver.Info)) error {
		mu.Lock()
		calls++
		id := calls
		tells[id] = tell
		tell(state(newest, ""))
		mu.Unlock()
		<-ctx.Done()
		mu.Lock()
		defer mu.Unlock()
		delete(tells, id)
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const last = 300
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for token := holdfast.Token(0); token < last; {
				n := 0
				for info, err := range client.Observe(ctx, "k") {
					if err != nil || info.Token < token {
						t.Errorf("%v after %v, %v", info.Token, token, err)
						return
					}
					token = info.Token
					if n++; n == 3 || token == last {
						break
					}
				}
			}
		})
	}
	for token := range holdfast.Token(last + 1) {
		mu.Lock()
		newest = token
		for _, tell := range tells {
			tell(state(token, ""))
		}
		mu.Unlock()
		runtime.Gosched()
	}
	all.Wait()
	if err := client.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if len(tells) > 0 {
		t.Errorf("%d calls of the engine are left", len(tells))
	}
}
