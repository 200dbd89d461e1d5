package holdfast_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The tests that the design pages name exist.
func TestDesignNamesTests(t *testing.T) {
	var all strings.Builder
	err := filepath.WalkDir(".", func(path string, entry os.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "locktest/") && strings.HasSuffix(path, ".go")) {
			all.WriteString(read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, f := range regexp.MustCompile(`\b(?:Test|Fuzz|G\d+_)\w+`).FindAllString(all.String(), -1) {
		names[f] = true
	}
	found := 0
	for _, page := range pages(t) {
		if !strings.HasPrefix(page, "docs/design/") {
			continue
		}
		for _, name := range regexp.MustCompile(`\b(?:Test|Fuzz|G\d+_)[A-Z]\w+(?:\.\.\.)?`).FindAllString(read(t, page), -1) {
			found++
			if !strings.HasSuffix(name, "...") && !names[name] {
				t.Errorf("%s: there is no %s", page, name)
			}
		}
	}
	if found == 0 {
		t.Error("no names of tests were found")
	}
}

// The files that pages and models name exist.
func TestDocsNameFiles(t *testing.T) {
	models, err := filepath.Glob("integration/model/*.pml")
	if err != nil {
		t.Fatal(err)
	}
	exists := func(page, name string) {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("%s: %v", page, err)
		}
	}
	for _, page := range append(models, pages(t)...) {
		for _, name := range regexp.MustCompile(`\b(?:zklock|dynamolock|memlock|driver)/[a-z_]+\.go\b`).FindAllString(read(t, page), -1) {
			exists(page, name)
		}
	}
}
