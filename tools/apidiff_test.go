// Package tools has the tests of the shell scripts in this directory.
package tools

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// library is the first release of a module with a public package, one that is
// internal, and a command.
var library = map[string]string{
	"go.mod":             "module example.org/library\n\ngo 1.25.0\n",
	"library.go":         "package library\n\ntype Book struct{ Title string }\n\nfunc Open(name string) *Book { return &Book{Title: name} }\n",
	"shelf/shelf.go":     "package shelf\n\nimport \"example.org/library\"\n\nfunc First() *library.Book { return nil }\n",
	"internal/in/in.go":  "package in\n\nfunc Paper() {}\n",
	"cmd/read/main.go":   "package main\n\nfunc Page() {}\n\nfunc main() {}\n",
	"cmd/read/go.mod":    "module example.org/library/cmd/read\n\ngo 1.25.0\n",
	"write/main.go":      "package main\n\nfunc Pen() {}\n\nfunc main() {}\n",
	"examples/ex/ex.go":  "package ex\n\nfunc Show() {}\n",
	"CHANGELOG.md":       "# Changelog\n\n## Unreleased\n\n## v0.1.0\n\n### Breaking\n\n- The beginning.\n",
	"library_go_test.go": "package library\n\nfunc Tested() {}\n",
}

// TestAPIDiff guards that the script finds changes that break a user's program, in
// any package, and allows them only under the rules for versions.
func TestAPIDiff(t *testing.T) {
	t.Parallel()
	const (
		added    = "package library\n\ntype Book struct{ Title, Author string }\n\nfunc Open(name string) *Book { return &Book{Title: name} }\n\nfunc Close() {}\n"
		changed  = "package library\n\ntype Book struct{ Title string }\n\nfunc Open(name string, page int) *Book { return &Book{Title: name} }\n"
		told     = "# Changelog\n\n## Unreleased\n\n### Breaking\n\n- Open wants a page.\n\n## v0.1.0\n"
		prepared = "# Changelog\n\n## [0.2.0] - 2001-02-03\n\n### Breaking\n\n- Open wants a page.\n\n## [0.1.0] - 2001-02-02\n"
	)
	for name, c := range map[string]struct {
		tags   []string
		change map[string]string // an empty file is removed
		want   string            // of what is printed
		fails  bool
	}{
		"no tag":                     {nil, map[string]string{"library.go": changed}, "apidiff: no tag yet\n", false},
		"tags of other things":       {[]string{"cmd/read/v0.1.0", "v1", "v0.2.0-rc.1", "vintage"}, map[string]string{"library.go": changed}, "apidiff: no tag yet\n", false},
		"nothing":                    {[]string{"v0.1.0"}, nil, "apidiff: compatible with v0.1.0\n", false},
		"an addition":                {[]string{"v0.1.0"}, map[string]string{"library.go": added, "more/more.go": "package more\n"}, "apidiff: compatible with v0.1.0\n", false},
		"a parameter":                {[]string{"v0.1.0"}, map[string]string{"library.go": changed}, "Open: changed from func(string) *Book to func(string, int) *Book", true},
		"a parameter, told":          {[]string{"v0.1.0"}, map[string]string{"library.go": changed, "CHANGELOG.md": told}, "apidiff: not compatible with v0.1.0, as CHANGELOG.md says\n", false},
		"a parameter, being tagged":  {[]string{"v0.1.0"}, map[string]string{"library.go": changed, "CHANGELOG.md": prepared}, "apidiff: not compatible with v0.1.0, as CHANGELOG.md says\n", false},
		"only a heading":             {[]string{"v0.1.0"}, map[string]string{"library.go": changed, "CHANGELOG.md": strings.Replace(told, "- Open wants a page.", "", 1)}, "no entry under \"### Breaking\"", true},
		"told under another heading": {[]string{"v0.1.0"}, map[string]string{"library.go": changed, "CHANGELOG.md": strings.Replace(told, "### Breaking", "### Changed", 1)}, "no entry under \"### Breaking\"", true},
		"the release is not listed":  {[]string{"v0.1.0"}, map[string]string{"library.go": changed, "CHANGELOG.md": strings.Replace(told, "0.1.0", "10.1.0", 1)}, "no entry under \"### Breaking\"", true},
		"a package is gone":          {[]string{"v0.1.0"}, map[string]string{"shelf/shelf.go": ""}, "example.org/library/shelf: removed\n", true},
		"nothing public":             {[]string{"v0.1.0"}, map[string]string{"internal/in/in.go": "", "cmd/read/main.go": "package main\n\nfunc main() {}\n", "write/main.go": "package main\n\nfunc main() {}\n", "examples/ex/ex.go": "", "library_go_test.go": ""}, "apidiff: compatible with v0.1.0\n", false},
		"the greatest of tags":       {[]string{"v0.1.0", "v0.10.0", "v0.9.0"}, nil, "apidiff: compatible with v0.10.0\n", false},
		"from v1 on, told":           {[]string{"v0.1.0", "v1.0.0"}, map[string]string{"library.go": changed, "CHANGELOG.md": strings.Replace(told, "v0.1.0", "v1.0.0", 1)}, "takes the next major version", true},
		"another major version": {
			[]string{"v1.0.0"},
			map[string]string{"library.go": changed, "shelf/shelf.go": "", "go.mod": "module example.org/library/v2\n\ngo 1.25.0\n"},
			"apidiff: no tag yet\n", false,
		},
		"it does not compile": {[]string{"v0.1.0"}, map[string]string{"library.go": "package library\n\nvar x int = nothing\n"}, "nothing", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			git(t, dir, "init", "-q")
			write(t, dir, library)
			git(t, dir, "add", ".")
			git(t, dir, "commit", "-q", "-m", "release")
			for _, tag := range c.tags {
				git(t, dir, "tag", tag)
			}
			write(t, dir, c.change)
			printed, err := run(t, ".", "./apidiff.sh", dir)
			if !strings.Contains(printed, c.want) || (err != nil) != c.fails {
				t.Errorf("%v; it printed\n%s\nwant %q, failed: %v", err, printed, c.want, c.fails)
			}
			if status, err := run(t, dir, "git", "worktree", "list"); err != nil || strings.Count(status, "\n") != 1 {
				t.Errorf("it leaves something in the repository: %s%v", status, err)
			}
		})
	}
}

// TestAPIDiffShallow guards against a clone without history, as CI services make by
// default, in which no release can be found.
func TestAPIDiffShallow(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "clone")
	git(t, from, "init", "-q")
	for _, title := range []string{"First", "Second"} {
		files := maps.Clone(library)
		files["README.md"] = title
		write(t, from, files)
		git(t, from, "add", ".")
		git(t, from, "commit", "-q", "-m", title)
	}
	git(t, ".", "clone", "-q", "--depth", "1", "file://"+from, to)
	if printed, err := run(t, ".", "./apidiff.sh", to); err == nil || !strings.Contains(printed, "git fetch --unshallow --tags") {
		t.Errorf("%v; it printed\n%s", err, printed)
	}
}

// write writes files below a directory, and removes those that are to be empty.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case content == "":
			err = os.Remove(path)
		default:
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// git runs a command of git that has to succeed, with no configuration but its own.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	args = append([]string{"-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}, args...)
	if printed, err := run(t, dir, "git", args...); err != nil {
		t.Fatalf("git (which has to be installed) %s: %v\n%s", strings.Join(args, " "), err, printed)
	}
}

// run runs a program in a directory and returns all that it prints.
func run(t *testing.T, dir, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	cmd.WaitDelay = 10 * time.Second
	printed, err := cmd.CombinedOutput()
	return string(printed), err
}
