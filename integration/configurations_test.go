package integration_test

import (
	"cmp"
	"crypto/rand"
	"crypto/tls"
	"encoding/pem"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/zklock"
)

// configurationsVariable lists the configurations for TestConfigurations, separated by commas, or is "all". Without it, the test
// runs only the partition with TLS; "make test-versions" runs the rest.
const configurationsVariable = "HOLDFAST_CONFIGURATIONS"

// A configuration configures an ensemble and its clients.
type configuration struct {
	name string
	// open configures the servers, and returns a function that configures the clients, or nil.
	open func(*testing.T, *zkserver.Config) func(*zklock.Options)
	// prepare, if not nil, is called first, with a connection to the ensemble.
	prepare func(*testing.T, *zk.Conn, *zklock.Options)
	// silent says that sessions can be local to their server, so the suite cannot look them up elsewhere.
	silent bool
}

var configurations = []configuration{
	{name: "observer", open: func(_ *testing.T, c *zkserver.Config) func(*zklock.Options) {
		c.Observer = true
		return nil
	}},
	{name: "observer-master", // from 3.6 on
		open: func(_ *testing.T, c *zkserver.Config) func(*zklock.Options) {
			c.Observer, c.ObserverMaster = true, true
			return nil
		}},
	{name: "local-sessions", silent: true, open: func(_ *testing.T, c *zkserver.Config) func(*zklock.Options) {
		c.Settings = map[string]string{"localSessionsEnabled": "true", "localSessionsUpgradingEnabled": "true"}
		return nil
	}},
	{name: "tls", open: func(t *testing.T, c *zkserver.Config) func(*zklock.Options) {
		ca := newAuthority(t)
		c.TLS = &zkserver.TLS{
			Key:   pemOf(t, ca.issue(t)),
			Trust: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw}),
		}
		config := &tls.Config{RootCAs: ca.pool(), Certificates: []tls.Certificate{ca.issue(t)}}
		return func(o *zklock.Options) { o.TLS = config }
	}},
	{name: "closed-acls", open: func(t *testing.T, _ *zkserver.Config) func(*zklock.Options) {
		auth, acl := digest(t)
		return func(o *zklock.Options) { o.Auth, o.ACL, o.ParentACL = []zklock.Auth{auth}, acl, acl }
	}},
	// A tenant has all permissions below one znode and none elsewhere. (go-zookeeper takes
	// no chroot in its list of servers, so this keeps a client below one.)
	{name: "chroot", open: func(t *testing.T, _ *zkserver.Config) func(*zklock.Options) {
		auth, _ := digest(t)
		return func(o *zklock.Options) {
			o.Auth = []zklock.Auth{auth}
			o.Root = "/tenants/one" + cmp.Or(o.Root, zklock.DefaultRoot)
		}
	}, prepare: func(t *testing.T, c *zk.Conn, o *zklock.Options) {
		user, _, _ := strings.Cut(o.Auth[0].Credentials, ":")
		must(t, errOf(c.Create("/tenants", nil, 0, zk.WorldACL(zk.PermAll))))
		must(t, errOf(c.Create("/tenants/one", nil, 0, zk.DigestACL(zk.PermAll, user, "secret"))))
		for _, path := range []string{"/tenants", "/"} {
			must(t, errOf(c.SetACL(path, zk.WorldACL(zk.PermRead), -1)))
		}
	}},
}

// TestConfigurations runs the whole contract, and the partition of TestCutOffWithFollower, on ensembles with configurations that
// the other tests do not use.
func TestConfigurations(t *testing.T) {
	names := os.Getenv(configurationsVariable)
	wanted := strings.Split(cmp.Or(names, "tls"), ",")
	found := 0
	// Two at a time: the tests mostly wait.
	var running sync.WaitGroup
	places := make(chan struct{}, 2)
	for _, c := range configurations {
		if !slices.Contains(wanted, c.name) && wanted[0] != "all" {
			continue
		}
		found++
		running.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			t.Run(c.name, func(t *testing.T) { goThrough(t, c, names != "") })
		})
	}
	running.Wait()
	if found < len(wanted) {
		t.Errorf("%d of %q are known", found, wanted)
	}
}

func goThrough(t *testing.T, c configuration, whole bool) {
	verdict.Begin(t)
	const tick = 200 * time.Millisecond
	config := zkserver.Config{TickTime: tick, SyncLimit: 10, MaxSessionTimeout: longest}
	dress := c.open(t, &config)
	if dress == nil {
		dress = func(*zklock.Options) {}
	}
	e := zkserver.NewEnsemble(t, config)
	leader, _ := leaderAndFollowers(t, e)
	// The last of the other two; the observer, if there is one.
	place := zkserver.EnsembleSize - 1
	if leader == place {
		place--
	}
	server := e.Servers()[place]
	if config.Observer {
		if mode, err := zkserver.Mode(t.Context(), server.Addr()); err != nil || mode != "observer" {
			t.Fatalf("the server is a %q, %v; want an observer", mode, err)
		}
	}
	if c.prepare != nil {
		var opts zklock.Options
		dress(&opts)
		c.prepare(t, plain(t, e.Servers()[leader].Addr()), &opts)
	}

	if whole {
		t.Run("conformance", func(t *testing.T) { configurationConforms(t, c, config, dress, server) })
	}
	t.Run("cut off", func(t *testing.T) {
		// Leave out the limit of two ticks: with two ensembles on one machine the leader's pings are late.
		cutOffFrom(t, e, place, dress, tick, 0, cutOffSorts(tick, false)[1:])
	})
}

// configurationConforms runs the whole contract through one server.
func configurationConforms(t *testing.T, c configuration, config zkserver.Config, dress func(*zklock.Options), server *zkserver.Server) {
	addr := server.Addr()
	if config.TLS != nil {
		addr = server.SecureAddr()
	}
	first := zklock.Options{SessionTimeout: conformanceSession}
	dress(&first)
	conforms(t, "zookeeper/"+c.name, "ensemble"+versionOf(t, server.Addr()), locktest.Engine{
		Start: func(testing.TB) locktest.Harness {
			return &zkHarness{
				addr: addr, inspected: server.Addr(), names: zklock.CuratorNames, root: "/conformance-" + rand.Text()[:10],
				dress: dress, expires: !c.silent,
			}
		},
		Lanes:      conformanceLanes,
		Lease:      dialServers(t, first, addr).SessionTimeout(),
		Soon:       20 * time.Second,
		Heartbeats: locktest.PerSession,
		Unknown:    []string{"Since", "Lease", "LastHeard"},
	})
}
