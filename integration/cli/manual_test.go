package cli_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gopkg.in/yaml.v3"
)

// manual returns the command lines in the documentation and the tool's own help.
func manual(t *testing.T) []string {
	t.Helper()
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```\n")
	var lines []string
	collect := func(text string) {
		for line := range strings.Lines(text) {
			command, _, _ := strings.Cut(strings.TrimSpace(line), "  #")
			if command = strings.TrimSpace(command); strings.HasPrefix(command, "holdfast ") && !slices.Contains(lines, command) {
				lines = append(lines, command)
			}
		}
	}
	for _, page := range []string{"README.md", "docs/cli.md"} {
		text := read(filepath.Join("..", "..", page))
		if text == "" {
			t.Fatalf("there is nothing in %s", page)
		}
		for _, block := range blocks.FindAllStringSubmatch(text, -1) {
			collect(block[1])
		}
	}
	_, examples, _ := strings.Cut(read(launch(t, nil, "run", "--help").exits(0).stdout), "\nExamples:\n")
	examples, _, _ = strings.Cut(examples, "\n\n")
	collect(examples)
	return lines
}

// TestManual checks that each command line in the documentation works, on both engines.
func TestManual(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		lines := manual(t)
		if len(lines) < 12 {
			t.Errorf("%d command lines were found; there are more", len(lines))
		}
		dir := t.TempDir()
		for name, content := range map[string]string{
			"make-reports.sh": "exit 0", "deploy.sh": "exit 0", "import.sh": "exit 0", "transfer.sh": `[ -n "$HOLDFAST_TOKEN_2" ]`, "psql": `[ -n "$HOLDFAST_TOKEN" ]`,
			"serve.sh": "exit 0", "rewrite.sh": "exit 0", "upload.sh": "exit 0",
		} {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+content+"\n"), 0o755))
		}
		settings := append(ownRoot(t, e), "HOLDFAST_LEASE="+calm, "PATH="+filepath.Dir(binary(t))+":"+dir+":"+os.Getenv("PATH"))
		shell := func(command string) (string, error) {
			cmd := exec.CommandContext(limited(t), "bash", "-c", command)
			cmd.Dir, cmd.Env = dir, environment(settings...)
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		for _, line := range lines {
			words := strings.Fields(line)
			switch words[1] {
			case "break": // it needs a holder of the key and its token
				holder := launch(t, settings, "run", "-k", words[2], "--", "sh", "-c", `echo $HOLDFAST_TOKEN >"$DIR/token"; exec sleep 1000`)
				holder.writes("token", "\n")
				command := regexp.MustCompile(`--token \d+`).ReplaceAllString(line, "--token "+strings.TrimSpace(read(holder.file("token"))))
				if !slices.Contains(words, "--yes") {
					command += " --yes" // terminal_break.txtar tests the question
				}
				if out, err := shell(command); err != nil {
					t.Errorf("%s: %v: %s", line, err, out)
				}
				holder.exits(79)
			case "observe":
				if strings.Contains(line, "|") || strings.Contains(line, "--exec") {
					continue // observe.txtar does that
				}
				fallthrough
			case "watch":
				p := launch(t, settings, words[1:]...)
				p.writes("stdout", "\n")
				p.signal(syscall.SIGINT)
				p.exits(130)
			case "ask":
				continue // ask.txtar does that
			case "elect":
				p := launch(t, append(settings, "PATH="+dir+":"+os.Getenv("PATH")), append(words[1:3], "--", "sleep", "1000")...)
				p.writes("stderr", "holdfast: leading ")
				p.signal(syscall.SIGTERM)
				p.exits(143)
			case "table":
				if e.name == "zookeeper" {
					continue
				}
				fallthrough
			default:
				out, err := shell(line)
				if err != nil {
					t.Errorf("%s: %v: %s", line, err, out)
				}
			}
		}
	})
}

// deployed returns the command lines of holdfast in the manifests and units of docs/operations.md.
func deployed(t *testing.T) [][]string {
	t.Helper()
	text := read(filepath.Join("..", "..", "docs", "operations.md"))
	var lines [][]string
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```\n").FindAllStringSubmatch(text, -1) {
		for d := yaml.NewDecoder(strings.NewReader(block[1])); ; {
			var manifest struct {
				APIVersion string `yaml:"apiVersion"`
				Kind       string
				Metadata   struct{ Name string }
			}
			if err := d.Decode(&manifest); errors.Is(err, io.EOF) {
				break
			} else if err != nil || manifest.APIVersion == "" || manifest.Kind == "" || manifest.Metadata.Name == "" {
				t.Fatalf("%v, %+v in\n%s", err, manifest, block[1])
			}
		}
		for _, container := range regexp.MustCompile(`command: \[(.*)\]\n +args: \[(.*)\]`).FindAllStringSubmatch(block[1], -1) {
			var line []string
			must(t, json.Unmarshal([]byte("["+container[1]+", "+container[2]+"]"), &line))
			lines = append(lines, line)
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
	must(t, os.WriteFile(path, []byte(unit), 0o644))
	if out, err := exec.CommandContext(limited(t), analyze, "verify", "--man=no", "--recursive-errors=no", path).CombinedOutput(); err != nil || strings.Contains(string(out), path) {
		t.Errorf("systemd-analyze verify: %v: %s", err, out)
	}
}

// TestDeploying checks that holdfast accepts the command lines in docs/operations.md.
func TestDeploying(t *testing.T) {
	begin(t)
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
		launch(t, e.direct, args...).exits(0)
	}
}
