package zklock

import (
	"cmp"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/driver"
)

// paths translates between keys and the znodes of their locks. A key is one escaped znode under root; a key that starts with a slash
// is a znode path. Both are below the chroot.
type paths struct {
	chroot string // "" for none
	root   string // without the chroot
}

// check refuses absolute keys that would get in the way of other things.
func (p paths) check(key string) error {
	if !strings.HasPrefix(key, "/") {
		return nil
	}
	switch {
	case within(key, p.root):
		return driver.Invalid("key", "%q is inside the client's root %q", key, p.root)
	case within(p.chroot+key, "/zookeeper"):
		return driver.Invalid("key", "%q is inside /zookeeper, which is the server's own", key)
	}
	return checkPath("key", key)
}

// lock returns the path of the znode whose children are the queue for a key.
func (p paths) lock(key string) string {
	if strings.HasPrefix(key, "/") {
		return p.chroot + key
	}
	return p.chroot + p.root + "/" + escape(key)
}

// search returns the znode whose children are the locks with keys that begin with prefix, and a function that makes the key of a child;
// false for a child that has none.
func (p paths) search(prefix string) (parent string, key func(child string) (string, bool)) {
	if !strings.HasPrefix(prefix, "/") {
		return p.chroot + p.root, func(child string) (string, bool) {
			key, ok := unescape(child)
			return key, ok && strings.HasPrefix(key, prefix)
		}
	}
	slash := strings.LastIndexByte(prefix, '/')
	return cmp.Or(p.chroot+prefix[:slash], "/"), func(child string) (string, bool) {
		key := prefix[:slash+1] + child
		return key, strings.HasPrefix(key, prefix) && p.check(key) == nil
	}
}

// escape makes a znode name of a key: percent-encoding, as in URLs, of the slash, of the percent sign and of the runes that ZooKeeper,
// whose strings are UTF-16, does not allow in paths.
func escape(key string) string {
	var b strings.Builder
	for i, r := range key {
		if r != '/' && r != '%' && allowed(r) {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(key[i : i+utf8.RuneLen(r)]) {
			const hex = "0123456789ABCDEF"
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// unescape is the inverse of escape; false for what escape does not make.
func unescape(name string) (string, bool) {
	key, err := url.PathUnescape(name)
	return key, err == nil && utf8.ValidString(key) && escape(key) == name && driver.CheckKey("key", key) == nil
}

// allowed reports whether ZooKeeper takes a rune in a path (PathUtils in its client). Runes beyond 16 bits are surrogates there.
func allowed(r rune) bool {
	return r > 0x1f && r < 0x7f || r > 0x9f && r < 0xd800 || r > 0xf8ff && r < 0xfff0
}

// checkPath refuses what is not a znode path below "/".
func checkPath(field, path string) error {
	if len(path) < 2 || path[0] != '/' {
		return driver.Invalid(field, "%q is not an absolute znode path below /", path)
	}
	if err := driver.CheckKey(field, path[1:]); err != nil {
		return err
	}
	for _, r := range path {
		if !allowed(r) {
			return driver.Invalid(field, "%q has the character %U, which ZooKeeper does not allow in paths", path, r)
		}
	}
	return nil
}

// within reports whether path is parent or below it.
func within(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}
