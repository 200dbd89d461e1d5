package cli_test

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"math"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// plainZooKeeper connects to the shared server without the library.
func plainZooKeeper(t *testing.T, auth ...string) *zk.Conn {
	t.Helper()
	return plainAt(t, zookeeperServer(t).Addr(), auth...)
}

// plainAt connects to a server without the library, with credentials for the scheme digest.
func plainAt(t *testing.T, addr string, auth ...string) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect([]string{addr}, patience, zk.WithLogInfo(false), zk.WithLogger(log.New(io.Discard, "", 0)))
	must(t, err)
	t.Cleanup(c.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	for _, a := range auth {
		must(t, c.AddAuth("digest", []byte(a)))
	}
	return c
}

// makeNodes creates plain znodes and their parents.
func makeNodes(t *testing.T, c *zk.Conn, acl []zk.ACL, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if parent := path.Dir(p); parent != "/" {
			makeNodes(t, c, acl, parent)
		}
		if _, err := c.Create(p, nil, 0, acl); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			t.Fatalf("create %s: %v", p, err)
		}
	}
}

// contender is the name of a contender's znode.
const contender = "_c_00000000-0000-4000-8000-000000000000-lock-0000000000"

// TestDoctorOpenACL tests the warning about znodes that everybody can change.
func TestDoctorOpenACL(t *testing.T) {
	begin(t)
	env := rootOfItsOwn(t)
	root := setting(env, "HOLDFAST_ROOT")
	finds(t, examined(t, env, 0), "acl", "warning", "what is made from now on is open", "HOLDFAST_AUTH")

	c := plainZooKeeper(t, "me:secret")
	makeNodes(t, c, zk.WorldACL(zk.PermAll), root+"/open")
	creator := append(env, "HOLDFAST_ACL=creator", "HOLDFAST_AUTH=digest:me:secret")
	finds(t, examined(t, creator, 0), "acl", "warning", root+", "+root+"/open", "--acl creator")

	for _, p := range []string{root, root + "/open"} {
		if _, err := c.SetACL(p, append(zk.AuthACL(zk.PermAll), zk.WorldACL(zk.PermRead)...), -1); err != nil {
			t.Fatal(err)
		}
	}
	all := examined(t, creator, 0)
	well(t, all)
	finds(t, all, "acl", "ok", "", "")
}

// TestDoctorPermissions checks that doctor names each missing permission and its znode, once.
func TestDoctorPermissions(t *testing.T) {
	begin(t)
	c := plainZooKeeper(t, "owner:secret")
	but := func(world int32) []zk.ACL { return append(zk.AuthACL(zk.PermAll), zk.WorldACL(world)...) } // all for the owner
	for name, test := range map[string]struct {
		world  int32
		status int
		want   map[string]string
	}{
		"nothing":     {0, 1, map[string]string{"CREATE": "problem", "READ": "warning"}},
		"only read":   {zk.PermRead, 1, map[string]string{"CREATE": "problem"}},
		"only create": {zk.PermCreate, 0, map[string]string{"READ": "warning"}},
		"enough":      {zk.PermRead | zk.PermCreate, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			env := rootOfItsOwn(t)
			root := setting(env, "HOLDFAST_ROOT")
			makeNodes(t, c, but(test.world), root)
			all := examined(t, env, test.status)
			for permission, status := range test.want {
				finds(t, all, "permissions", status, permission+" is missing on "+root, "HOLDFAST_AUTH")
			}
			if n := strings.Count(allFound(all), " is missing on "); n != len(test.want) {
				t.Errorf("%d permissions are reported, want %d: %+v", n, len(test.want), all)
			}
			well(t, all, "permissions", "acl")
		})
	}
	for name, world := range map[string]int32{
		"READ": zk.PermCreate | zk.PermDelete, "CREATE": zk.PermRead | zk.PermDelete,
		"DELETE": zk.PermRead | zk.PermCreate, "CREATE, DELETE": zk.PermRead,
	} {
		t.Run(name+" of a lock", func(t *testing.T) {
			env := rootOfItsOwn(t)
			root := setting(env, "HOLDFAST_ROOT")
			makeNodes(t, c, zk.WorldACL(zk.PermAll), root)
			makeNodes(t, c, but(world), root+"/a", root+"/b")
			all := examined(t, env, 1, "a")
			finds(t, all, "permissions", "problem", name+" is missing on the lock "+root+"/a", "setAcl")
			well(t, all, "permissions", "acl")
			if name == "READ" {
				for _, id := range []string{"locks", "foreign", "counter"} {
					finds(t, all, id, "skipped", "; 1 lock may not be listed", "grant")
				}
			}
			if strings.Contains(allFound(all), root+"/b") {
				t.Errorf("another prefix was looked at: %+v", all)
			}
			if got, stat, err := c.Children(root + "/a"); err != nil || len(got) > 0 || stat.Cversion != 0 {
				t.Errorf("left in a lock: %q, changes: %d, %v", got, stat.Cversion, err)
			}
		})
	}
	t.Run("wrong credentials", func(t *testing.T) {
		all := examined(t, append(rootOfItsOwn(t), "HOLDFAST_AUTH=nosuchscheme:x"), 1)
		finds(t, all, "server", "problem", "refuses the credentials", "HOLDFAST_AUTH")
	})
}

