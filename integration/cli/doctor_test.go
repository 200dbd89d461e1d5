package cli_test

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
)

// A finding is a line of doctor's output.
type finding struct{ ID, Status, Found, Cure string }

// examined runs doctor with settings, and returns its findings.
func examined(t *testing.T, settings []string, status int, args ...string) []finding {
	t.Helper()
	p := launch(t, settings, nil, append([]string{"doctor", "--lease", calm, "-o", "json"}, args...)...)
	p.exits(status)
	var all []finding
	for text := range strings.Lines(read(p.stdout)) {
		var f finding
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if f.ID == "" || f.Found == "" || (f.Status == "ok") != (f.Cure == "") {
			t.Errorf("a finding without all that it needs: %+v", f)
		}
		all = append(all, f)
	}
	if problems := slices.ContainsFunc(all, func(f finding) bool { return f.Status == "problem" }); problems != (status == 1) {
		t.Errorf("exit status %d, with problems: %v", status, problems)
	}
	return all
}

// finds fails the test unless a check has a finding with a status, and with texts in its
// detail and its cure.
func finds(t *testing.T, all []finding, id, status, found, cure string) {
	t.Helper()
	for _, f := range all {
		if f.ID == id && f.Status == status && strings.Contains(f.Found, found) && strings.Contains(f.Cure, cure) {
			return
		}
	}
	t.Errorf("no %s of %s with %q and the cure %q in %+v", status, id, found, cure, all)
}

// well fails the test unless all findings but those of some checks are ok.
func well(t *testing.T, all []finding, but ...string) {
	t.Helper()
	if len(all) == 0 {
		t.Error("nothing was found")
	}
	for _, f := range all {
		if f.Status != "ok" && !slices.Contains(but, f.ID) {
			t.Errorf("unexpectedly %+v", f)
		}
	}
}

// ids are the checks that ran, in order.
func ids(all []finding) []string {
	var names []string
	for _, f := range all {
		names = append(names, f.ID)
	}
	return slices.Compact(names)
}

// zooKeeperIDs and dynamoIDs are all checks of an engine. Scripts rely on their
// names.
var (
	zooKeeperIDs = strings.Fields("server role session permissions write agreement containers lock locks foreign counter acl clock")
	dynamoIDs    = strings.Fields("endpoint credentials table schema replicas ttl permissions latency lock reason foreign locks clock")
)

// ofItsOwn returns settings of an engine for one test alone: its own root or table.
func ofItsOwn(t *testing.T, e *engine) []string {
	return append(e.direct, "HOLDFAST_ROOT=/"+newKey(t))
}

// rootOfItsOwn returns settings of a ZooKeeper root for one test alone.
func rootOfItsOwn(t *testing.T) []string {
	t.Helper()
	server, err := zookeeperServer()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"HOLDFAST_SERVERS=" + server.Addr(), "HOLDFAST_ROOT=/" + newKey(t)}
}

// tableOfItsOwn returns settings of a DynamoDB table for one test alone.
func tableOfItsOwn(t *testing.T) []string {
	t.Helper()
	target := dynamoserver.Find(t)
	return append(target.Env(), "AWS_ENDPOINT_URL_DYNAMODB="+target.Endpoint(), "HOLDFAST_TABLE="+target.Table(t))
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

// nothingLeft fails the test unless the root or the table of settings is missing or
// empty, as before.
func nothingLeft(t *testing.T, env []string) {
	t.Helper()
	if setting(env, "HOLDFAST_TABLE") != "" {
		if items := allItems(t, env); len(items) > 0 {
			t.Errorf("left behind: %v", items)
		}
		return
	}
	root := setting(env, "HOLDFAST_ROOT")
	c := plainZooKeeper(t)
	if found, _, err := c.Exists(root); err != nil || found {
		names, _, _ := c.Children(root)
		t.Errorf("left behind: %s, with %q (%v)", root, names, err)
	}
}

// TestDoctorHealthy checks that doctor finds a healthy engine healthy, check by check, in
// both output formats, and leaves nothing behind.
func TestDoctorHealthy(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		want := dynamoIDs
		env := ofItsOwn(t, e)
		if e.name == "zookeeper" {
			want = zooKeeperIDs
			env = append(env, "HOLDFAST_ACL=creator", "HOLDFAST_AUTH=digest:me:secret")
		}
		all := examined(t, env, 0)
		well(t, all)
		if got := ids(all); !slices.Equal(got, want) {
			t.Errorf("the checks are %q, want %q", got, want)
		}
		p := launch(t, env, nil, "doctor", "--lease", calm)
		p.exits(0)
		p.says("")
		var names []string
		for line := range strings.Lines(read(p.stdout)) {
			words := strings.Fields(line)
			if words[0] != "ok" {
				t.Errorf("a line of text is %q", line)
			}
			names = append(names, words[1])
		}
		if got := slices.Compact(names); !slices.Equal(got, want) {
			t.Errorf("the checks in text are %q, want %q", got, want)
		}
		if strings.Contains(read(p.stdout), "secret") {
			t.Errorf("the findings have the secret: %s", read(p.stdout))
		}
		nothingLeft(t, env)
	})
}

