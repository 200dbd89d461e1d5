package integration_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
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

// manyPorts is a server with every port that a client can confuse: with TLS, without, and
// the AdminServer's.
type manyPorts struct {
	plain, secure, admin string
	roots                *x509.CertPool
}

func startManyPorts(t *testing.T) manyPorts {
	t.Helper()
	ports, err := child.LeasePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.ReleasePorts(ports) })
	ca := newAuthority(t)
	cert := ca.issue(t, "127.0.0.1")
	store := filepath.Join(t.TempDir(), "server.pem")
	if err := os.WriteFile(store, pemOf(t, cert), 0o600); err != nil {
		t.Fatal(err)
	}
	port := func(i int) string { return strconv.Itoa(ports[i].Port) }
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
	return manyPorts{s.Addr(), net.JoinHostPort("127.0.0.1", port(0)), net.JoinHostPort("127.0.0.1", port(1)), ca.pool()}
}

// pemOf is a certificate with its key.
func pemOf(t *testing.T, cert tls.Certificate) []byte {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	for _, der := range cert.Certificate {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return text
}

// TestWrongPort tests hazard Z25 with ZooKeeper's own ports: Dial names the kind of port
// as soon as it has a reply, and trusts no length from it.
func TestWrongPort(t *testing.T) {
	start(t)
	ports := startManyPorts(t)
	old := server(t).Addr() // without Netty
	withTLS := &tls.Config{RootCAs: ports.roots}
	for name, c := range map[string]struct {
		addr string
		tls  *tls.Config
		says string // "" is for success
	}{
		"plain":                     {ports.plain, nil, ""},
		"secure":                    {ports.secure, withTLS, ""},
		"AdminServer":               {ports.admin, nil, "it is an HTTP server"},
		"AdminServer, with TLS":     {ports.admin, withTLS, "it is an HTTP server"},
		"plain, to a secure port":   {ports.secure, nil, "it speaks TLS, which this client was not told to use"},
		"secure, to a plain port":   {ports.plain, withTLS, "it is a ZooKeeper server that does not speak TLS"},
		"secure, to one of NIO's":   {old, withTLS, "it is a ZooKeeper server that does not speak TLS"},
		"secure, not trusting it":   {ports.secure, &tls.Config{}, "its certificate is not accepted"},
		"secure, by another name":   {ports.secure, &tls.Config{RootCAs: ports.roots, ServerName: "zk.example"}, "its certificate is not accepted"},
		"secure, of other versions": {ports.secure, &tls.Config{RootCAs: ports.roots, MaxVersion: tls.VersionTLS10, MinVersion: tls.VersionTLS10}, "it refuses this client"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := options()
			opts.TLS = c.tls
			begin := time.Now()
			client, err := zklock.Dial(limited(t), []string{c.addr}, opts)
			if err == nil {
				finish(t, client)
			}
			t.Logf("after %v: %v", time.Since(begin).Round(time.Millisecond), err)
			switch {
			case c.says == "" && err != nil:
				t.Errorf("Dial: %v", err)
			case c.says == "":
			case !errors.Is(err, holdfast.ErrDisconnected), errors.Is(err, context.DeadlineExceeded), !strings.Contains(err.Error(), c.addr+": "+c.says):
				t.Errorf("Dial: %v; want ErrDisconnected before the ctx ends, the address, and %q", err, c.says)
			}
		})
	}
	t.Run("memory", func(t *testing.T) {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), childVariable+"=dial and measure", wrongPortVariable+"="+ports.admin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var most int
		if _, err := fmt.Sscan(string(out), &most); err != nil || most == 0 || most > 64<<20 || !strings.Contains(string(out), "HTTP server") {
			t.Errorf("%v, at most 64 MiB are wanted, and to hear of an HTTP server: %s", err, out)
		}
		t.Logf("%s", out)
	})
}
