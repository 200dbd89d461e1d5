package zklock

import (
	"errors"
	slashpath "path"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// zkPath reports whether ZooKeeper accepts a path, by its PathUtils, on Java's UTF-16 units.
func zkPath(path string) bool {
	if !utf8.ValidString(path) || !strings.HasPrefix(path, "/") {
		return false
	}
	for _, unit := range utf16.Encode([]rune(path)) {
		switch {
		case unit <= 0x1f, 0x7f <= unit && unit <= 0x9f, 0xd800 <= unit && unit <= 0xf8ff, 0xfff0 <= unit:
			return false
		}
	}
	if path == "/" {
		return true
	}
	for element := range strings.SplitSeq(path[1:], "/") {
		if element == "" || element == "." || element == ".." {
			return false
		}
	}
	return true
}

// accepted reports whether a client with this root takes a key.
func (p paths) accepted(key string) bool {
	return driver.CheckKey("key", strings.TrimPrefix(key, "/")) == nil && p.check(key) == nil
}

// FuzzKeyPath tests the mapping from keys to znodes: every accepted key has a path that
// ZooKeeper accepts, no key escapes from the root or becomes the root or /zookeeper, no
// two keys share a znode, and List maps znodes back to keys, and nothing else to a key.
func FuzzKeyPath(f *testing.F) {
	for _, seed := range []struct{ root, key, other, child string }{
		{"/holdfast", "orders/42", "orders%2F42", "orders%2f42"},
		{"/holdfast", "..%2F..", "\u2025", "%2E%2E"},
		{"/holdfast", "/app/locks/x", "/app/locks", "x"},
		{"/holdfast", "/holdfast/a", "a", "a"},
		{"/holdfast", "/holdfast-x", "/holdfast", "zookeeper"},
		{"/zookeeperx/y", "/zookeeper/quota", "/zookeeperx", "y"},
		{"/a", "\U0001F600\ue000\ufff0\ufffd", "\xff", "%F0%9F%98%80"},
		{"/a/b", "100%", "100%25", "100%25"},
		{"/\u0436", "a\u0085b", "/a\x7f", "%C2%85"},
		{"/a", "/a\U0001F600", "/..", "%FF"},
		{"/", "a", "/a", "a"},
		{"//", "a", "", "a"},
		{"/zookeeper", "a", "", "a"},
		{"", "/", "", "a"},
		{"/a", "\ud7ff\uf8ff\uf900\uffef", "\U0010FFFF -_~:+", "%EF%A3%BF"},
		{"/a", "%25", "%", "%2"},
		{"/a", "\u00e9/\u0416", "\u00e9%2F\u0416", "%C3%A9"},
	} {
		f.Add(seed.root, seed.key, seed.other, seed.child, byte(2))
	}
	f.Fuzz(func(t *testing.T, root, key, other, child string, cut byte) {
		opts, err := (&Options{Root: root}).resolve()
		if err != nil {
			if !errors.Is(err, holdfast.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		root = opts.Root
		if !zkPath(root) || root == "/" || root == "/zookeeper" || strings.HasPrefix(root, "/zookeeper/") {
			t.Fatalf("root %q is taken", root)
		}
		p := paths{root: root}
		for _, key := range []string{key, other} {
			if p.accepted(key) {
				checkKeyPath(t, p, key, int(cut))
			}
		}
		if key != other && p.accepted(key) && p.accepted(other) && p.lock(key) == p.lock(other) {
			t.Fatalf("%q and %q are both %q", key, other, p.lock(key))
		}
		for _, key := range []string{key, other} {
			// A path that ZooKeeper accepts and nothing else uses is accepted here, too.
			strict := strings.HasPrefix(key, "/") && key != "/" && len(key) <= holdfast.MaxKey && zkPath(key) &&
				!inside(key, root) && !inside(key, "/zookeeper")
			if strings.HasPrefix(key, "/") && p.accepted(key) != strict {
				t.Fatalf("root %q: the key %q is taken: %v", root, key, !strict)
			}
		}
		if child != "" && !strings.Contains(child, "/") {
			checkChild(t, p, key, child)
		}
	})
}

// inside is within, by elements.
func inside(path, parent string) bool {
	path, parent = path+"/", parent+"/"
	return len(path) >= len(parent) && path[:len(parent)] == parent
}

// checkKeyPath checks the path of an accepted key, and the way back.
func checkKeyPath(t *testing.T, p paths, key string, cut int) {
	path := p.lock(key)
	if !zkPath(path) || path == "/" {
		t.Fatalf("root %q: key %q has the path %q, which ZooKeeper refuses", p.root, key, path)
	}
	if inside(path, "/zookeeper") {
		t.Fatalf("root %q: key %q is the server's own %q", p.root, key, path)
	}
	if relative := key[0] != '/'; relative != inside(path, p.root) || path == p.root {
		t.Fatalf("root %q: key %q has the path %q", p.root, key, path)
	} else if relative && strings.Count(path, "/") != strings.Count(p.root, "/")+1 {
		t.Fatalf("root %q: key %q is not one node: %q", p.root, key, path)
	}
	if slashpath.Dir(path)+"/"+slashpath.Base(path) != path && "/"+slashpath.Base(path) != path {
		t.Fatalf("%q is split into %q and %q", path, slashpath.Dir(path), slashpath.Base(path))
	}
	// With any beginning of the key that reaches its own node's name.
	least := 0
	if key[0] == '/' {
		least = strings.LastIndexByte(key, '/') + 1
	}
	prefix := key[:least+cut%(len(key)-least+1)]
	parent, keyOf := p.search(prefix)
	if found, ok := keyOf(slashpath.Base(path)); !ok || found != key || parent != slashpath.Dir(path) {
		t.Fatalf("root %q: List(%q) looks for %q in %q, and finds %q, %v; want %q", p.root, prefix, slashpath.Base(path), parent, found, ok, key)
	}
}

// checkChild checks how List maps any child of a znode that it lists.
func checkChild(t *testing.T, p paths, prefix, child string) {
	if driver.CheckKey("prefix", strings.TrimPrefix(prefix, "/")+"x") != nil {
		return // see Client.List
	}
	parent, keyOf := p.search(prefix)
	key, ok := keyOf(child)
	if !ok {
		return
	}
	if !strings.HasPrefix(key, prefix) || !p.accepted(key) {
		t.Fatalf("root %q: List(%q) makes the key %q of %q", p.root, prefix, key, child)
	}
	if path := p.lock(key); path != strings.TrimSuffix(parent, "/")+"/"+child {
		t.Fatalf("root %q: List(%q) makes the key %q of %q in %q, which is %q", p.root, prefix, key, child, parent, path)
	}
}
