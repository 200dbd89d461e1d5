package cli_test

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"
)

// TestUnreachable checks that every command reports an unreachable engine in one line, within --timeout.
func TestUnreachable(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		// What refuses is noticed long before --timeout, so that a busy machine comes to try it.
		for addr, timeout := range map[string]string{"127.0.0.1:1": "1m", silent(t): "500ms"} {
			for _, args := range [][]string{
				{"ls"}, {"show", "k"}, {"break", "k", "--yes"}, {"watch", "k"}, {"observe", "k"}, {"ask", "k"}, {"elect", "k", "true"}, {"run", "k", "true"}, {"run", "k", "--try", "true"},
			} {
				p := launch(t, append(e.at(addr), "HOLDFAST_TIMEOUT="+timeout), nil, args...)
				p.exits(69, "not connected").prints("")
				if addr == "127.0.0.1:1" {
					p.says("connection refused")
				}
			}
		}
	})
}

// TestRefused tests hazard C3: an error comes before --timeout if no engine listens at the address.
func TestRefused(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		says := map[string]string{"127.0.0.1:1": "connection refused"}
		if e.name == "dynamodb" {
			says["no-such-host.invalid"] = "no such host"
		} else {
			mail := mailServer(t)
			says["no-such-host.invalid:2181"] = "no such host"
			says["127.0.0.1:1,127.0.0.1:2"] = "connection refused"
			says[mail] = `its answer begins with "220 mail.example ESMTP"`
			says[mail+","+mail] = "does not speak ZooKeeper's protocol"
		}
		for addr, text := range says {
			for _, args := range [][]string{{"ls"}, {"run", "k", "true"}} {
				launch(t, append(e.at(addr), "HOLDFAST_TIMEOUT=1h"), nil, args...).exits(69, "not connected", text)
			}
		}
	})
}

// mailServer is the address of a server of another kind.
func mailServer(t *testing.T) string {
	return serve(t, listen(t), func(conn net.Conn) {
		_, _ = io.WriteString(conn, "220 mail.example ESMTP\r\n")
		_, _ = io.Copy(io.Discard, conn)
	})
}

// TestRunWaitsOutAnOutage checks that a wait survives an outage, and that --wait still bounds it.
func TestRunWaitsOutAnOutage(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		key := newKey(t)
		lock := e.acquire(t, key, "")
		p := e.start(t, "run", "-v", "-k", key, "--lease", calm, "--", "sh", "-c", "exit 6")
		bounded := e.start(t, "run", "-v", "-k", key, "--lease", calm, "--wait", "6s", "--", "true")
		p.asks()
		bounded.asks()
		e.cut()
		bounded.wait()
		if status := bounded.cmd.ProcessState.ExitCode(); status != 69 && status != 75 {
			t.Errorf("--wait in an outage ended with %s", bounded.end())
		}
		e.heal()
		release(t, lock)
		p.exits(6)
	})
}

// TestWrongTable checks that the error names a missing table.
func TestWrongTable(t *testing.T) {
	begin(t)
	e := newDynamoDB(t)
	e.run(t, "ls", "--table", "no-such-table").exits(69, `there is no table "no-such-table" in this region: "holdfast table create" makes it`)
	e.run(t, "ls", "--sort-key", "s").exits(69, `"s" is expected`)
}

