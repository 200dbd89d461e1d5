package cli_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// deployed returns the command lines of holdfast in the manifests and units of
// docs/deploying.md, which are well-formed.
func deployed(t *testing.T) [][]string {
	t.Helper()
	text := read(filepath.Join("..", "..", "docs", "deploying.md"))
	var lines [][]string
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```\n").FindAllStringSubmatch(text, -1) {
		for d := yaml.NewDecoder(strings.NewReader(block[1])); ; {
			var manifest struct {
				APIVersion string `yaml:"apiVersion"`
				Kind       string
				Metadata   struct{ Name string }
				Spec       yaml.Node
			}
			if err := d.Decode(&manifest); errors.Is(err, io.EOF) {
				break
			} else if err != nil || manifest.APIVersion == "" || manifest.Kind == "" || manifest.Metadata.Name == "" {
				t.Fatalf("%v, %+v in\n%s", err, manifest, block[1])
			}
			var spec any
			if err := manifest.Spec.Decode(&spec); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, commands(spec)...)
		}
	}
	for _, block := range regexp.MustCompile("(?s)```ini\n(.*?)```\n").FindAllStringSubmatch(text, -1) {
		verify(t, block[1])
		for _, start := range regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindAllStringSubmatch(block[1], -1) {
			lines = append(lines, strings.Fields(start[1]))
		}
	}
	return lines
}

// commands are what the containers of a manifest execute.
func commands(node any) [][]string {
	var lines [][]string
	switch node := node.(type) {
	case []any:
		for _, n := range node {
			lines = append(lines, commands(n)...)
		}
	case map[string]any:
		var line []string
		for _, part := range []string{"command", "args"} {
			words, _ := node[part].([]any)
			for _, w := range words {
				line = append(line, w.(string))
			}
		}
		if len(line) > 0 {
			return [][]string{line}
		}
		for _, n := range node {
			lines = append(lines, commands(n)...)
		}
	}
	return lines
}

// verify checks a unit with systemd, where it is installed.
func verify(t *testing.T, unit string) {
	t.Helper()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Logf("the unit is not verified: %v", err)
		return
	}
	unit = strings.NewReplacer("/usr/bin/holdfast", binary(t), "/usr/local/bin/importer", "/bin/true").Replace(unit)
	path := filepath.Join(t.TempDir(), "importer.service")
	if err := os.WriteFile(path, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(limited(t), analyze, "verify", "--man=no", "--recursive-errors=no", path).CombinedOutput(); err != nil || strings.Contains(string(out), path) {
		t.Errorf("systemd-analyze verify: %v: %s", err, out)
	}
}

// TestDeploying checks that the examples for Kubernetes and systemd in docs/deploying.md
// can be parsed, and that holdfast accepts their command lines.
func TestDeploying(t *testing.T) {
	t.Parallel()
	lines := deployed(t)
	if len(lines) < 3 {
		t.Errorf("%d command lines were found; there are more", len(lines))
	}
	e := newZooKeeper(t)
	for _, line := range lines {
		at := slices.Index(line, "--")
		if filepath.Base(line[0]) != "holdfast" || at < 0 {
			t.Errorf("%q is not holdfast with a command", line)
			continue
		}
		args := append(slices.Clone(line[1:at+1]), "sh", "-c", `[ -n "$HOLDFAST_TOKEN" ]`)
		e.run(t, args...).exits(0)
	}
}
