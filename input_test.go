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

func TestCheckKey(t *testing.T) {
	long := strings.Repeat("k", holdfast.MaxKey)
	for _, key := range []string{"a", "a/b", "...", ".a", "a.", "..a/b", " ", "\u00a0", "é", "\uFFFD", long, "a\u2028b"} {
		if err := holdfast.CheckKey("key", key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{
		"", "/", "//", "/a", "a/", "a//b", ".", "..", "./a", "a/.", "a/../b", "\x00", "a\x00", "\t", "a\rb", "\x1f", "\x7f", "\u0080",
		"\u009f", "\xff", "a\xc3", long + "k", strings.Repeat("é", holdfast.MaxKey/2) + "e",
	} {
		var invalid *holdfast.InvalidError
		if err := holdfast.CheckKey("the field", key); !errors.As(err, &invalid) || invalid.Field != "the field" || invalid.Reason == "" {
			t.Errorf("%q is allowed: %v", key, err)
		}
	}
}

func TestCheckOwner(t *testing.T) {
	long := strings.Repeat("o", holdfast.MaxOwner)
	for _, name := range []string{"a", "host:1:x", "\n", "é", "/", "..", long} {
		if err := holdfast.CheckOwner("owner", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "\x00", "a\x00b", "\xff", long + "o"} {
		if err := holdfast.CheckOwner("owner", name); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%q is allowed: %v", name, err)
		}
	}
}

// Keys with a slash in front are for engines that have asked for them.
func TestAbsoluteKeys(t *testing.T) {
	checked := ""
	b := &engine{checkKey: func(key string) error { checked = key; return nil }}
	l := b.open(t, driver.Config{AbsoluteKeys: true})
	plain := new(engine).open(t, driver.Config{})
	for _, key := range []string{"/a", "/a/b", "a"} {
		if acquire(t, l, key); checked != key {
			t.Errorf("the engine was asked about %q, not %q", checked, key)
		}
		if _, err := plain.Acquire(t.Context(), key); errors.Is(err, holdfast.ErrInvalid) != (key[0] == '/') {
			t.Errorf("%q on an engine without: %v", key, err)
		}
	}
	for _, key := range []string{"/", "//", "//a", "/a/", "/.", "/a/../b"} {
		if _, err := l.Acquire(t.Context(), key); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%q: %v", key, err)
		}
	}
	for prefix, ok := range map[string]bool{
		"": true, "/": true, "/a": true, "/a/": true, "a/": true, "a": true, "//": false, "/a//": false, "a//": false, "/../": false,
		"a/.": true, "a/..": true, ".": true, "/.": true, "a/./": false, "../a": false,
	} {
		for _, err := range l.List(t.Context(), prefix) {
			if ok || !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("prefix %q, allowed %v: %v", prefix, ok, err)
			}
			ok = true // told
		}
		if !ok {
			t.Errorf("prefix %q is allowed", prefix)
		}
	}
}

// The engine's own rule for keys comes after the portable ones, everywhere.
func TestEngineRefusesAKey(t *testing.T) {
	b := &engine{checkKey: func(key string) error {
		if key == "no" {
			return driver.Invalid("key", "%q is taken", key)
		}
		return nil
	}, acquire: func(context.Context, *driver.Request) (driver.Grant, error) {
		t.Error("the engine was asked")
		return driver.Grant{}, nil
	}}
	l := b.open(t, driver.Config{})
	_, acquired := l.Acquire(t.Context(), "no")
	_, inspected := l.Inspect(t.Context(), "no")
	_, any := l.AcquireAny(t.Context(), []string{"yes", "no"})
	for name, err := range map[string]error{"Acquire": acquired, "Inspect": inspected, "AcquireAny": any} {
		if !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

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
		l, err := holdfast.New(c.config, holdfast.Hooks{}, func(h driver.Host) (driver.Driver, error) {
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
	if _, err := holdfast.New(driver.Config{}, holdfast.Hooks{}, func(driver.Host) (driver.Driver, error) { return nil, nil }); err == nil {
		t.Error("a client without an engine")
	}
	owners := make(map[string]bool)
	for range 100 {
		b := &engine{}
		l := b.open(t, driver.Config{})
		if l.Owner() != b.host.Owner() || b.host.Logger() == nil || holdfast.CheckOwner("owner", l.Owner()) != nil {
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
		return driver.Grant{}, &driver.HeldError{Holder: driver.Info{Key: req.Key, Owner: "me", Token: 7}}
	}}).open(t, driver.Config{})
	_, err := l.TryAcquire(t.Context(), "orders/42")
	if want := `holdfast: acquire "orders/42": "orders/42" is held by "me" (token 7)`; fmt.Sprint(err) != want {
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
