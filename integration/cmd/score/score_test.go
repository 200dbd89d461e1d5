package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the directory of the repository.
const root = "../../.."

// TestMutants_HaveResults: hazards.md names the hazard of each mutant, and results.tsv has a row for each mutant and no other.
func TestMutants_HaveResults(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "design", "hazards.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readResults("results.tsv")
	if err != nil {
		t.Fatal(err)
	}
	all, err := mutants("mutants")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, m := range all {
		want = append(want, m.hazard+" "+m.name)
		hazard, _, _ := strings.Cut(m.hazard, ".")
		if !regexp.MustCompile(`[ >]` + hazard + `[ ]`).Match(text) {
			t.Errorf("hazards.md does not name %s (%s)", hazard, m.name)
		}
		if !slices.Contains(engines, m.engine) {
			t.Errorf("%s (%s): there is no engine %q", m.hazard, m.name, m.engine)
		}
	}
	for _, row := range rows {
		got = append(got, row[0]+" "+row[1])
		if row[2] != "safety" && row[2] != "liveness" {
			t.Errorf("results.tsv: %s (%s): class %q, want safety or liveness", row[0], row[1], row[2])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("the rows of results.tsv are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// patched matches the files that a patch changes.
var patched = regexp.MustCompile(`(?m)^\+\+\+ b/(.*)$`)

// TestMutants_ApplyAndCompile: each patch applies to the present code, and the changed packages compile.
func TestMutants_ApplyAndCompile(t *testing.T) {
	all, err := mutants("mutants")
	if err != nil {
		t.Fatal(err)
	}
	compiles := newCompiler(t)
	for _, m := range all {
		dir := t.TempDir()
		text, err := os.ReadFile(m.file)
		if err != nil {
			t.Fatal(err)
		}
		var changed []string
		for _, match := range patched.FindAllStringSubmatch(string(text), -1) {
			changed = append(changed, match[1])
			code, err := os.ReadFile(filepath.Join(root, match[1]))
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(dir, match[1])
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, code, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if m.file, err = filepath.Abs(m.file); err != nil {
			t.Fatal(err)
		}
		if err = m.apply(dir); err == nil {
			err = compiles.check(dir, changed)
		}
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(m.file), err)
		}
	}
}

// compiler checks the types of packages of the library of which some files are replaced.
type compiler struct {
	files   *token.FileSet
	parsed  map[string]*ast.File
	imports types.Importer
}

func newCompiler(t *testing.T) *compiler {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./...", "./mongolock/...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[name] = file
	}
	c := &compiler{files: token.NewFileSet(), parsed: make(map[string]*ast.File)}
	c.imports = importer.ForCompiler(c.files, "gc", func(name string) (io.ReadCloser, error) { return os.Open(exports[name]) })
	return c
}

// check fails if a package does not compile with the files that a folder has instead of the library's.
func (c *compiler) check(dir string, replaced []string) error {
	packages := make(map[string][]*ast.File)
	for _, name := range replaced {
		packages[path.Dir(name)] = nil
	}
	for pkg := range packages {
		all, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
		if err != nil {
			return err
		}
		for _, name := range all {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := c.parse(name)
			if relative := path.Join(pkg, filepath.Base(name)); slices.Contains(replaced, relative) {
				f, err = parser.ParseFile(c.files, filepath.Join(dir, relative), nil, parser.SkipObjectResolution)
			}
			if err != nil {
				return err
			}
			packages[pkg] = append(packages[pkg], f)
		}
		config := types.Config{Importer: c.imports, GoVersion: "go1.25"}
		if _, err := config.Check(pkg, c.files, packages[pkg], nil); err != nil {
			return fmt.Errorf("it does not compile: %w", err)
		}
	}
	return nil
}

// parse parses a file of the library, once.
func (c *compiler) parse(name string) (f *ast.File, err error) {
	if f = c.parsed[name]; f == nil {
		f, err = parser.ParseFile(c.files, name, nil, parser.SkipObjectResolution)
		c.parsed[name] = f
	}
	return f, err
}

// TestSign: the first sign of a failure is found in the output of a simulation or the suite.
func TestSign(t *testing.T) {
	for line, want := range map[string]string{
		"=== RUN   TestSimulation":                   "",
		"    simulation_test.go:110: so far: 3 runs": "",
		"    simulation_test.go:115: seed 5: zookeeper, seed 5: 2 findings, first: exclusion: key \"k\": two hold it": "exclusion",
		"        VIOLATION  exclusion: key \"k\": two hold it":                                                        "exclusion",
		"PROBLEM    left behind: /a/b":                                   "left behind: /a/b",
		"panic: deadlock: all goroutines in bubble are blocked":          "deadlock: all goroutines in bubble are blocked",
		"    simulation_test.go:115: seed 5: start dynamodb: no room":    "start dynamodb: no room",
		"--- FAIL: TestSimulation (0.00s)":                               "FAIL",
		"        --- FAIL: TestConformance/kazoo/alone/G7_Order (0.00s)": "kazoo/alone/G7_Order",
	} {
		if got := sign(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
