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

// A nil ctx is refused before anything is done, and so is a lock that was not acquired.
func TestNilContext(t *testing.T) {
	client := (&engine{}).open(t, driver.Config{})
	lock, err := client.Acquire(t.Context(), "held")
	if err != nil {
		t.Fatal(err)
	}
	locks, err := client.AcquireAll(t.Context(), []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	election, err := client.Election("elected", nil)
	if err != nil {
		t.Fatal(err)
	}
	info := holdfast.Info{Key: "held", Held: true, Holder: holdfast.Holder{Grant: "1"}}
	second := func(_ any, err error) error { return err }
	var none context.Context
	for name, err := range map[string]error{
		"Acquire":       second(client.Acquire(none, "k")),
		"TryAcquire":    second(client.TryAcquire(none, "k")),
		"AcquireAny":    second(client.AcquireAny(none, []string{"k"})),
		"AcquireAll":    second(client.AcquireAll(none, []string{"k"})),
		"TryAcquireAll": second(client.TryAcquireAll(none, []string{"k"})),
		"Do":            client.Do(none, "k", func(context.Context, *holdfast.Lock) error { return nil }),
		"Inspect":       second(client.Inspect(none, "k")),
		"Break":         client.Break(none, info),
		"Ask":           client.Ask(none, info),
		"Verify":        lock.Verify(none),
		"SetData":       lock.SetData(none, nil),
		"Release":       lock.Release(none),
		"Locks.Verify":  locks.Verify(none),
		"Locks.Release": locks.Release(none),
		"Run":           election.Run(none, func(context.Context, *holdfast.Lock) error { return nil }),
		"Resign":        election.Resign(none),
		"Close":         client.Close(none),
	} {
		if !errors.Is(err, holdfast.ErrInvalid) || !strings.HasPrefix(fmt.Sprint(err), "holdfast: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, err := range client.List(none, "") {
		if !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("List: %v", err)
		}
	}
	for _, err := range client.Observe(none, "k") {
		if !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("Observe: %v", err)
		}
	}
	if err := errors.Join(lock.Err(), locks.Err()); err != nil {
		t.Error(err)
	}
	mustClose(t, client) // no call is left that it would wait for
	if err := new(holdfast.Lock).Release(t.Context()); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("Release of a lock that was not acquired: %v", err)
	}
}