// TestDoctorInterrupted checks that Ctrl-C ends an examination at any point, with the
// signal's status and nothing left behind.
func TestDoctorInterrupted(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		env := ofItsOwn(t, e)
		e.slow()
		for _, at := range map[string][]string{"zookeeper": {"permissions", "write", "containers"}, "dynamodb": {"schema", "permissions", "latency"}}[e.name] {
			p := launch(t, append(e.env, "HOLDFAST_ROOT="+setting(env, "HOLDFAST_ROOT")), nil, "doctor", "--lease", calm)
			seen := func() bool {
				return slices.ContainsFunc(strings.Split(read(p.stdout), "\n"), func(line string) bool {
					words := strings.Fields(line)
					return len(words) > 1 && words[1] == at
				})
			}
			if !becomes(func() bool { return seen() || p.hasEnded() }) || p.hasEnded() {
				t.Fatalf("the check %s was not seen before the end; stdout %q", at, read(p.stdout))
			}
			p.signal(syscall.SIGINT)
			p.exits(128 + int(syscall.SIGINT))
			p.says("interrupted by SIGINT")
			nothingLeft(t, env)
		}
	})
}

// TestDoctorUnreachable tests the finding for an unreachable engine: a line with a cure,
// within --timeout.
func TestDoctorUnreachable(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // a server that accepts, and says nothing
		for name, addr := range map[string]string{"refused": "127.0.0.1:1", "silent": l.Addr().String()} {
			id, env := "server", append(e.direct, "HOLDFAST_SERVERS="+addr)
			if e.name == "dynamodb" {
				id, env = "table", append(e.direct, "AWS_ENDPOINT_URL_DYNAMODB=http://"+addr)
			}
			all := examined(t, env, 1, "--timeout", "500ms")
			why := map[string]string{"refused": "connection refused", "silent": "within 500ms"}[name]
			finds(t, all, id, "problem", addr, "")
			finds(t, all, id, "problem", why, "")
			if last := all[len(all)-1]; last.ID != id {
				t.Errorf("%s: after that it went on to %+v", name, last)
			}
		}
	})
}

// TestDoctorLosesTheEngine checks that the examination ends within the time of one check
// if the engine falls silent in the middle.
func TestDoctorLosesTheEngine(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		e.slow()
		p := e.start(t, "doctor", "--timeout", "3s", "--lease", calm)
		p.writesTo(p.stdout, " permissions ")
		e.cut()
		p.exits(1)
		p.says("problems: 1")
		lines := strings.Split(strings.TrimSpace(read(p.stdout)), "\n")
		if last := lines[len(lines)-2]; !strings.HasPrefix(last, "problem ") || !strings.Contains(last, "no answer within 3s") {
			t.Errorf("the last finding is %q", last)
		}
	})
}

// writesTo waits until one of the tool's files contains a text.
func (p *tool) writesTo(path, text string) {
	p.t.Helper()
	if !becomes(func() bool { return strings.Contains(read(path), text) || p.hasEnded() }) || !strings.Contains(read(path), text) {
		p.t.Fatalf("never: %q in %q; stderr: %s", text, read(path), read(p.stderr))
	}
}

// TestDoctorUsage checks that doctor refuses invalid usage in one line, before it sends
// anything.
func TestDoctorUsage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		says string
	}{
		{nil, "--servers"},
		{[]string{"--servers", "127.0.0.1:1", "--no-such-flag"}, "--no-such-flag"},
		{[]string{"--servers", "127.0.0.1:1", "a", "b"}, "usage: holdfast doctor"},
		{[]string{"--servers", "127.0.0.1:1", "--lease", "1000h"}, "--lease"},
		{[]string{"--servers", "no port, or what"}, "--servers"},
		{[]string{"--engine", "redis"}, "redis"},
		{[]string{"--engine", "zookeeper"}, "--servers"},
		{[]string{"--engine", "dynamodb"}, "--table"},
		{[]string{"--table", "locks"}, "AWS_REGION"},
		{[]string{"--table", "no table"}, "--table"},
	} {
		env := []string{"AWS_CONFIG_FILE=/dev/null"}
		if test.says == "--table" {
			env = append(env, "AWS_REGION=us-east-1")
		}
		p := launch(t, env, nil, append([]string{"doctor"}, test.args...)...)
		p.exits(64)
		p.says(test.says)
		p.prints("")
	}
}

// TestDoctorBrokenPipe checks that doctor ends quietly when its reader goes away, with
// nothing left behind.
func TestDoctorBrokenPipe(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		env := ofItsOwn(t, e)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p := launchTo(t, w, env, "doctor", "--lease", calm, "-o", "json")
		_ = w.Close()
		lines := bufio.NewScanner(r)
		for lines.Scan() && !strings.Contains(lines.Text(), `"id":"permissions"`) {
		}
		_ = r.Close()
		p.exits(141)
		p.says("")
		nothingLeft(t, env)
	})
}

// TestDoctorForeignText tests that text written by others cannot harm the terminal.
func TestDoctorForeignText(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		env := ofItsOwn(t, e)
		if e.name == "zookeeper" { // allows other characters in names, but no control characters
			c := plainZooKeeper(t)
			makeNodes(t, c, zk.WorldACL(zk.PermAll), setting(env, "HOLDFAST_ROOT")+"/key/forged\u202e")
		} else {
			putItem(t, env, map[string]types.AttributeValue{"id": attrS("\x1b[2J\a\r\nok       forged  line\u202e")})
		}
		for _, form := range []string{"text", "json"} {
			p := launch(t, env, nil, "doctor", "--lease", calm, "-o", form)
			p.exits(0)
			text := read(p.stdout) + read(p.stderr)
			if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("it printed %q", text[i:])
			}
			if strings.Contains(text, "\nok       forged") {
				t.Errorf("a line is forged: %q", text)
			}
			if !strings.Contains(text, "forged") {
				t.Errorf("the foreign text was not told: %q", text)
			}
		}
	})
}
