package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// TestUnreachable tests the error for an unreachable engine: one line, within --timeout,
// from every command.
func TestUnreachable(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // a server that accepts and never answers
		for name, addr := range map[string]string{"refused": "127.0.0.1:1", "silent": l.Addr().String()} {
			env := append(e.direct, "HOLDFAST_SERVERS="+addr)
			if e.name == "dynamodb" {
				env = append(e.direct, "AWS_ENDPOINT_URL_DYNAMODB=http://"+addr)
			}
			for _, args := range [][]string{
				{"ls"}, {"show", "k"}, {"break", "k", "--yes"}, {"run", "-k", "k", "--", "true"}, {"run", "-k", "k", "--try", "--", "true"},
			} {
				p := launch(t, env, nil, append(args[:1:1], append([]string{"--timeout", "500ms"}, args[1:]...)...)...)
				p.exits(69)
				p.says("not connected")
				p.prints("")
				if name == "refused" && !strings.Contains(read(p.stderr), "connection refused") {
					t.Errorf("stderr does not say why: %s", read(p.stderr))
				}
			}
		}
	})
}

// TestRefused checks that an error comes before --timeout if nothing listens at the
// address, or something other than the engine.
func TestRefused(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		mail := foreign(t)
		for name, test := range map[string]struct {
			servers, endpoint string
			says              string
		}{
			"nobody":         {"127.0.0.1:1,127.0.0.1:2", "http://127.0.0.1:1", "connection refused"},
			"no such host":   {"no-such-host.invalid:2181", "http://no-such-host.invalid", "no such host"},
			"somebody else":  {mail, "", `its answer begins with "220 mail.example ESMTP"`},
			"another's port": {mail + "," + mail, "", "does not speak ZooKeeper's protocol"},
		} {
			env := append(e.direct, "HOLDFAST_SERVERS="+test.servers)
			if e.name == "dynamodb" {
				if test.endpoint == "" {
					continue
				}
				env = append(e.direct, "AWS_ENDPOINT_URL_DYNAMODB="+test.endpoint)
			}
			for _, args := range [][]string{{"ls"}, {"run", "-k", "k", "--", "true"}} {
				p := launch(t, env, nil, append(args[:1:1], append([]string{"--timeout", "1h"}, args[1:]...)...)...)
				p.exits(69)
				p.says("not connected")
				if !strings.Contains(read(p.stderr), test.says) {
					t.Errorf("%s: %q, want %q", name, read(p.stderr), test.says)
				}
			}
		}
	})
}

// foreign is a server of another kind.
func foreign(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.WriteString(conn, "220 mail.example ESMTP\r\n")
				_, _ = io.Copy(io.Discard, conn)
			}()
		}
	}()
	return l.Addr().String()
}

// TestRunWaitsOutAnOutage checks that a wait for a lock survives an outage of the engine,
// and that --wait still bounds it.
func TestRunWaitsOutAnOutage(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		lock, err := e.dial(t, "").Acquire(limited(t), key)
		if err != nil {
			t.Fatal(err)
		}
		p := e.start(t, "run", "-v", "-k", key, "--lease", calm, "--", "sh", "-c", "exit 6")
		bounded := e.start(t, "run", "-v", "-k", key, "--lease", calm, "--wait", "3s", "--", "true")
		p.asks()
		bounded.asks()
		e.cut()
		bounded.wait()
		if status := bounded.cmd.ProcessState.ExitCode(); status != 69 && status != 75 {
			t.Errorf("--wait in an outage ended with %s", bounded.end())
		}
		e.heal()
		_ = lock.Release(limited(t))
		p.exits(6)
	})
}

// TestWrongTable checks that the error names a missing table.
func TestWrongTable(t *testing.T) {
	t.Parallel()
	e := newDynamoDB(t)
	p := e.run(t, "ls", "--table", "no-such-table")
	p.exits(69)
	p.says(`there is no table "no-such-table" in this region: "holdfast table create" makes it`)
	p = e.run(t, "ls", "--sort-key", "s")
	p.exits(69)
	p.says(`"s" is expected`)
}

// TestChroot tests connect strings with a chroot: the tool works only below it.
func TestChroot(t *testing.T) {
	t.Parallel()
	e, chroot := newZooKeeper(t), "/"+newKey(t)
	addr := setting(e.direct, "HOLDFAST_SERVERS")
	inside := []string{"HOLDFAST_SERVERS=" + addr + "," + addr + chroot, "HOLDFAST_LEASE=" + calm}
	outside := append(e.direct, "HOLDFAST_ROOT="+chroot+"/holdfast")

	p := launch(t, inside, nil, "ls")
	p.exits(64)
	p.says("--servers: ")
	makeNodes(t, plainAt(t, addr), zk.WorldACL(zk.PermAll), chroot)
	watch := launch(t, inside, nil, "watch", "k", watchQuick)
	watch.line(1, "free key=k")
	p = launch(t, inside, nil, "hold", "k", "--owner", "me")
	p.writes("stdout", "\n")
	watch.line(2, "held key=k owner=me .*")
	for _, settings := range [][]string{inside, outside} {
		show := launch(t, settings, nil, "show", "k", "-o", "json")
		show.exits(0)
		if text := read(show.stdout); !strings.Contains(text, `"owner":"me"`) {
			t.Errorf("with %q the key is %s", settings, text)
		}
	}
	p.signal(syscall.SIGTERM)
	p.exits(0)
	p = launch(t, inside, nil, "run", "/app/lock", "-c", `echo "$HOLDFAST_KEY"`)
	p.exits(0)
	p.prints("/app/lock\n")
	if found, _, err := plainAt(t, addr).Exists(chroot + "/app/lock"); err != nil || !found {
		t.Errorf("the lock of a path is not below the chroot (%v)", err)
	}
	all := examined(t, append(inside, "HOLDFAST_SERVERS="+addr+chroot), 0)
	well(t, all, "acl")
	finds(t, all, "locks", "ok", " in "+chroot+"/holdfast", "")

	p = launch(t, []string{"HOLDFAST_SERVERS=" + addr + "/a," + addr}, nil, "ls")
	p.exits(64)
	p.says("--servers: ")
}

