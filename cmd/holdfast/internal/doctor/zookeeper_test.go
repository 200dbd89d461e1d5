package doctor

import (
	"context"
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/network"
	"github.com/holdfast-go/holdfast/zklock"
)

// TestLookUp_OneName_ServerPerAddress: addresses of both families may be one server's.
func TestLookUp_OneName_ServerPerAddress(t *testing.T) {
	z := ZooKeeper{Timeout: time.Minute, Options: zklock.Options{TLSConfig: func() (*tls.Config, error) { return nil, nil }}}
	for _, c := range []struct {
		addresses []string
		want      string
	}{
		{[]string{"10.0.0.1"}, "zk:2181 at zk:2181;"},
		{[]string{"::1", "10.0.0.1"}, "zk:2181 at zk:2181;"},
		{[]string{"::1", "::2"}, "zk:2181 (::1) at [::1]:2181;zk:2181 (::2) at [::2]:2181;"},
	} {
		ctx := network.WithNames(t.Context(), nil, func(context.Context, string) ([]string, error) { return c.addresses, nil })
		var got strings.Builder
		for _, s := range z.lookUp(ctx, "zk:2181") {
			got.WriteString(s.addr + " at " + s.at + ";")
			if s.tls.ServerName != "zk" {
				t.Errorf("%s: the certificate is to be for %q", s.addr, s.tls.ServerName)
			}
		}
		if got.String() != c.want {
			t.Errorf("%q: %s, want %s", c.addresses, got.String(), c.want)
		}
	}
}

// TestJudgeSession tests the findings about session timeouts.
func TestJudgeSession(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		asked, got, configured, tick time.Duration
		status                       Status
		found, cure                  string
	}{
		{10 * s, 10 * s, 0, 2 * s, OK, "5 ticks of 2s", ""},
		{10 * s, 10 * s, 0, 0, OK, "10s was asked for, and the servers give 10s", ""},
		{10 * s, 4 * s, 0, 0, Warning, "the servers give 4s", "--lease 4s"},
		{4 * s, 4 * s, 0, 2 * s, Warning, "at two ticks", "well above 4s"},
		{3 * s, 3 * s, 0, 2 * s, Problem, "less than two ticks", "--tick-time 2s"},
		{3 * s, 3 * s, 1 * s, 2 * s, Problem, "less than two ticks", "--tick-time 2s"},
		{3 * s, 3 * s, 2 * s, 2 * s, Warning, "at two ticks", "well above 4s"},
	} {
		is(t, judgeSession(test.asked, test.got, test.configured, test.tick), test.status, test.found, test.cure)
	}
}

// TestDescribe tests the findings about answers to srvr, as various versions give them.
func TestDescribe(t *testing.T) {
	const rest = ", built on 2022-03-17 03:52 UTC\nLatency min/avg/max: 0/0.0/0\nMode: follower\nNode count: 5\n"
	for _, test := range []struct {
		answer      string
		status      Status
		found, cure string
	}{
		{"Zookeeper version: 3.9.2-e454e8c7283100c7caec6dcae2bc82aaecb63023" + rest, OK, "follower, version 3.9.2", ""},
		{"Zookeeper version: 3.8.0--1" + rest, OK, "follower, version 3.8.0", ""},
		{"Zookeeper version: 3.5.0-1" + rest, OK, "version 3.5.0", ""},
		{"Zookeeper version: 3.4.14-4c25d480e66aadd371de8bd2fd8da255ac140bcf" + rest, Problem, "version 3.4.14", "upgrade"},
		{"Zookeeper version: odd" + rest, OK, "version odd", ""},
		{"srvr is not executed because it is not in the whitelist.\n", Skipped, "not told", "4lw.commands.whitelist=srvr"},
		{"", Skipped, "not told", "whitelist"},
		{"This ZooKeeper instance is not currently serving requests\n", Problem, "serves no clients", "quorum"},
	} {
		s := &server{addr: "a:1"}
		s.note(test.answer)
		is(t, s.describe(test.answer), test.status, test.found, test.cure)
	}
}

// TestObserves tests the findings about an observer: behind an observer master, two tables
// in a row stand between a client and the leader.
func TestObserves(t *testing.T) {
	for _, test := range []struct {
		version, conf, mntr string
		status              Status
		found, cure         string
	}{
		{"3.8.0", "serverId=2\n", "zk_observer_master_id\t2\n", OK, "observer of the leader", ""},
		{"3.5.9", "", "", OK, "observer of the leader", ""}, // which has no observer masters
		{"3.8.0", "serverId=2\n", "zk_observer_master_id\t1\n", Problem, "behind server 1", "list the other servers"},
		{"3.8.0", "serverId=2\n", "zk_observer_master_id\t-1\n", Warning, "does not tell", "allow conf and mntr"},
		{"3.8.0", "serverId=2\n", "mntr is not executed because it is not in the whitelist.\n", Warning, "does not tell", "allow conf and mntr"},
		{"3.8.0", "", "zk_observer_master_id\t2\n", Warning, "does not tell", "name the leader"},
		{"odd", "serverId=2\n", "", Warning, "does not tell", "list the other servers"},
	} {
		s := &server{addr: "a:1", mode: "observer", version: test.version}
		is(t, s.observes(parseNumber(test.conf, "serverId="), "", parseNumber(test.mntr, "zk_observer_master_id\t")), test.status, test.found, test.cure)
	}
}

// TestContends checks that znodes of all recipes that package zklock respects count as contenders.
func TestContends(t *testing.T) {
	for name, want := range map[string]bool{
		"_c_0123-lock-0000000007": true, "_c_0123-latch-0000000007": true, "0123__lock__0000000007": true, "0123__rlock__0000000007": true,
		"_c_0123-__READ__0000000007": true, "_c_0123-__WRIT__0000000007": true, "x-read-0000000001": true, "write-0000000001": true,
		"lock-0000000000": true, "lock--2147483648": true, "lock--000000001": true, "lock-2147483647": true,
		"lock-000000001": false, "lock-00000000001": false, "lock": false, "0000000001": false, "x-0000000001": false, "config": false, "": false,
		"lock-000000001x": false, "_c_lock-": false, "--2147483648": false,
	} {
		if got := contends(name); got != want {
			t.Errorf("contends(%q) = %v, want %v", name, got, want)
		}
	}
}