func allFound(all []finding) string {
	var b strings.Builder
	for _, f := range all {
		b.WriteString(f.Found + "\n")
	}
	return b.String()
}

// TestDoctorQueues checks that doctor reports strangers in queues but no recipe's contenders.
func TestDoctorQueues(t *testing.T) {
	begin(t)
	env := rootOfItsOwn(t)
	root := setting(env, "HOLDFAST_ROOT")
	c := plainZooKeeper(t)
	makeNodes(t, c, zk.WorldACL(zk.PermAll), root+"/key/"+contender, root+"/key/0123__lock__0000000001", root+"/key/x-read--2147483648")
	all := examined(t, env, 0)
	well(t, all, "acl")
	finds(t, all, "locks", "ok", "1 lock in "+root+"; 3 contenders", "")
	_, before, err := c.Exists(root + "/key")
	must(t, err)
	makeNodes(t, c, zk.WorldACL(zk.PermAll), root+"/key/config", root+"/key/-lock-123")
	all = examined(t, env, 0)
	finds(t, all, "foreign", "warning", "2 znodes of no lock recipe", "Curator")
	finds(t, all, "foreign", "warning", root+"/key/config", "")
	if _, after, err := c.Exists(root + "/key"); err != nil || after.Cversion != before.Cversion+2 {
		t.Errorf("the lock's counter was touched: %d, then %d (%v)", before.Cversion, after.Cversion, err)
	}

	// A znode of another program without a queue is no lock.
	makeNodes(t, c, zk.WorldACL(zk.PermAll), root+".app/config/a", root+".app/lock/"+contender)
	all = examined(t, env, 0, root+".app/")
	finds(t, all, "locks", "ok", "1 lock in "+root+".app", "")
	well(t, all, "acl")
}

// TestDoctorCounter tests the findings about a sequence counter near or at its end.
func TestDoctorCounter(t *testing.T) {
	begin(t)
	s := zkserver.New(t, zkserver.Config{Controlled: true, MaxSessionTimeout: time.Minute})
	c := plainAt(t, s.Addr())
	const warn = math.MaxInt32 - 1<<27
	for name, n := range map[string]int32{"low": 1000, "under": warn - 1, "near": warn, "last": math.MaxInt32 - 1, "end": math.MaxInt32} {
		p := "/holdfast/" + name
		makeNodes(t, c, zk.WorldACL(zk.PermAll), p, p+"/"+contender)
		must(t, s.SetCversion(p, n))
	}
	env := []string{"HOLDFAST_SERVERS=" + s.Addr()}
	well(t, examined(t, env, 0, "low"), "acl")
	finds(t, examined(t, env, 0, "un"), "counter", "ok", "at 2013265918 of 2147483647", "")
	all := examined(t, env, 1)
	finds(t, all, "counter", "warning", "/holdfast/near is at 2013265919, 134217728 before its end", "delete /holdfast/near")
	finds(t, all, "counter", "warning", "/holdfast/last is at 2147483646, 1 before its end", "delete /holdfast/last")
	finds(t, all, "counter", "problem", "/holdfast/end is at its end", "delete /holdfast/end")
	if n := strings.Count(allFound(all), "the sequence counter of"); n != 3 {
		t.Errorf("%d counters are told: %+v", n, all)
	}
}

