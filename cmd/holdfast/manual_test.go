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

// docPage returns a file of the documentation.
func docPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fieldNames returns the names in JSON of all fields of a type, and of what is in it.
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

// TestManualOfJSON tests what scripts rely on: docs/cli.md tells of each field of
// the output in JSON, and of none that is not there.
func TestManualOfJSON(t *testing.T) {
	names := make(map[string]bool)
	for _, v := range []any{lockJSON{}, sightJSON{}, tableJSON{}, versionJSON{}} {
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

// TestManualOfStatus tests the exit statuses: the documentation and the help tell
// of the same, which are those of the program.
func TestManualOfStatus(t *testing.T) {
	_, help, _ := call(t, nil, "help")
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