// TestChroot tests connect strings with a chroot: the tool works only below it.
func TestChroot(t *testing.T) {
	begin(t)
	e, chroot := newZooKeeper(t), "/"+newKey(t)
	addr := setting(e.direct, "HOLDFAST_SERVERS")
	inside := []string{"HOLDFAST_SERVERS=" + addr + "," + addr + chroot, "HOLDFAST_LEASE=" + calm}
	outside := append(e.direct, "HOLDFAST_ROOT="+chroot+"/holdfast")

	launch(t, inside, nil, "ls").exits(64, "--servers: ")
	makeNodes(t, plainAt(t, addr), zk.WorldACL(zk.PermAll), chroot)
	watch := launch(t, inside, nil, "watch", "k", watchQuick)
	watch.line(1, "free key=k")
	p := launch(t, inside, nil, "hold", "k", "--owner", "me")
	p.writes("stdout", "\n")
	watch.line(2, "held key=k owner=me .*")
	for _, settings := range [][]string{inside, outside} {
		if text := launch(t, settings, nil, "show", "k", "-o", "json").output(); !strings.Contains(text, `"owner":"me"`) {
			t.Errorf("with %q the key is %s", settings, text)
		}
	}
	p.signal(syscall.SIGTERM)
	p.exits(0)
	launch(t, inside, nil, "run", "/app/lock", "-c", `echo "$HOLDFAST_KEY"`).exits(0).prints("/app/lock\n")
	if found, _, err := plainAt(t, addr).Exists(chroot + "/app/lock"); err != nil || !found {
		t.Errorf("the lock of a path is not below the chroot (%v)", err)
	}
	all := examined(t, append(inside, "HOLDFAST_SERVERS="+addr+chroot), 0)
	well(t, all, "acl")
	finds(t, all, "locks", "ok", " in "+chroot+"/holdfast", "")

	launch(t, []string{"HOLDFAST_SERVERS=" + addr + "/a," + addr}, nil, "ls").exits(64, "--servers: ")
}

// TestZooKeeperAuth tests credentials from a file or the environment, which are never printed.
func TestZooKeeperAuth(t *testing.T) {
	begin(t)
	e := newZooKeeper(t)
	root := "HOLDFAST_ROOT=/" + newKey(t) // the creator owns the znodes above a lock as well
	e.env, e.direct = append(e.env, root), append(e.direct, root)
	key, secret := newKey(t), "digest:me:pass:word"
	file := filepath.Join(t.TempDir(), "auth")
	must(t, os.WriteFile(file, []byte("# mine\n"+secret+"\n"), 0o600))
	env := append(e.env, "HOLDFAST_AUTH_FILE="+file, "HOLDFAST_ACL=creator", "HOLDFAST_LEASE="+calm)
	p := launch(t, env, nil, "run", "-v", "-k", key, "--", "sh", "-c", untilGo)
	p.pid("pid")
	e.run(t, "show", key).exits(69, "denied")
	launch(t, append(e.env, "HOLDFAST_AUTH=digest:me:wrong"), nil, "run", "-k", key, "--try", "--", "true").exits(69, "denied")
	launch(t, append(e.env, "HOLDFAST_AUTH="+secret), nil, "show", key).exits(0)
	p.goes()
	p.exits(5)
	if strings.Contains(read(p.stderr), "pass:word") {
		t.Errorf("the log has the secret: %s", read(p.stderr))
	}

	for _, text := range []string{"mysecret", ":mysecret"} {
		must(t, os.WriteFile(file, []byte(text), 0o600))
		for _, setting := range []string{"HOLDFAST_AUTH_FILE=" + file, "HOLDFAST_AUTH=" + text} {
			p := launch(t, append(e.env, setting), nil, "ls")
			p.exits(64, "SCHEME:CREDENTIALS")
			if strings.Contains(read(p.stderr), "mysecret") {
				t.Errorf("the message has the secret: %s", read(p.stderr))
			}
		}
	}
}

