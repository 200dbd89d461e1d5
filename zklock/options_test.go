package zklock

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast"
)

func TestOptionsDefaults(t *testing.T) {
	for name, opts := range map[string]*Options{"nil": nil, "zero": {}} {
		got, err := opts.resolve()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Root != DefaultRoot || got.SessionTimeout != DefaultSessionTimeout || got.DialTimeout != 0 ||
			got.Names != CuratorNames || len(got.ACL) != 1 || len(got.ParentACL) != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestOptionsAreCopied(t *testing.T) {
	given := &Options{
		Auth:      []Auth{{"digest", "u:p"}},
		ACL:       []zk.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: "a"}},
		ParentACL: []zk.ACL{{Perms: zk.PermRead, Scheme: "digest", ID: "b"}},
		TLS:       &tls.Config{ServerName: "c"},
	}
	got, err := given.resolve()
	if err != nil {
		t.Fatal(err)
	}
	given.Auth[0].Credentials, given.ACL[0].ID, given.ParentACL[0].ID, given.TLS.ServerName = "x", "x", "x", "x"
	if got.Auth[0].Credentials != "u:p" || got.ACL[0].ID != "a" || got.ParentACL[0].ID != "b" || got.TLS.ServerName != "c" {
		t.Errorf("a later change shows: %+v", got)
	}
	if given.Root != "" || given.SessionTimeout != 0 {
		t.Errorf("what was given has been changed: %+v", given)
	}
}