// TestDoctorSession tests the finding about a session timeout that the servers do not grant.
func TestDoctorSession(t *testing.T) {
	begin(t)
	env := rootOfItsOwn(t)
	all := examined(t, env, 0, "--lease", "2m")
	finds(t, all, "session", "warning", "2m0s was asked for, and the servers give 1m0s", "--lease 1m0s")
	finds(t, examined(t, env, 0, "--lease", calm), "session", "ok", "300 ticks of 100ms", "")
}

// TestDoctorEnsemble tests roles, a diverged server, a server that is down, and servers of different
// ensembles.
func TestDoctorEnsemble(t *testing.T) {
	begin(t)
	e := zkserver.NewEnsemble(t, zkserver.Config{Controlled: true, MaxSessionTimeout: time.Minute})
	env := []string{"HOLDFAST_SERVERS=" + strings.Join(e.Addrs(), ",")}
	c := plainAt(t, e.Addrs()[0])
	makeNodes(t, c, zk.WorldACL(zk.PermAll), "/holdfast/key")
	all := examined(t, env, 0)
	well(t, all, "acl")
	finds(t, all, "role", "ok", ": leader, version ", "")
	finds(t, all, "role", "ok", ": follower, version ", "")
	finds(t, all, "agreement", "ok", "3 servers show the same", "")

	_, followers, err := e.Roles(limited(t))
	must(t, err)
	diverged := followers[0]
	if _, err := plainAt(t, e.Addrs()[diverged]).Sync("/holdfast/key"); err != nil {
		t.Fatal(err)
	}
	must(t, e.Plant(diverged, "/holdfast/key/"+contender, []byte("ghost")))
	all = examined(t, env, 1)
	addr := e.Addrs()[diverged]
	finds(t, all, "agreement", "problem", addr+" has diverged from its ensemble: it shows 1 contender that the leader has not: /holdfast/key/"+contender, "restart "+addr)
	if n := strings.Count(allFound(all), "has diverged"); n != 1 {
		t.Errorf("%d servers are said to have diverged: %+v", n, all)
	}

	stranger := zookeeperServer(t)
	all = examined(t, []string{"HOLDFAST_SERVERS=" + e.Addrs()[0] + "," + stranger.Addr()}, 1)
	finds(t, all, "role", "problem", "1 of the 2 servers that are named stand alone", "one ensemble")
	finds(t, all, "agreement", "problem", stranger.Addr()+" does not show", "one ensemble")

	down := (diverged + 1) % len(e.Addrs())
	e.Servers()[down].Kill()
	if err := e.WaitModes(limited(t), func(modes []string) bool {
		slices.Sort(modes)
		return slices.Equal(modes, []string{"", "follower", "leader"})
	}); err != nil {
		t.Fatal(err)
	}
	all = examined(t, env, 1)
	finds(t, all, "server", "problem", e.Addrs()[down]+" cannot be reached: ", "start the server")
	finds(t, all, "lock", "ok", "", "")
	if n := strings.Count(allFound(all), "cannot be reached"); n != 1 {
		t.Errorf("%d servers are told to be down: %+v", n, all)
	}
}

// TestDoctorObserver checks that doctor warns of an observer only behind an observer master.
func TestDoctorObserver(t *testing.T) {
	begin(t)
	for _, test := range []struct {
		config      zkserver.Config
		status      string
		found, cure string
		exit        int
	}{
		{zkserver.Config{Observer: true, MaxSessionTimeout: time.Minute}, "ok", ": observer of the leader, version ", "", 0},
		{zkserver.Config{Observer: true, ObserverMaster: true, MaxSessionTimeout: time.Minute}, "problem", ", a follower, has observers", "list the other servers", 1},
	} {
		e := zkserver.NewEnsemble(t, test.config)
		all := examined(t, []string{"HOLDFAST_SERVERS=" + strings.Join(e.Addrs(), ",")}, test.exit)
		finds(t, all, "role", test.status, test.found, test.cure)
		finds(t, all, "role", "ok", ": leader, version ", "")
	}
}

