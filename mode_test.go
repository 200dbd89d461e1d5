package holdfast_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

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
