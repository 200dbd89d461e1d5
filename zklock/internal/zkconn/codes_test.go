package zkconn

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestCodes_ServersEnum_SameNames compares the table with the enum of the server that is installed.
func TestCodes_ServersEnum_SameNames(t *testing.T) {
	const jar = "/usr/share/java/zookeeper.jar"
	java, err := exec.LookPath("java")
	if _, missing := os.Stat(jar); missing != nil || err != nil {
		t.Skip("no local ZooKeeper: make setup installs it")
	}
	source := filepath.Join(t.TempDir(), "Codes.java")
	program := `class Codes {
	public static void main(String[] args) {
		for (var c : org.apache.zookeeper.KeeperException.Code.values()) System.out.println(c.name() + " " + c.intValue());
	}
}`
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), java, "-cp", jar, source).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all := 0
	for line := range strings.Lines(string(out)) {
		name, code, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "OK" {
			continue
		}
		all++
		if n, _ := strconv.ParseInt(code, 10, 32); codes[int32(n)] != name {
			t.Errorf("%s is %q, want %s", code, codes[int32(n)], name)
		}
	}
	if all < 25 {
		t.Errorf("%d codes: %s", all, out)
	}
	for text, want := range map[string]string{
		"unknown error: -120": "localSessionsEnabled", "unknown error: -121": "NOWATCHER (-121)", "unknown error: -124": "have authenticated",
	} {
		if err := StepError("create", "/a", errors.New(text)); !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
