package zklock

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// TestLockPath checks the paths of keys. All are below the chroot, and keys do not show it.
func TestLockPath(t *testing.T) {
	p, chrooted := paths{root: "/holdfast"}, paths{chroot: "/app", root: "/holdfast"}
	for _, test := range []struct {
		p         paths
		key, want string
	}{
		{p, "a", "/holdfast/a"},
		{p, "orders/42", "/holdfast/orders%2F42"},
		{p, "100%", "/holdfast/100%25"},
		{p, "%2F", "/holdfast/%252F"},
		{p, "zookeeper", "/holdfast/zookeeper"},
		{p, "Ω ж", "/holdfast/Ω ж"},
		{p, "😀", "/holdfast/%F0%9F%98%80"},
		{p, "\ufffd", "/holdfast/%EF%BF%BD"},
		{p, "\ue000", "/holdfast/%EE%80%80"},
		{p, "/app/locks", "/app/locks"},
		{p, "/holdfast-x", "/holdfast-x"},
		{chrooted, "a", "/app/holdfast/a"},
		{chrooted, "/x/y", "/app/x/y"},
		{chrooted, "/app", "/app/app"},
		{chrooted, "/zookeeper/x", "/app/zookeeper/x"},
	} {
		if got := test.p.lock(test.key); got != test.want || test.p.check(test.key) != nil {
			t.Errorf("%+v: lock(%q) = %q, %v; want %q", test.p, test.key, got, test.p.check(test.key), test.want)
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
	if err := chrooted.check("/holdfast/a"); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("a key inside the root: %v", err)
	}
}
