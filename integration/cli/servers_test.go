package cli_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-zookeeper/zk"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
)

// serve handles each connection, and returns the address.
func serve(t *testing.T, l net.Listener, handle func(net.Conn)) string {
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				handle(conn)
			}()
		}
	}()
	return l.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return l
}

// silent is the address of a server that never answers.
func silent(t *testing.T) string {
	return serve(t, listen(t), func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
}

// mailServer is the address of a server of another kind.
func mailServer(t *testing.T) string {
	return serve(t, listen(t), func(conn net.Conn) {
		_, _ = io.WriteString(conn, "220 mail.example ESMTP\r\n")
		_, _ = io.Copy(io.Discard, conn)
	})
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

// plainAt connects to a server without the library, as the user "owner".
func plainAt(t *testing.T, addr string) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect([]string{addr}, patience, zk.WithLogInfo(false), zk.WithLogger(log.New(io.Discard, "", 0)))
	must(t, err)
	t.Cleanup(c.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	must(t, c.AddAuth("digest", []byte("owner:secret")))
	return c
}

// makeNodes creates znodes and their parents.
func makeNodes(t *testing.T, c *zk.Conn, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if parent := path.Dir(p); parent != "/" {
			makeNodes(t, c, parent)
		}
		if _, err := c.Create(p, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			t.Fatalf("create %s: %v", p, err)
		}
	}
}

// makeNode is the command znode of scripts.
func makeNode(ts *testscript.TestScript, t *testing.T, path string, permissions []string) {
	c := plainAt(t, zookeeperServer(t).Addr())
	makeNodes(t, c, path)
	var acl []zk.ACL
	for _, p := range permissions {
		who, letters, _ := strings.Cut(p, ":")
		var perms int32
		for _, letter := range letters {
			perms |= map[rune]int32{'c': zk.PermCreate, 'd': zk.PermDelete, 'r': zk.PermRead, 'w': zk.PermWrite, 'a': zk.PermAdmin}[letter]
		}
		acl = append(acl, map[string][]zk.ACL{"world": zk.WorldACL(perms), "owner": zk.AuthACL(perms)}[who]...)
	}
	if acl != nil {
		_, err := c.SetACL(path, acl, -1)
		ts.Check(err)
	}
}

// item reads NAME=VALUE pairs: numbers as N, "bytes" as B, others as S. "…" makes a value long.
func item(pairs []string) map[string]types.AttributeValue {
	all := make(map[string]types.AttributeValue)
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case value == "bytes":
			all[name] = &types.AttributeValueMemberB{Value: make([]byte, 64)}
		case strings.Trim(value, "0123456789") == "":
			all[name] = &types.AttributeValueMemberN{Value: value}
		default:
			value = unescape(value)
			all[name] = &types.AttributeValueMemberS{Value: strings.ReplaceAll(value, "…", strings.Repeat(" more", 60_000))}
		}
	}
	return all
}

// unescape reads the escapes of Go's strings.
func unescape(text string) string {
	if plain, err := strconv.Unquote(`"` + text + `"`); err == nil {
		return plain
	}
	return text
}

// nothingLeft checks that the root or the table of settings is missing or empty.
func nothingLeft(t *testing.T, env []string) {
	t.Helper()
	if table := setting(env, "HOLDFAST_TABLE"); table != "" {
		out, err := dynamoserver.Find(t).Client().Scan(limited(t), &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
		if must(t, err); len(out.Items) > 0 {
			t.Errorf("left behind: %v", out.Items)
		}
		return
	}
	root := setting(env, "HOLDFAST_ROOT")
	if found, _, err := plainAt(t, setting(env, "HOLDFAST_SERVERS")).Exists(root); err != nil || found {
		t.Errorf("left behind: %s (%v)", root, err)
	}
}

// putItem writes an item into the table of settings.
func putItem(t *testing.T, env []string, item map[string]types.AttributeValue) {
	t.Helper()
	_, err := dynamoserver.Find(t).Client().PutItem(limited(t), &dynamodb.PutItemInput{
		TableName: aws.String(setting(env, "HOLDFAST_TABLE")), Item: item,
	})
	must(t, err)
}

// age makes the holder of a key look silent for long, with a lease of a second.
func age(t *testing.T, env []string, key string) {
	t.Helper()
	_, err := dynamoserver.Find(t).Client().UpdateItem(limited(t), &dynamodb.UpdateItemInput{
		TableName:                 aws.String(setting(env, "HOLDFAST_TABLE")),
		Key:                       item([]string{dynamoserver.DefaultKey + "=" + key}),
		UpdateExpression:          aws.String("SET leaseDurationMs = :lease, lockAcquiredTimeUnixMs = :acquired"),
		ConditionExpression:       aws.String("attribute_exists(guid)"),
		ExpressionAttributeValues: item([]string{":lease=1000", ":acquired=1"}),
	})
	must(t, err)
}

// setting returns the last value of a variable in settings.
func setting(env []string, name string) string {
	value := ""
	for _, e := range env {
		if rest, found := strings.CutPrefix(e, name+"="); found {
			value = rest
		}
	}
	return value
}

// ownRoot returns settings past the proxy, on ZooKeeper with a root for one test alone. A table is for one test anyway.
func ownRoot(t *testing.T, e *engine) []string {
	settings := slices.Clone(e.direct)
	if e.name == "zookeeper" {
		settings = append(settings, "HOLDFAST_ROOT=/"+newKey(t))
	}
	return settings
}
