package holdfast_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// The files that CONTRIBUTING, the list of hazards and the models name exist.
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

	_, table, _ := strings.Cut(read(t, "CONTRIBUTING.md"), "\n| to change | open |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := regexp.MustCompile(`(?m)^\| .+ \| (.+) \|$`).FindAllStringSubmatch(table, -1)
	if len(rows) < 12 {
		t.Errorf("CONTRIBUTING.md: %d rows were found; there are more", len(rows))
	}
	for _, row := range rows {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			exists("CONTRIBUTING.md", name[1])
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

// The design pages describe each file of the root and of the engines.
func TestDesignNamesFiles(t *testing.T) {
	for dir, page := range map[string]string{".": "docs/design/README.md", "zklock": "docs/design/zookeeper.md", "dynamolock": "docs/design/dynamodb.md"} {
		_, table, _ := strings.Cut(read(t, page), "\n| file | |\n")
		table, _, _ = strings.Cut(table, "\n## ")
		var told []string
		for _, name := range regexp.MustCompile("`([a-z_/]+\\.go)`").FindAllStringSubmatch(table, -1) {
			told = append(told, name[1])
		}
		slices.Sort(told)
		var files []string
		err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			name, _ := filepath.Rel(dir, path)
			switch {
			case err == nil && entry.IsDir() && (dir == "." && name != "." || entry.Name() == "zktest"):
				return filepath.SkipDir
			case filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && filepath.Base(name) != "doc.go":
				files = append(files, filepath.Base(name))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(files)
		if !slices.Equal(told, files) {
			t.Errorf("%s tells of\n%v\nand %s has\n%v", page, told, dir, files)
		}
	}
}
