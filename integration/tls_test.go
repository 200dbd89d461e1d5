package integration_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/zklock"
)

// authority is a test's own certificate authority.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// issue makes a certificate for a server or a client.
func (a *authority) issue(t *testing.T, names ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// terminate terminates TLS in front of a server, as the proxies of many ensembles do.
// drop cuts all connections.
func terminate(t *testing.T, config *tls.Config, upstream string) (addr string, drop func()) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	open := make(map[net.Conn]bool)
	drop = func() {
		mu.Lock()
		defer mu.Unlock()
		for conn := range open {
			_ = conn.Close()
		}
	}
	t.Cleanup(func() { _ = l.Close(); drop(); wg.Wait() })
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", upstream)
			if err != nil {
				_ = conn.Close()
				continue
			}
			mu.Lock()
			open[conn], open[server] = true, true
			mu.Unlock()
			for _, way := range [][2]net.Conn{{conn, server}, {server, conn}} {
				wg.Go(func() {
					_, _ = io.Copy(way[0], way[1])
					_, _ = conn.Close(), server.Close()
					mu.Lock()
					defer mu.Unlock()
					delete(open, way[0])
				})
			}
		}
	})
	return l.Addr().String(), drop
}

func TestTLS(t *testing.T) {
	start(t)
	ours, others := newAuthority(t), newAuthority(t)
	upstream := server(t).Addr()
	addr, drop := terminate(t, &tls.Config{Certificates: []tls.Certificate{ours.issue(t, "127.0.0.1")}}, upstream)
	named, _ := terminate(t, &tls.Config{Certificates: []tls.Certificate{ours.issue(t, "zk.example")}}, upstream)
	mutual, _ := terminate(t, &tls.Config{
		Certificates: []tls.Certificate{ours.issue(t, "127.0.0.1")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ours.pool(),
	}, upstream)

	t.Run("works, also after a reconnect", func(t *testing.T) {
		opts := options()
		opts.TLS = &tls.Config{RootCAs: ours.pool()}
		client := dial(t, addr, opts)
		events := client.Events()
		receive(t, "Ready", events.Ready())
		lock := take(t, client, newKey(t))
		drop()
		receive(t, "Disconnected", events.Disconnected())
		receive(t, "Ready", events.Ready())
		if err := lock.Verify(limited(t)); err != nil {
			t.Error(err)
		}
		if err := lock.Release(limited(t)); err != nil {
			t.Error(err)
		}
	})
	for name, test := range map[string]struct {
		addr   string
		config *tls.Config
	}{
		"a name of its own":    {named, &tls.Config{RootCAs: ours.pool(), ServerName: "zk.example"}},
		"without verification": {named, &tls.Config{InsecureSkipVerify: true}},
		"a client certificate": {mutual, &tls.Config{RootCAs: ours.pool(), Certificates: []tls.Certificate{ours.issue(t)}}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := options()
			opts.TLS = test.config
			lock := take(t, dial(t, test.addr, opts), newKey(t))
			if err := lock.Release(limited(t)); err != nil {
				t.Error(err)
			}
		})
	}
	for name, test := range map[string]struct {
		addr   string
		config *tls.Config
		says   string
	}{
		"a foreign authority":    {addr, &tls.Config{RootCAs: others.pool()}, "unknown authority"},
		"a wrong name":           {named, &tls.Config{RootCAs: ours.pool()}, "its certificate is not accepted"},
		"no client certificate":  {mutual, &tls.Config{RootCAs: ours.pool()}, "certificate required"},
		"a server without TLS":   {upstream, &tls.Config{RootCAs: ours.pool()}, "does not speak TLS"},
		"a client without TLS":   {addr, nil, "it speaks TLS"},
		"a listener that is mum": {silentListener(t), &tls.Config{RootCAs: ours.pool()}, "TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := options()
			opts.TLS = test.config
			opts.SessionTimeout = 2 * time.Second
			wait, mum := patience, strings.Contains(name, "mum")
			if mum {
				wait = 1500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			client, err := zklock.Dial(ctx, []string{test.addr}, opts)
			if err == nil {
				finish(t, client)
				t.Fatal("Dial succeeded")
			}
			t.Log(err)
			if !errors.Is(err, holdfast.ErrDisconnected) || (ctx.Err() != nil) != mum ||
				!strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), test.addr) {
				t.Errorf("Dial: %v; want ErrDisconnected, at once unless nobody answers, the address, and %q", err, test.says)
			}
		})
	}
}

// silentListener accepts connections and never answers.
func silentListener(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}
