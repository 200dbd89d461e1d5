package holdfast_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/logtest"
)

// documentedAttributes are those of the table in docs/operations.md.
func documentedAttributes(t *testing.T) map[string]string {
	t.Helper()
	_, table, found := strings.Cut(read(t, "docs/operations.md"), "\n| attribute | type | of what |\n")
	table, _, closed := strings.Cut(table, "\n\n")
	if !found || !closed {
		t.Fatal("docs/operations.md has no table of attributes")
	}
	attributes := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| ([a-zA-Z0-9.]+) \\| \\S").FindAllStringSubmatch(table, -1) {
		attributes[row[1]] = row[2]
	}
	return attributes
}

// A logCall is a place in the code that logs.
type logCall struct {
	at    token.Position
	attrs []ast.Expr
}

// logCalls finds those of a package. Only loggers have methods with these names and that many arguments.
func logCalls(t *testing.T, dir string) []logCall {
	t.Helper()
	skip := map[string]int{"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "Log": 3} // what comes before the attributes
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var calls []logCall
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				method, _ := call.Fun.(*ast.SelectorExpr)
				if method != nil && skip[method.Sel.Name] > 0 && len(call.Args) >= skip[method.Sel.Name] {
					calls = append(calls, logCall{set.Position(call.Pos()), call.Args[skip[method.Sel.Name]:]})
				}
			}
			return true
		})
	}
	return calls
}

// Every attribute of a record is in the table of docs/operations.md, and its name is written out.
func TestLogAttributesAreDocumented(t *testing.T) {
	t.Parallel()
	unused := documentedAttributes(t)
	known := maps.Clone(unused)
	if !maps.Equal(known, logtest.Attributes) {
		t.Errorf("docs/operations.md lists %v, the tests of what is logged go by %v", known, logtest.Attributes)
	}
	found := 0
	for _, dir := range []string{".", "zklock", "zklock/internal/zkconn", "dynamolock", "memlock"} {
		for _, call := range logCalls(t, dir) {
			found++
			if len(call.attrs)%2 != 0 {
				t.Errorf("%v: %d arguments are no pairs", call.at, len(call.attrs))
			}
			for i := 0; i < len(call.attrs); i += 2 {
				literal, ok := call.attrs[i].(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					t.Errorf("%v: the name of an attribute is not written out", call.at)
					continue
				}
				name, err := strconv.Unquote(literal.Value)
				if err != nil || known[name] == "" {
					t.Errorf("%v: attribute %q is not in the table of docs/operations.md", call.at, name)
				}
				delete(unused, name)
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d calls that log were found", found)
	}
	if len(unused) > 0 {
		t.Errorf("nothing logs these attributes of the table in docs/operations.md: %v", slices.Sorted(maps.Keys(unused)))
	}
}
