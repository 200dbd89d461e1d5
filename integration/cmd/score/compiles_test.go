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
	"slices"
	"strings"
	"testing"
)

// compiler checks the types of packages of the library of which some files are replaced.
type compiler struct {
	files   *token.FileSet
	parsed  map[string]*ast.File
	imports types.Importer
}

func newCompiler(t *testing.T) *compiler {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ".", "./zklock/...", "./dynamolock/...", "./memlock/...")
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
