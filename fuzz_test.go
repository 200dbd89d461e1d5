package holdfast_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// The patterns that keys may not contain.
var (
	keyControl = regexp.MustCompile(`[\x00-\x1f\x7f\x{80}-\x{9f}]`)
	keyElement = regexp.MustCompile(`(^|/)(\.|\.\.)?(/|$)`) // empty, "." or ".."
)

func portable(key string) bool {
	return len(key) <= 512 && utf8.ValidString(key) && !keyControl.MatchString(key) && !keyElement.MatchString(key)
}

// FuzzKey tests guarantee G12: every call accepts the same keys, owners and prefixes, and
// refuses all others before the engine sees them, with an error that names only the
// field. A prefix is accepted if, and only if, a valid key can begin with it.
func FuzzKey(f *testing.F) {
	for _, key := range []string{
		"a", "a/b", "...", ".a", "a.", "..a/b", " ", "\u00a0", "\u00e9", "\uFFFD", "a\u2028b", "", "/", "//", "/a", "/a/b", "//a", "a/", "/a/", "a//b",
		"a//", "/a//", ".", "..", "/.", "/..a", "./a", "a/.", "a/..", "../a", "a/./", "a/../b", "/../", "/a/../b", "host:1:x", "\n", "a\rb", "\t",
		"\x00", "a\x00", "\x1f", "\x7f", "\u0080", "\u009f", "\xff", "a\xc3", strings.Repeat("o", 256), strings.Repeat("o", 257),
		strings.Repeat("k", 512), strings.Repeat("k", 513), strings.Repeat("\u00e9", 256), strings.Repeat("\u00e9", 256) + "e",
		"/" + strings.Repeat("k", 512), strings.Repeat("k", 511) + "/", strings.Repeat("k", 510) + "/.",
	} {
		f.Add(key)
	}
	asked := ""
	engine := func() *engine {
		return &engine{
			checkKey: func(key string, _ driver.Mode) error { asked = key; return nil },
			inspect:  func(_ context.Context, key string) (driver.Info, error) { return driver.Info{Key: key}, nil },
		}
	}
	plain := engine().open(f, driver.Config{})
	absolute := engine().open(f, driver.Config{AbsoluteKeys: true})
	f.Fuzz(func(t *testing.T, key string) {
		var invalid *holdfast.InvalidError
		if err := driver.CheckKey("the field", key); (err == nil) != portable(key) {
			t.Fatalf("%q: %v", key, err)
		} else if err != nil && (!errors.As(err, &invalid) || invalid.Field != "the field" || invalid.Reason == "" || !errors.Is(err, holdfast.ErrInvalid)) {
			t.Fatalf("%q: %#v", key, err)
		}
		owner := key != "" && len(key) <= 256 && utf8.ValidString(key) && !slices.Contains([]byte(key), 0)
		if err := driver.CheckOwner("owner", key); (err == nil) != owner {
			t.Fatalf("owner %q: %v", key, err)
		}
		for l, taken := range map[*holdfast.Client]func(string) bool{
			plain:    portable,
			absolute: func(key string) bool { return portable(key) || strings.HasPrefix(key, "/") && portable(key[1:]) },
		} {
			asked = ""
			_, err := l.Inspect(t.Context(), key)
			if (err == nil) != taken(key) || err != nil && !errors.Is(err, holdfast.ErrInvalid) || (asked == key) != (taken(key) || key == "") {
				t.Fatalf("%q: %v; the engine was asked about %q", key, err, asked)
			}
			// A key begins with a prefix if something can be put behind it.
			begins := key == "" || taken(key) || taken(key+"x")
			err = listed(t.Context(), l, key)
			if full := len(key) >= 510 && err == nil; (err == nil) != begins && !full || err != nil && !errors.Is(err, holdfast.ErrInvalid) {
				t.Fatalf("prefix %q: %v; there may be such a key: %v", key, err, begins)
			}
		}
	})
}

// listed is what List ends with.
func listed(ctx context.Context, l *holdfast.Client, prefix string) (err error) {
	for _, err = range l.List(ctx, prefix) {
	}
	return err
}
