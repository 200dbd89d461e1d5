package cli_test

import (
	"bufio"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// A finding is a line of doctor's output.
type finding struct{ ID, Status, Found, Cure string }

// examined runs doctor with settings, and returns its findings.
func examined(t *testing.T, settings []string, status int, args ...string) []finding {
	t.Helper()
	return findings(t, examine(t, settings, args...), status)
}

// examine starts doctor with settings.
func examine(t *testing.T, settings []string, args ...string) *tool {
	t.Helper()
	return launch(t, settings, nil, append([]string{"doctor", "--lease", calm, "-o", "json"}, args...)...)
}

// findings returns what doctor finds. It measures times as well: what it finds on a machine that stands still is no verdict on
// it.
func findings(t *testing.T, p *tool, status int) []finding {
	t.Helper()
	p.wait()
	if got := p.cmd.ProcessState.ExitCode(); got <= 1 && got != status {
		verdict.Fatalf(t, "doctor ended with exit status %d, want %d; stdout: %s", got, status, read(p.stdout))
	}
	p.exits(status)
	var all []finding
	for text := range strings.Lines(read(p.stdout)) {
		var f finding
		decode(t, text, &f)
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

// finds fails the test unless a check has a finding with a status, and texts in its detail and its cure.
func finds(t *testing.T, all []finding, id, status, found, cure string) {
	t.Helper()
	for _, f := range all {
		if f.ID == id && f.Status == status && strings.Contains(f.Found, found) && strings.Contains(f.Cure, cure) {
			return
		}
	}
	verdict.Fatalf(t, "no %s of %s with %q and the cure %q in %+v", status, id, found, cure, all)
}

// well fails the test unless all findings but those of some checks are ok, or the checks were skipped.
func well(t *testing.T, all []finding, but ...string) {
	t.Helper()
	if len(all) == 0 {
		t.Error("nothing was found")
	}
	for _, f := range all {
		if f.Status != "ok" && f.Status != "skipped" && !slices.Contains(but, f.ID) {
			verdict.Fatalf(t, "unexpectedly %+v", f)
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

// zooKeeperIDs and dynamoIDs are all checks of an engine. Scripts rely on their names.
var (
	zooKeeperIDs = strings.Fields("server role session permissions write agreement containers lock locks foreign counter acl clock")
	dynamoIDs    = strings.Fields("endpoint credentials table schema replicas ttl permissions latency lock reason foreign locks clock")
)

// ofItsOwn returns settings of an engine for one test alone: its own root or table.
func ofItsOwn(t *testing.T, e *engine) []string {
	settings := slices.Clone(e.direct)
	if e.name == "zookeeper" {
		settings = append(settings, "HOLDFAST_ROOT=/"+newKey(t))
	}
	return settings
}

// rootOfItsOwn returns settings of a ZooKeeper root for one test alone.
func rootOfItsOwn(t *testing.T) []string {
	t.Helper()
	return []string{"HOLDFAST_SERVERS=" + zookeeperServer(t).Addr(), "HOLDFAST_ROOT=/" + newKey(t)}
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

// nothingLeft fails the test unless the root or the table of settings is missing or empty, as before.
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

// TestDoctorHealthy checks that doctor finds a healthy engine healthy, check by check, in both formats.
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
		if slices.ContainsFunc(all, func(f finding) bool { return f.Status == "skipped" }) {
			t.Errorf("skipped: %+v", all)
		}
		if got := ids(all); !slices.Equal(got, want) {
			t.Errorf("the checks are %q, want %q", got, want)
		}
		text := launch(t, env, nil, "doctor", "--lease", calm).exits(0, "").output()
		var lines []finding
		for line := range strings.Lines(text) {
			words := strings.Fields(line)
			lines = append(lines, finding{ID: words[1], Status: words[0]})
		}
		well(t, lines)
		if got := ids(lines); !slices.Equal(got, want) || strings.Contains(text, "secret") {
			t.Errorf("the checks in text are %q, want %q, without the secret:\n%s", got, want, text)
		}
		nothingLeft(t, env)
	})
}

// TestDoctorInterrupted checks that Ctrl-C ends an examination at any point, with nothing left behind.
func TestDoctorInterrupted(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		env := ofItsOwn(t, e)
		e.slow()
		for _, at := range map[string][]string{"zookeeper": {"permissions", "write", "containers"}, "dynamodb": {"schema", "permissions", "latency"}}[e.name] {
			p := launch(t, append(e.env, "HOLDFAST_ROOT="+setting(env, "HOLDFAST_ROOT")), nil, "doctor", "--lease", calm)
			p.writes("stdout", " "+at+" ")
			p.signal(syscall.SIGINT)
			p.wait()
			if p.cmd.ProcessState.ExitCode() == 0 {
				verdict.Fatalf(t, "the examination was over before the interrupt")
			}
			p.exits(128+int(syscall.SIGINT), "interrupted by SIGINT")
			nothingLeft(t, env)
		}
	})
}

// TestDoctorUnreachable tests the finding for an unreachable engine: a line with a cure, within --timeout.
func TestDoctorUnreachable(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		id := map[string]string{"zookeeper": "server", "dynamodb": "table"}[e.name]
		for addr, test := range map[string]struct{ timeout, why string }{
			"127.0.0.1:1": {"8s", "connection refused"}, // time for a busy machine to try it
			silent(t):     {"500ms", "within 500ms"},
		} {
			all := examined(t, e.at(addr), 1, "--timeout", test.timeout)
			finds(t, all, id, "problem", addr, "")
			finds(t, all, id, "problem", test.why, "")
			if last := all[len(all)-1]; last.ID != id {
				t.Errorf("after %q it went on to %+v", test.why, last)
			}
		}
	})
}

// TestDoctorLosesTheEngine checks that the examination ends soon if the engine falls silent in the middle.
func TestDoctorLosesTheEngine(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		e.slow()
		p := e.start(t, "doctor", "--timeout", "8s", "--lease", calm)
		p.writes("stdout", " permissions ")
		e.cut()
		p.exits(1, "problems: 1")
		lines := strings.Split(strings.TrimSpace(read(p.stdout)), "\n")
		if last := lines[len(lines)-2]; !strings.HasPrefix(last, "problem ") || !strings.Contains(last, "no answer within 8s") {
			t.Errorf("the last finding is %q", last)
		}
	})
}

// TestDoctorBrokenPipe checks that doctor ends quietly when its reader goes away, with nothing left behind.
func TestDoctorBrokenPipe(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		env := ofItsOwn(t, e)
		r, w := pipe(t)
		p := launchTo(t, w, env, "doctor", "--lease", calm, "-o", "json")
		_ = w.Close()
		lines := bufio.NewScanner(r)
		for lines.Scan() && !strings.Contains(lines.Text(), `"id":"permissions"`) {
		}
		_ = r.Close()
		p.exits(141, "")
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
			p := launch(t, env, nil, "doctor", "--lease", calm, "-o", form).exits(0)
			p.harmless()
			if text := read(p.stdout); !strings.Contains(text, "forged") || strings.Contains(text, "\nok       forged") {
				t.Errorf("the foreign text is missing, or a line is forged: %q", text)
			}
		}
	})
}
