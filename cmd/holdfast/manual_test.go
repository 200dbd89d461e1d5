package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// docPage returns a page of the documentation.
func docPage(t *testing.T, name string) string {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join("..", "..", name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fieldNames collects the JSON names of all fields of a type, recursively.
func fieldNames(of reflect.Type, names map[string]bool) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice:
		fieldNames(of.Elem(), names)
	case reflect.Struct:
		for i := range of.NumField() {
			f := of.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" {
				names[name] = true
			}
			if f.Type.PkgPath() != "time" {
				fieldNames(f.Type, names)
			}
		}
	}
}

// TestManualOfJSON checks that docs/cli.md describes exactly the fields of the JSON output.
func TestManualOfJSON(t *testing.T) {
	names := make(map[string]bool)
	for _, v := range []any{lockJSON{}, sightJSON{}, changeJSON{}, tableJSON{}, versionJSON{}} {
		fieldNames(reflect.TypeOf(v), names)
	}
	if len(names) < 15 {
		t.Fatalf("%d fields were found: %v", len(names), names)
	}
	_, section, _ := strings.Cut(docPage(t, "docs/cli.md"), "\n## JSON\n")
	section, _, _ = strings.Cut(section, "\n## ")
	section, _, _ = strings.Cut(section, "\n### ")
	told := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(section, -1) {
		told[row[1]] = true
	}
	if !reflect.DeepEqual(names, told) {
		t.Errorf("the fields are\n%v\nand those that docs/cli.md tells of\n%v", names, told)
	}
}

// TestManualOfStatus checks that the documentation and the help list all exit statuses.
func TestManualOfStatus(t *testing.T) {
	_, help, _ := call(t, noEnv, "help")
	cli := docPage(t, "docs/cli.md")
	for _, status := range []int{exitOK, exitNo, exitUsage, exitFailed, exitNotAcquired, exitLost, exitTTL, exitNotExec, exitNotFound} {
		if !strings.Contains(help, fmt.Sprintf("\n  %d ", status)) {
			t.Errorf("help does not tell of exit status %d", status)
		}
		if !strings.Contains(cli, fmt.Sprintf("\n| %d |", status)) {
			t.Errorf("docs/cli.md does not tell of exit status %d", status)
		}
	}
}

// TestManualPages checks that each command has a page with its whole help, and that troff interprets none of the text.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	if status, stdout, stderr := call(t, noEnv, "man", dir); status != 0 || stdout+stderr != "" {
		t.Fatalf("status %d, %q, %q", status, stdout, stderr)
	}
	requests := regexp.MustCompile(`(?m)^(\.(TH|SH|nf|fi|BR)\b.*|[^.'].*|)$`)
	root := newRootCommand(&app{})
	for _, cmd := range append(root.Commands(), root) {
		if !cmd.IsAvailableCommand() || cmd.Name() == "completion" {
			continue
		}
		text := docPage(t, filepath.Join(dir, pageName(cmd)+".1"))
		page := strings.NewReplacer(`\-`, "-", `\&`, "", `\e`, `\`).Replace(text)
		if !strings.Contains(page, cmd.Long) || !strings.Contains(page, cmd.Example) || !strings.Contains(page, "--timeout") {
			t.Errorf("the page of %s lacks something:\n%s", cmd.Name(), page)
		}
		if odd := strings.TrimSpace(requests.ReplaceAllString(text, "")); odd != "" {
			t.Errorf("%s: troff takes %q for a request", cmd.Name(), odd)
		}
	}
}
