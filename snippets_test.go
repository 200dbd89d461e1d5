package holdfast_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The Go snippets of README.md are bodies of functions in this package's tests:
// the comment above each block names the function. So they compile, and those
// of examples run.
func TestSnippets(t *testing.T) {
	bodies := bodies(t, "example_test.go")
	readme := read(t, "README.md")
	blocks := regexp.MustCompile("(?s)(<!-- (\\w+) -->\n)?```go\n(.*?)```\n").FindAllStringSubmatch(readme, -1)
	if len(blocks) < 4 {
		t.Errorf("README.md has %d Go snippets", len(blocks))
	}
	for _, block := range blocks {
		name, snippet := block[2], block[3]
		switch body, ok := bodies[name]; {
		case name == "":
			t.Errorf("README.md: no comment names the function that this comes from:\n%s", snippet)
		case !ok:
			t.Errorf("README.md: example_test.go has no function %s", name)
		case snippet != body:
			t.Errorf("README.md: the snippet is not the body of %s in example_test.go\nREADME.md:\n%s\nexample_test.go:\n%s", name, snippet, body)
		}
	}

	doc := regexp.MustCompile(`(?m)^// ?`).ReplaceAllString(read(t, "doc.go"), "")
	const name = "reportNightly"
	if indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(bodies[name], "\t$1"); !strings.Contains(doc, indented) {
		t.Errorf("doc.go does not have the body of %s in example_test.go:\n%s", name, indented)
	}
}

// bodies returns the body of each function in a file, without its braces, one
// level of indentation and, of an example, the output.
func bodies(t *testing.T, file string) map[string]string {
	t.Helper()
	source := read(t, file)
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	output := regexp.MustCompile(`(?is)\n\t// (unordered )?output:.*`)
	for _, declaration := range parsed.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		body := source[set.Position(f.Body.Lbrace).Offset+1 : set.Position(f.Body.Rbrace).Offset]
		body = output.ReplaceAllString(strings.TrimPrefix(body, "\n"), "\n")
		found[f.Name.Name] = regexp.MustCompile(`(?m)^\t`).ReplaceAllString(body, "")
	}
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
