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
	if found < 200 {
		t.Errorf("%d names of tests were found; there are more", found)
	}
}

// The files that pages, the list of hazards and the models name exist.
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

	hazards := regexp.MustCompile(`(?m)^\| .+<br>([^|]+) \| [^|]+ \|$`).FindAllStringSubmatch(read(t, "docs/design/hazards.md"), -1)
	if len(hazards) < 70 {
		t.Errorf("%d hazards were found; there are more", len(hazards))
	}
	for _, hazard := range hazards {
		dir := ""
		for name := range strings.SplitSeq(hazard[1], ", ") {
			if !strings.Contains(name, "/") {
				name = filepath.Join(dir, name)
			}
			dir = filepath.Dir(name)
			exists("docs/design/hazards.md", strings.Replace(name, "zkconn/", "zklock/internal/zkconn/", 1))
		}
	}
}