// TestZooKeeperTLS tests TLS from files: an authority, a client certificate, and a server name.
func TestZooKeeperTLS(t *testing.T) {
	begin(t)
	cert, file, key := certificate(t)
	e := zooKeeperAt(t, serveTLS(t, &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert}))
	client := []string{"--tls-cert", file, "--tls-key", key}
	var ends []func()
	for _, test := range []struct {
		flags  []string
		status int
		says   string
	}{
		{slices.Concat([]string{"--tls-ca", file, "--tls-server-name", "example.com"}, client), 0, ""},
		{nil, 69, "not connected"},
		{slices.Concat([]string{"--tls"}, client), 69, "certificate"}, // of an unknown authority
		{slices.Concat([]string{"--tls-ca", file, "--tls-server-name", "other.example"}, client), 69, "certificate"},
		{[]string{"--tls-ca", file}, 69, "certificate"}, // the client has none
		{[]string{"--tls-ca", file + ".none"}, 64, "no such file"},
	} {
		timeout := map[int]string{0: "1m"}[test.status]
		p := launch(t, e.direct, nil, append([]string{"ls", "--timeout", cmp.Or(timeout, "8s")}, test.flags...)...)
		ends = append(ends, func() { p.exits(test.status, test.says) })
	}
	for _, end := range ends { // at the same time, since most wait for their timeout
		end()
	}
}

// certificate returns httptest's certificate, for example.com and 127.0.0.1, and files with it and its key.
func certificate(t *testing.T) (cert tls.Certificate, certFile, keyFile string) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	s.Close()
	cert = s.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	must(t, err)
	file := func(kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), "pem")
		must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	return cert, file("CERTIFICATE", cert.Certificate[0]), file("PRIVATE KEY", key)
}

// serveTLS terminates TLS in front of the shared ZooKeeper server.
func serveTLS(t *testing.T, config *tls.Config) string {
	t.Helper()
	upstream := zookeeperServer(t).Addr()
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	must(t, err)
	return serve(t, l, func(conn net.Conn) {
		server, err := net.Dial("tcp", upstream)
		if err != nil {
			return
		}
		defer server.Close()
		go func() {
			_, _ = io.Copy(conn, server)
			_ = conn.Close()
		}()
		_, _ = io.Copy(server, conn)
	})
}

// TestSecretsAreNotPrinted checks that no command prints or logs credentials, however it fails.
func TestSecretsAreNotPrinted(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		const secret = "correct-horse-battery"
		file := func(content string) string {
			path := filepath.Join(t.TempDir(), "file")
			must(t, os.WriteFile(path, []byte(content), 0o600))
			return path
		}
		withSecret := [][]string{
			{"HOLDFAST_AUTH=digest:user:" + secret},
			{"HOLDFAST_AUTH=nosuchscheme:" + secret},
			{"HOLDFAST_AUTH_FILE=" + file("digest:user:"+secret+"\n")},
			{"HOLDFAST_AUTH_FILE=" + file(secret+"\n")},
		}
		if e.name == "dynamodb" {
			shared := file("[default]\naws_access_key_id = AKID\naws_secret_access_key = " + secret + "\n")
			withSecret = [][]string{
				{"AWS_SECRET_ACCESS_KEY=" + secret, "AWS_SESSION_TOKEN=token-" + secret},
				{"AWS_SHARED_CREDENTIALS_FILE=" + shared, "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_SESSION_TOKEN="},
			}
		}
		key := newKey(t)
		e.acquire(t, key, "the holder")
		for i, secrets := range withSecret {
			runs := func(settings []string, args ...string) {
				t.Helper()
				p := launch(t, slices.Concat(settings, secrets), nil, append([]string{"-v", "--timeout", "2s"}, args...)...)
				p.wait()
				text := read(p.stdout) + read(p.stderr)
				if strings.Contains(text, secret) || text == "" && args[0] != "run" {
					t.Errorf("%q prints the secret, or nothing: %q", args, text)
				}
			}
			runs(e.direct, "ls")
			runs(e.direct, "show", key, "-o", "json")
			runs(e.direct, "run", "-k", key, "--try", "--", "true")
			if i == 0 {
				runs(e.direct, "run", "-k", key+".free", "--lease", calm, "--", "true")
				runs(e.direct, "show", "a\x01b")
				runs(e.direct, "run", "--help")
				runs(append(e.direct, "HOLDFAST_TABLE=no-such-table"), "ls", "--engine", e.name)
				runs(e.at("127.0.0.1:1"), "ls")
			}
		}
	})
}
