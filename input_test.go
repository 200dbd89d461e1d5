package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

func TestNew(t *testing.T) {
	failed := errors.New("no server")
	for name, c := range map[string]struct {
		config driver.Config
		open   func(driver.Host) (driver.Driver, error)
		want   error
	}{
		"owner":      {driver.Config{Owner: "a\x00"}, nil, holdfast.ErrInvalid},
		"margin":     {driver.Config{Margin: -1}, nil, holdfast.ErrInvalid},
		"open fails": {driver.Config{}, func(driver.Host) (driver.Driver, error) { return nil, failed }, failed},
	} {
		l, err := holdfast.New(c.config, nil, func(h driver.Host) (driver.Driver, error) {
			if c.open == nil {
				t.Errorf("%s: the engine is opened", name)
				return &engine{}, nil
			}
			return c.open(h)
		})
		if l != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := holdfast.New(driver.Config{}, nil, func(driver.Host) (driver.Driver, error) { return nil, nil }); err == nil {
		t.Error("a client without an engine")
	}
	owners := make(map[string]bool)
	for range 100 {
		b := &engine{}
		l := b.open(t, driver.Config{})
		if l.Owner() != b.host.Owner() || b.host.Logger() == nil || driver.CheckOwner("owner", l.Owner()) != nil {
			t.Errorf("owner %q, the engine is told %q", l.Owner(), b.host.Owner())
		}
		owners[l.Owner()] = true
	}
	if len(owners) != 100 {
		t.Errorf("100 clients have %d names", len(owners))
	}
}

// Errors say what was tried on which key, once, and are of a readable size.
func TestErrorTexts(t *testing.T) {
	l := (&engine{acquire: func(_ context.Context, req *driver.Request) (driver.Grant, error) {
		return driver.Grant{}, driver.Held(driver.Info{Key: req.Key, Holder: driver.Holder{Owner: "me", Token: 7}})
	}}).open(t, driver.Config{})
	_, err := l.TryAcquire(t.Context(), "orders/42")
	if want := `holdfast: acquire "orders/42": held by "me" (token 7)`; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	_, err = l.TryAcquireAll(t.Context(), []string{"orders/43", "orders/42"})
	if want := `holdfast: acquire all of 2 keys: "orders/42": held by "me" (token 7)`; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	_, err = l.Acquire(t.Context(), strings.Repeat("k", 1<<20))
	if n := len(fmt.Sprint(err)); n > 300 {
		t.Errorf("an error about a key of 1 MB has %d bytes", n)
	}
	_, err = l.Acquire(t.Context(), strings.Repeat("\xff", 500))
	if n := len(fmt.Sprint(err)); n > 3000 {
		t.Errorf("an error about a key of 500 bytes has %d", n)
	}
	if want := "12"; holdfast.Token(12).String() != want {
		t.Error(holdfast.Token(12).String())
	}
}
