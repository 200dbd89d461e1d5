package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// The engine is told how a key is to be shared, and the lock says it.
func TestMode(t *testing.T) {
	for _, c := range []struct {
		opt  holdfast.Option
		want driver.Mode
	}{
		{nil, driver.Mode{}},
		{holdfast.WithShared(), driver.Mode{Shared: true}},
		{holdfast.WithLimit(5), driver.Mode{Shared: true, Limit: 5}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var checked, asked []driver.Mode
			b := &engine{}
			b.checkKey = func(_ string, mode driver.Mode) error {
				checked = append(checked, mode)
				return nil
			}
			b.acquire = func(_ context.Context, req *driver.Request) (driver.Grant, error) {
				asked = append(asked, req.Mode)
				return b.grant(), nil
			}
			l := b.open(t, driver.Config{})
			lock := acquire(t, l, "k", c.opt)
			synctest.Wait()
			if !slices.Equal(checked, []driver.Mode{c.want}) || !slices.Equal(asked, checked) {
				t.Errorf("checked %v, asked %v, want %v", checked, asked, c.want)
			}
			if lock.Shared() != c.want.Shared || lock.Limit() != c.want.Limit {
				t.Errorf("lock %v %d, want %v", lock.Shared(), lock.Limit(), c.want)
			}
			large := make([]byte, holdfast.MaxSharedData+1)
			if err := lock.SetData(t.Context(), large); errors.Is(err, holdfast.ErrInvalid) != c.want.Shared {
				t.Errorf("%v: SetData of %d bytes: %v", c.want, len(large), err)
			}
			mustRelease(t, lock)
			mustClose(t, l)
		})
	}
}

// together is a key that is shared under tokens, named by their data.
func together(tokens ...holdfast.Token) driver.Info {
	var holders []driver.Holder
	for _, n := range tokens {
		holders = append(holders, driver.Holder{
			Owner: fmt.Sprint("owner", n), Token: n, Since: time.Unix(int64(n), 0), QueuedAt: time.Unix(int64(n)-1, 0),
			Data: fmt.Append(nil, n), Lease: time.Duration(n), Grant: fmt.Sprint("grant", n),
		})
	}
	return driver.Together("k", 0, holders)
}

// An Info of several holders describes the oldest; Each yields all, as Break takes them.
func TestInfoEach(t *testing.T) {
	for name, c := range map[string]struct {
		info driver.Info
		want []string
	}{
		"nobody":    {driver.Info{Key: "k", Queue: []driver.Waiter{{Owner: "w"}}}, nil},
		"exclusive": {driver.Info{Key: "k", Held: true, Holder: driver.Holder{Owner: "owner7", Token: 7, Grant: "grant7"}}, []string{"grant7"}},
		"shared":    {together(5, 7, 9), []string{"grant5", "grant7", "grant9"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.info.Queue = []driver.Waiter{{Owner: "w", Shared: true}}
			var broken []string
			b := &engine{inspect: func(context.Context, string) (driver.Info, error) { return c.info, nil }}
			b.brk = func(_ context.Context, info driver.Info) error {
				broken = append(broken, info.Grant)
				if info.Owner != "owner"+info.Grant[5:] || fmt.Sprint(info.Token) != info.Grant[5:] || info.Shared != c.info.Shared {
					t.Errorf("the engine is to break %+v", info)
				}
				return nil
			}
			l := b.open(t, driver.Config{})
			info, err := l.Inspect(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			if info.Held {
				if err := l.Break(t.Context(), info); err != nil || broken[0] != c.want[0] {
					t.Errorf("Break of the whole: %v, %v", broken, err)
				}
			}
			broken = nil
			for one := range info.Each() {
				if one.Holders != nil || one.Queue != nil || !one.Held || one.Shared != info.Shared {
					t.Errorf("%+v", one)
				}
				if info.Shared && (string(one.Data) != one.Token.String() || one.Lease != time.Duration(one.Token) ||
					one.Since.Unix() != int64(one.Token) || one.QueuedAt.Unix() != int64(one.Token)-1) {
					t.Errorf("%+v", one)
				}
				if err := l.Break(t.Context(), one); err != nil {
					t.Error(err)
				}
			}
			if !slices.Equal(broken, c.want) || len(info.Queue) != 1 || !info.Queue[0].Shared {
				t.Errorf("broke %v, want %v; queue %v", broken, c.want, info.Queue)
			}
			for range info.Each() {
				break
			}
			mustClose(t, l)
		})
	}
}

// A HeldError gives the mode of the holders.
func TestHeldErrorOfSeveral(t *testing.T) {
	permits := together(5)
	permits.Limit = 3
	for want, info := range map[string]driver.Info{
		`held by "owner5" (reader, token 5) and 2 more`: together(5, 7, 9),
		`held by "owner5" (permit of 3, token 5)`:       permits,
		`held by "a" (token 5)`:                         {Key: "k", Held: true, Holder: driver.Holder{Owner: "a", Token: 5}},
	} {
		b := &engine{acquire: func(context.Context, *driver.Request) (driver.Grant, error) {
			return driver.Grant{}, driver.Held(info)
		}}
		_, err := b.open(t, driver.Config{}).TryAcquire(t.Context(), "k")
		if want = `holdfast: acquire "k": ` + want; fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Observers are told of each that joins and leaves, and of nobody whose grant was over when nobody held the key, or
// when an exclusive holder did.
func TestObserveSharers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &engine{}
		s := b.told()
		var seen []int
		l := b.open(t, driver.Config{}, only(func(e holdfast.Event) { seen = append(seen, e.Holders) }, holdfast.Observed))
		var got [][]holdfast.Holder
		go func() {
			for info, err := range l.Observe(t.Context(), "k") {
				if err != nil {
					return
				}
				got = append(got, info.Holders)
			}
		}()
		tell := <-s.tells
		for _, step := range []struct {
			info driver.Info
			told bool
		}{
			{together(5, 6, 7), true},
			{together(5, 6, 7), false},
			{together(5, 7), true},
			{together(5, 7, 8), true},
			{driver.Info{Key: "k", Held: true, Holder: driver.Holder{Token: 9}}, true},
			{together(7, 8), false},
			{together(10, 11, 12), true},
			{driver.Info{Key: "k"}, true},
			{together(11, 12), false},
			{together(13), true},
			{driver.Together("k", 3, together(13).Holders), true},
		} {
			before := len(got)
			tell(step.info)
			synctest.Wait()
			if told := len(got) > before; told != step.told {
				t.Errorf("%+v: told: %v, want %v", step.info, told, step.told)
			}
		}
		if want := []int{3, 2, 3, 1, 3, 0, 1, 1}; !slices.Equal(seen, want) {
			t.Errorf("events: %v, want %v", seen, want)
		}
		mustClose(t, l)
	})
}
