package integration_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
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

// TestPorts (Z25) dials every port that a client can confuse: of servers with TLS and without, and the AdminServer's. Dial names
// the kind of port as soon as it has a reply. TestConfigurations covers client certificates.
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
	outdated := &tls.Config{RootCAs: ca.pool(), MaxVersion: tls.VersionTLS10, MinVersion: tls.VersionTLS10}
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
		"secure, of other versions":    {secure, outdated, "it refuses this client"},
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
			case !errors.Is(err, holdfast.ErrDisconnected), errors.Is(err, context.DeadlineExceeded),
				!strings.Contains(err.Error(), c.addr+": "+c.says):
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
}

// authority is a test's own certificate authority.
type authority struct {
	cert *x509.Certificate
	key  any
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	pair := (*authority)(nil).sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	must(t, err)
	return &authority{cert, pair.PrivateKey}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// issue makes a certificate for a server or a client.
func (a *authority) issue(t *testing.T, names ...string) tls.Certificate {
	t.Helper()
	return a.sign(t, &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: names,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// sign makes a certificate. Without an authority, the certificate signs itself.
func (a *authority) sign(t *testing.T, template *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if a == nil {
		a = &authority{template, key}
		template.Subject.CommonName = "test authority"
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// pemOf is a certificate with its key.
func pemOf(t *testing.T, cert tls.Certificate) []byte {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	must(t, err)
	return append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})...)
}

// listener accepts connections and passes them to serve, which may be nil: then it never answers.
func listener(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for serve != nil {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return l.Addr().String()
}