func TestOptionsRefused(t *testing.T) {
	for field, opts := range map[string][]Options{
		"Options.Root": {
			{Root: "/"},
			{Root: "x"},
			{Root: "/zookeeper"},
			{Root: "/zookeeper/x"},
			{Root: "/x/"},
			{Root: "/x//y"},
			{Root: "/.."},
			{Root: "/a\x00"},
			{Root: "/a\ufff0"},
			{Root: "/" + strings.Repeat("x", 1000)},
		},
		"Options.SessionTimeout": {{SessionTimeout: -1}, {SessionTimeout: time.Microsecond}, {SessionTimeout: MaxSessionTimeout + 1}},
		"Options.DialTimeout":    {{DialTimeout: -1}},
		"Options.Heartbeat":      {{Heartbeat: 1}, {Heartbeat: time.Microsecond}, {Heartbeat: time.Hour}, {Heartbeat: DefaultSessionTimeout/4 + 1}},
		"Options.TickTime":       {{TickTime: -1}},
		"Options.TLSConfig":      {{TLS: &tls.Config{}, TLSConfig: func() (*tls.Config, error) { return nil, nil }}},
		"Options.Margin":         {{Margin: -1}, {Margin: DefaultSessionTimeout * 34 / 100}, {Margin: DefaultSessionTimeout / 11, Heartbeat: DefaultSessionTimeout / 4}},
		"Options.Names":          {{Names: namesEnd}, {Names: -1}},
		"Options.Auth":           {{Auth: []Auth{{"", "u:p"}}}},
	} {
		for _, o := range opts {
			_, err := o.resolve()
			var invalid *holdfast.InvalidError
			if !errors.As(err, &invalid) || invalid.Field != field || !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("%+v: %v, want ErrInvalid that names %s", o, err, field)
			}
		}
	}
	for _, o := range []Options{
		{SessionTimeout: time.Millisecond},
		{SessionTimeout: MaxSessionTimeout},
		{Heartbeat: -time.Nanosecond},
		{Heartbeat: time.Millisecond},
		{Root: "/a/b"},
		{Root: "/zookeeperx"},
		{Names: KazooNames},
		{Names: CuratorLatchNames},
		{Margin: DefaultSessionTimeout * 33 / 100},
		{Margin: DefaultSessionTimeout / 13, Heartbeat: DefaultSessionTimeout / 4},
		{Margin: DefaultSessionTimeout * 48 / 100, Heartbeat: DefaultSessionTimeout / 24},
		{Margin: time.Hour, Heartbeat: -1},
	} {
		if _, err := o.resolve(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestServers(t *testing.T) {
	for _, servers := range [][]string{
		nil,
		{},
		{""},
		{"a:1", ""},
		{"a 1"},
		{"a:1\n"},
		{","},
		{"a:1,"},
		{",a:1"},
		{"a:1,,b:1"},
		{"a:1, b:1"},
		{"/app"},
		{"a:1", "/app"},
		{"a:1/app", "b:1"},
		{"a:1/app,b:1"},
		{"a:1/app,b:1/app"},
		{"a:1/", "b:1"},
		{"a:1//app"},
		{"a:1/app/"},
		{"a:1/app/../x"},
		{"a:1/\x00"},
		{"a:1/zookeeper"},
		{"a:1/zookeeper/x"},
		{"::1"},
		{"[::1]"},
	} {
		var invalid *holdfast.InvalidError
		if _, _, err := parseServers(servers); !errors.As(err, &invalid) || invalid.Field != "servers" {
			t.Errorf("%q: %v, want ErrInvalid that names servers", servers, err)
		}
	}
	const port = "the port is not a number from 1 to 65535"
	for server, want := range map[string]string{
		"a:65536":            `"a:65536": ` + port,
		"a:0":                `"a:0": ` + port,
		"a:-1":               `"a:-1": ` + port,
		"a:":                 `"a:": ` + port,
		"127.0.0.1:22181app": `"127.0.0.1:22181app": ` + port,
		"b:1,[::1]:x/app":    `"[::1]:x": ` + port,
		"zk://a:1/app":       `"zk://a:1/app": leave out zk://, it is host:port`,
		"a:1/app/":           `the chroot "/app/" must not end with a slash`,
	} {
		var invalid *holdfast.InvalidError
		if _, _, err := parseServers([]string{server}); !errors.As(err, &invalid) || invalid.Field != "servers" || invalid.Reason != want {
			t.Errorf("%q: %v, want ErrInvalid that says %s", server, err, want)
		}
	}
	for _, test := range []struct {
		servers   []string
		addresses []string
		chroot    string
	}{
		{[]string{"a"}, []string{"a"}, ""},
		{[]string{"a:1"}, []string{"a:1"}, ""},
		{[]string{"a:1/"}, []string{"a:1"}, ""},
		{[]string{"a:65535"}, []string{"a:65535"}, ""},
		{[]string{"a:1,b:1"}, []string{"a:1", "b:1"}, ""},
		{[]string{"a:1,b:1/app"}, []string{"a:1", "b:1"}, "/app"},
		{[]string{"a:1", "b:1/app/x"}, []string{"a:1", "b:1"}, "/app/x"},
		{[]string{"a:1,b:1", "c/app"}, []string{"a:1", "b:1", "c"}, "/app"},
		{[]string{"[::1]:2181/app"}, []string{"[::1]:2181"}, "/app"},
		{[]string{"[::1]:2181", "127.0.0.1:2181"}, []string{"[::1]:2181", "127.0.0.1:2181"}, ""},
	} {
		addresses, chroot, err := parseServers(test.servers)
		if err != nil || !slices.Equal(addresses, test.addresses) || chroot != test.chroot {
			t.Errorf("%q: %q, chroot %q, %v; want %q and %q", test.servers, addresses, chroot, err, test.addresses, test.chroot)
		}
	}
}

// TestAuthIsNotShown: credentials must not get into logs by way of %v.
func TestAuthIsNotShown(t *testing.T) {
	auth := Auth{"digest", "user:secret"}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, v := range []any{auth, &auth, []Auth{auth}, Options{Auth: []Auth{auth}}, &Options{Auth: []Auth{auth}}} {
			if shown := fmt.Sprintf(format, v); strings.Contains(shown, "secret") {
				t.Errorf("%s of %T shows %q", format, v, shown)
			}
		}
	}
}

// TestHeartbeat: a write goes out at least once per window of trust, or the lease would run out.
func TestHeartbeat(t *testing.T) {
	const timeout = 12 * time.Second
	for given, want := range map[time.Duration]time.Duration{
		0: 2 * time.Second, time.Millisecond: time.Millisecond, time.Second: time.Second,
		3 * time.Second: 3 * time.Second, 4 * time.Second: 3 * time.Second, time.Hour: 3 * time.Second,
	} {
		if got := (&Options{Heartbeat: given}).times(timeout).Heartbeat; got != want {
			t.Errorf("Heartbeat %v at a timeout of %v: every %v, want %v", given, timeout, got, want)
		}
	}
}