// TestDoctorSilentServer checks that doctor examines the other servers if one never answers.
func TestDoctorSilentServer(t *testing.T) {
	begin(t)
	addr, env := silent(t), rootOfItsOwn(t)
	env = append(env, "HOLDFAST_SERVERS="+addr+","+setting(env, "HOLDFAST_SERVERS"))
	all := examined(t, env, 1, "--timeout", "8s")
	finds(t, all, "server", "problem", addr+" takes the connection, and gives no session within 8s", "quorum")
	finds(t, all, "lock", "ok", "acquired in ", "")
	well(t, all, "server", "role", "acl")
}

// TestDoctorSettings tests a server that answers only srvr, as by default, and servers with different
// settings.
func TestDoctorSettings(t *testing.T) {
	begin(t)
	s := zkserver.New(t, zkserver.Config{MaxSessionTimeout: 40 * time.Second, Settings: map[string]string{"4lw.commands.whitelist": "srvr"}})
	all := examined(t, []string{"HOLDFAST_SERVERS=" + s.Addr()}, 0)
	well(t, all, "acl")
	finds(t, all, "role", "ok", "standalone", "")
	finds(t, all, "session", "ok", "is what the servers give", "")
	if strings.Contains(allFound(all), "ticks of") {
		t.Errorf("ticks that were not told: %+v", all)
	}
	env := rootOfItsOwn(t)
	other := setting(env, "HOLDFAST_SERVERS")
	all = examined(t, append(env, "HOLDFAST_SERVERS="+s.Addr()+","+other), 1, "--lease", "50s")
	finds(t, all, "session", "warning", s.Addr()+" gives sessions of 40s, and "+other+" of 50s", "minSessionTimeout")
}

// TestDoctorTLS checks that doctor examines servers over TLS, and reports a bad certificate.
func TestDoctorTLS(t *testing.T) {
	begin(t)
	cert, ca, _ := certificate(t)
	addr := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{cert}})
	env := append(rootOfItsOwn(t), "HOLDFAST_SERVERS="+addr, "HOLDFAST_TLS_CA="+ca)
	all := examined(t, env, 0)
	well(t, all, "acl")
	finds(t, all, "role", "ok", addr+": standalone", "")
	finds(t, examined(t, env, 1, "--tls-server-name", "other.example"), "server", "problem", addr+" cannot be reached: ", "certificate")
}

// TestDoctorRoundTrip checks that doctor compares the measured round trip with the session timeout.
func TestDoctorRoundTrip(t *testing.T) {
	begin(t)
	env := rootOfItsOwn(t)
	finds(t, examined(t, env, 0), "write", "ok", "writes to the quorum took", "")
	// A little over 2 s: a ninth of the shorter timeout, and a fourteenth of the longer one. Both outlast a stall of the machine.
	for lease, want := range map[string]finding{
		"20s": {Status: "problem", Found: "although nothing fails"},
		"30s": {Status: "warning", Found: "one heartbeat that fails"},
	} {
		t.Run(lease, func(t *testing.T) {
			begin(t)
			p, err := faultproxy.Start(setting(env, "HOLDFAST_SERVERS"))
			must(t, err)
			t.Cleanup(func() { _ = p.Close() })
			p.SetLatency(200 * time.Millisecond)
			doctor := examine(t, append(env[:len(env):len(env)], "HOLDFAST_SERVERS="+p.Addr()), "--lease", lease, "--timeout", "2m")
			doctor.writes("stdout", `"id":"permissions"`)
			p.SetLatency(1080 * time.Millisecond) // for most of the writes, which come next
			doctor.writes("stdout", `"id":"write"`)
			p.SetLatency(0)
			finds(t, findings(t, doctor, map[string]int{"problem": 1}[want.Status]), "write", want.Status, want.Found, "give a --lease of ")
		})
	}
}