// TestZooKeeperAuth tests credentials: from a file or the environment, effective, and
// never printed.
func TestZooKeeperAuth(t *testing.T) {
	t.Parallel()
	e := newZooKeeper(t)
	root := "HOLDFAST_ROOT=/" + newKey(t) // the creator owns the znodes above a lock as well
	e.env, e.direct = append(e.env, root), append(e.direct, root)
	key, secret := newKey(t), "digest:me:pass:word"
	file := filepath.Join(t.TempDir(), "auth")
	if err := os.WriteFile(file, []byte("# mine\n"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(e.env, "HOLDFAST_AUTH_FILE="+file, "HOLDFAST_ACL=creator", "HOLDFAST_LEASE="+calm)
	p := launch(t, env, nil, "run", "-k", key, "--", "sh", "-c", `echo $$ >"$DIR/pid"; until [ -e "$DIR/go" ]; do sleep 0.02; done`)
	p.pid("pid")

	other := e.run(t, "show", key)
	other.exits(69)
	other.says("denied")
	wrong := launch(t, append(e.env, "HOLDFAST_AUTH=digest:me:wrong"), nil, "run", "-k", key, "--try", "--", "true")
	wrong.exits(69)
	wrong.says("denied")
	same := launch(t, append(e.env, "HOLDFAST_AUTH="+secret), nil, "show", key)
	same.exits(0)
	if err := os.WriteFile(p.file("go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.exits(0)

	for name, text := range map[string]string{"no scheme": "mysecret", "empty scheme": ":mysecret"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, p := range []*tool{
			launch(t, append(e.env, "HOLDFAST_AUTH_FILE="+file), nil, "ls"),
			launch(t, append(e.env, "HOLDFAST_AUTH="+text), nil, "ls"),
		} {
			p.exits(64)
			p.says("SCHEME:CREDENTIALS")
			if strings.Contains(read(p.stderr), "mysecret") {
				t.Errorf("%s: the message has the secret: %s", name, read(p.stderr))
			}
		}
	}
	p = launch(t, env, nil, "ls", "--auth-file", file+".none")
	p.exits(64)
	p = launch(t, e.env, nil, "ls", "--acl", "creator")
	p.exits(64)
	p.says("needs credentials")
	p = launch(t, append(e.env, "HOLDFAST_AUTH="+secret), nil, "run", "-v", "-k", newKey(t), "--lease", calm, "true")
	p.exits(0)
	if strings.Contains(read(p.stderr), "pass:word") {
		t.Errorf("the log has the secret: %s", read(p.stderr))
	}
}

// TestZooKeeperTLS tests TLS from files: an authority, a client certificate, and a server
// name.
func TestZooKeeperTLS(t *testing.T) {
	t.Parallel()
	server, err := zookeeperServer()
	if err != nil {
		t.Fatal(err)
	}
	ca := newAuthority(t)
	addr := serveTLS(t, &tls.Config{
		Certificates: []tls.Certificate{ca.issue(t, "server", "zk.example")},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: ca.pool(),
	}, server.Addr())
	ca.issue(t, "client", "client.example")
	e := zooKeeperAt(t, addr)
	flags := []string{
		"ls", "--timeout", "2s", "--tls-ca", ca.file("ca.crt"), "--tls-server-name", "zk.example",
		"--tls-cert", ca.file("client.crt"), "--tls-key", ca.file("client.key"),
	}
	e.run(t, append(flags[:len(flags):len(flags)], "--timeout", "1m")...).exits(0)
	for name, test := range map[string]struct {
		flags  []string
		status int
		says   string
	}{
		"no TLS":                {flags[:3], 69, "not connected"},
		"unknown authority":     {append(flags[:3:3], "--tls"), 69, "certificate"},
		"another name":          {flags[:5], 69, "certificate"},
		"a key without a cert":  {append(flags[:3:3], "--tls-key", ca.file("client.key")), 64, "go together"},
		"no such file":          {append(flags[:3:3], "--tls-ca", ca.file("none")), 64, "no such file"},
		"a file that is no PEM": {append(flags[:3:3], "--tls-ca", "connect_test.go"), 64, "no certificate"},
	} {
		p := e.run(t, test.flags...)
		p.exits(test.status)
		p.says(test.says)
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// authority is a test's own certificate authority, with its files.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.issue(t, "ca", "")
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// issue makes a certificate and its files; the first is the authority's own.
func (a *authority) issue(t *testing.T, name, host string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
		c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign
	} else {
		c.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert == nil {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
		a.key = key
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".crt": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(a.file(file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// serveTLS terminates TLS in front of a server.
func serveTLS(t *testing.T, config *tls.Config, upstream string) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
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
			for _, way := range [][2]net.Conn{{conn, server}, {server, conn}} {
				go func() {
					_, _ = io.Copy(way[0], way[1])
					_, _ = conn.Close(), server.Close()
				}()
			}
		}
	}()
	return l.Addr().String()
}
