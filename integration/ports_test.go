package integration_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
	"github.com/holdfast-go/holdfast/zklock"
)

// dialAndMeasure is a program that dials the server in its environment and prints its
// peak memory in bytes.
func dialAndMeasure() int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := zklock.Dial(ctx, []string{os.Getenv(wrongPortVariable)}, nil)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	fmt.Println(memory.Sys) // never less than before
	fmt.Println(err)
	return 0
}

const wrongPortVariable = "HOLDFAST_WRONG_PORT"

func init() { children["dial and measure"] = dialAndMeasure }

// TestPorts dials every port that a client can confuse: of servers with TLS and without, and the AdminServer's. It tests
// hazard Z25 with ZooKeeper's own ports: Dial names the kind of port as soon as it has a reply, and trusts no length from it. TestConfigurations covers client certificates.
func TestPorts(t *testing.T) {
	start(t)
	leased, err := child.LeasePorts(2)
	must(t, err)
	t.Cleanup(func() { child.ReleasePorts(leased) })
	port := func(i int) string { return strconv.Itoa(leased[i].Port) }
	ca := newAuthority(t)
	cert := ca.issue(t, "zk.example")
	store := filepath.Join(t.TempDir(), "server.pem")
	must(t, os.WriteFile(store, pemOf(t, cert), 0o600))
	s := zkserver.New(t, zkserver.Config{
		Props: map[string]string{"zookeeper.serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory"},
		Settings: map[string]string{
			"secureClientPort": port(0), "secureClientPortAddress": "127.0.0.1",
			"ssl.keyStore.location": store, "ssl.keyStore.type": "PEM",
			"ssl.trustStore.location": store, "ssl.trustStore.type": "PEM",
			"ssl.clientAuth":     "none",
			"admin.enableServer": "true", "admin.serverAddress": "127.0.0.1", "admin.serverPort": port(1),
		},
	})
	plain, secure, admin := s.Addr(), net.JoinHostPort("127.0.0.1", port(0)), net.JoinHostPort("127.0.0.1", port(1))
	mutual := listener(t, func(conn net.Conn) {
		_ = tls.Server(conn, &tls.Config{
			Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool(),
		}).Handshake()
	})
	old := server(t).Addr() // without Netty
	withTLS := &tls.Config{RootCAs: ca.pool()}
	for name, c := range map[string]struct {
		addr string
		tls  *tls.Config
		says string // "" is for success
	}{
		"plain":                        {plain, nil, ""},
		"secure":                       {secure, withTLS, ""},
		"secure, by another name":      {secure, &tls.Config{RootCAs: ca.pool(), ServerName: "zk.example"}, ""},
		"secure, without verification": {secure, &tls.Config{InsecureSkipVerify: true}, ""},
		"AdminServer":                  {admin, nil, "it does not speak ZooKeeper's protocol"},
		"AdminServer, with TLS":        {admin, withTLS, "it does not speak ZooKeeper's protocol"},
		"plain, to a secure port":      {secure, nil, "it closed the connection without a reply"},
		"secure, to a plain port":      {plain, withTLS, "it closed the connection without a reply"},
		"secure, to one of NIO's":      {old, withTLS, "it closed the connection without a reply"},
		"secure, not trusting it":      {secure, &tls.Config{RootCAs: newAuthority(t).pool()}, "its certificate is not accepted"},
		"secure, by a wrong name":      {secure, &tls.Config{RootCAs: ca.pool(), ServerName: "zk.other"}, "its certificate is not accepted"},
		"secure, of other versions":    {secure, &tls.Config{RootCAs: ca.pool(), MaxVersion: tls.VersionTLS10, MinVersion: tls.VersionTLS10}, "it refuses this client"},
		"no client certificate":        {mutual, withTLS, "it refuses this client"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := options()
			opts.TLS = c.tls
			begin := time.Now()
			client, err := zklock.Dial(t.Context(), []string{c.addr}, opts) // two rounds
			if err == nil {
				release(t, take(t, client, newKey(t)))
				finish(t, client)
			}
			t.Logf("after %v: %v", time.Since(begin).Round(time.Millisecond), err)
			switch {
			case c.says == "" && err != nil:
				t.Errorf("Dial: %v", err)
			case c.says == "":
			case !errors.Is(err, holdfast.ErrDisconnected), errors.Is(err, context.DeadlineExceeded), !strings.Contains(err.Error(), c.addr+": "+c.says):
				t.Errorf("Dial: %v; want ErrDisconnected, the address, and %q", err, c.says)
			}
		})
	}
	t.Run("reconnect", func(t *testing.T) {
		p, err := faultproxy.Start(secure)
		must(t, err)
		t.Cleanup(func() { _ = p.Close() })
		opts := options()
		opts.TLS = withTLS
		s := &scene{client: dial(t, p.Addr(), opts), proxy: p}
		lock := take(t, s.client, newKey(t))
		s.reconnects(t)
		must(t, lock.Verify(limited(t)))
		release(t, lock)
	})
	t.Run("memory", func(t *testing.T) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childVariable+"=dial and measure", wrongPortVariable+"="+admin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var most int
		if _, err := fmt.Sscan(string(out), &most); err != nil || most == 0 || most > 64<<20 || !strings.Contains(string(out), "HTTP/") {
			t.Errorf("%v, at most 64 MiB are wanted, and to see what answers: %s", err, out)
		}
		t.Logf("%s", out)
	})
}
