package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// manual returns the command lines that the documentation shows, and those of the
// tool's own help.
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
	help := launch(t, nil, nil, "run", "--help")
	help.exits(0)
	_, examples, _ := strings.Cut(read(help.stdout), "\nExamples:\n")
	examples, _, _ = strings.Cut(examples, "\n\n")
	collect(examples)
	return lines
}

// TestManual tests the documentation: each command line in it works as described, on both
// engines.
func TestManual(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		lines := manual(t)
		if len(lines) < 12 {
			t.Errorf("%d command lines were found; there are more", len(lines))
		}
		dir := t.TempDir()
		for name, content := range map[string]string{
			"make-reports.sh": "exit 0", "deploy.sh": "exit 0", "import.sh": "exit 0", "psql": `[ -n "$HOLDFAST_TOKEN" ]`,
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+content+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		settings := append(e.direct[:len(e.direct):len(e.direct)],
			"HOLDFAST_ROOT=/"+newKey(t), "HOLDFAST_LEASE=12s", "PATH="+filepath.Dir(binary(t))+":"+dir+":"+os.Getenv("PATH"))
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
				holder := launch(t, settings, nil, "run", "-k", words[2], "--", "sh", "-c", `echo $HOLDFAST_TOKEN >"$DIR/token"; exec sleep 1000`)
				holder.writes("token", "\n")
				command := regexp.MustCompile(`--token \d+`).ReplaceAllString(line, "--token "+strings.TrimSpace(read(holder.file("token"))))
				if !slices.Contains(words, "--yes") {
					command += " --yes" // TestTerminalBreak tests the question
				}
				if out, err := shell(command); err != nil {
					t.Errorf("%s: %v: %s", line, err, out)
				}
				holder.exits(79)
			case "watch":
				p := launch(t, settings, nil, words[1:]...)
				p.writes("stdout", "\n")
				p.signal(syscall.SIGINT)
				p.exits(130)
			case "table":
				if e.name == "zookeeper" {
					continue
				}
				fallthrough
			default:
				if out, err := shell(line); err != nil {
					t.Errorf("%s: %v: %s", line, err, out)
				}
			}
		}
	})
}
