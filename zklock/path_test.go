package zklock

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
)

func TestLockPath(t *testing.T) {
	p := paths{root: "/holdfast"}
	for key, want := range map[string]string{
		"a":           "/holdfast/a",
		"orders/42":   "/holdfast/orders%2F42",
		"100%":        "/holdfast/100%25",
		"%2F":         "/holdfast/%252F",
		"zookeeper":   "/holdfast/zookeeper",
		"Ω ж":         "/holdfast/Ω ж",
		"😀":           "/holdfast/%F0%9F%98%80",
		"\ufffd":      "/holdfast/%EF%BF%BD",
		"\ue000":      "/holdfast/%EE%80%80",
		"/app/locks":  "/app/locks",
		"/holdfast-x": "/holdfast-x",
	} {
		if got := p.lock(key); got != want {
			t.Errorf("lock(%q) = %q, want %q", key, got, want)
		}
		if err := p.check(key); err != nil {
			t.Errorf("check(%q): %v", key, err)
		}
	}
	for _, key := range []string{
		"/", "//", "/a//b", "/a/", "/a/./b", "/a/../b", "/..", "/holdfast", "/holdfast/a", "/holdfast/a/b",
		"/zookeeper", "/zookeeper/quota", "/a\x00b", "/a\x7fb", "/a\u0085b", "/a😀", "/\ufff0", "/\ue000", "/\xff",
	} {
		if err := p.check(key); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("check(%q) = %v, want ErrInvalid", key, err)
		}
	}
}

// TestEscape: a key is one node under the root, whatever is in it; no two keys share a
// node; and every such node maps back to its key.
func TestEscape(t *testing.T) {
	alphabet := []rune("ab%/.2F5\u00e9\u0416\ud7ff\ue000\uf8ff\uf900\uffef\ufff0\ufffd\U0001F600\U0010FFFF -_~:+")
	r := rand.New(rand.NewPCG(1, 2))
	nodes := make(map[string]string)
	p := paths{root: "/holdfast"}
	for range 20_000 {
		var b strings.Builder
		for range 1 + r.IntN(6) {
			b.WriteRune(alphabet[r.IntN(len(alphabet))])
		}
		key := b.String()
		if holdfast.CheckKey("key", key) != nil {
			continue
		}
		node := escape(key)
		if strings.Contains(node, "/") || node == "." || node == ".." || !utf8.ValidString(node) {
			t.Fatalf("escape(%q) = %q is no name of one node", key, node)
		}
		if err := checkPath("path", p.root+"/"+node); err != nil {
			t.Fatalf("escape(%q) = %q: %v", key, node, err)
		}
		if back, ok := unescape(node); !ok || back != key {
			t.Fatalf("unescape(escape(%q)) = %q, %v", key, back, ok)
		}
		if other, ok := nodes[node]; ok && other != key {
			t.Fatalf("%q and %q are both %q", key, other, node)
		}
		nodes[node] = key
	}
	for _, node := range []string{"a%2fb", "%41", "%", "%2", "%zz", "%2F", "a%2F", "%2E%2E%2F", "a%2F%2Fb", "%FF", "%00", ""} {
		if key, ok := unescape(node); ok {
			t.Errorf("unescape(%q) = %q; no key is escaped like that", node, key)
		}
	}
}

func TestSearch(t *testing.T) {
	p := paths{root: "/holdfast"}
	for _, test := range []struct{ prefix, parent, child, key string }{
		{"", "/holdfast", "a", "a"},
		{"", "/holdfast", "orders%2F42", "orders/42"},
		{"orders/", "/holdfast", "orders%2F42", "orders/42"},
		{"orders/", "/holdfast", "order", ""},
		{"orders/", "/holdfast", "not%2fours", ""},
		{"/app/", "/app", "x", "/app/x"},
		{"/app/x", "/app", "xy", "/app/xy"},
		{"/app/x", "/app", "y", ""},
		{"/", "/", "app", "/app"},
		{"/", "/", "zookeeper", ""},
		{"/", "/", "holdfast", ""},
		{"/app", "/", "application", "/application"},
	} {
		parent, keyOf := p.search(test.prefix)
		key, ok := keyOf(test.child)
		if parent != test.parent || ok != (test.key != "") || (ok && key != test.key) {
			t.Errorf("search(%q): parent %q, child %q is key %q (%v); want %q and %q", test.prefix, parent, test.child, key, ok, test.parent, test.key)
		}
	}
}

// TestChroot: all paths are below the chroot, and keys do not show it.
func TestChroot(t *testing.T) {
	p := paths{chroot: "/app", root: "/holdfast"}
	for key, want := range map[string]string{
		"a": "/app/holdfast/a", "/x/y": "/app/x/y", "/app": "/app/app", "/zookeeper/x": "/app/zookeeper/x",
	} {
		if got := p.lock(key); got != want || p.check(key) != nil {
			t.Errorf("lock(%q) = %q, %v, want %q", key, got, p.check(key), want)
		}
	}
	if err := p.check("/holdfast/a"); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("a key inside the root: %v", err)
	}
	for _, test := range []struct{ prefix, parent, child, key string }{
		{"", "/app/holdfast", "orders%2F42", "orders/42"},
		{"/", "/app", "x", "/x"},
		{"/", "/app", "holdfast", ""},
		{"/x", "/app", "xy", "/xy"},
		{"/x/", "/app/x", "y", "/x/y"},
	} {
		parent, keyOf := p.search(test.prefix)
		if key, ok := keyOf(test.child); parent != test.parent || key != test.key && ok || ok != (test.key != "") {
			t.Errorf("search(%q): parent %q, child %q is key %q (%v); want %q and %q", test.prefix, parent, test.child, key, ok, test.parent, test.key)
		}
	}
}

func TestDirBase(t *testing.T) {
	for path, want := range map[string][2]string{"/a": {"/", "a"}, "/a/b": {"/a", "b"}, "/a/b/c": {"/a/b", "c"}} {
		if got := [2]string{dir(path), base(path)}; got != want {
			t.Errorf("%q: dir and base %q, want %q", path, got, want)
		}
	}
}
