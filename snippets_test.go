package holdfast_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The Go snippets of the Markdown pages are from Go files of the repository: the
// comment above each block says from where. So they compile, and those of examples
// and tests run. The forms of the comment are
//
//	<!-- NAME -->               the body of a function in example_test.go
//	<!-- FILE NAME -->          the body of a function in a file
//	<!-- FILE NAME, whole -->   a function, method (Type.Name), type or constant, as it stands there
//	<!-- not compiled: WHY -->  of a program for another library that cannot be had
func TestSnippets(t *testing.T) {
	sources := make(map[string]map[string]snippet)
	comment := regexp.MustCompile(`^<!-- (?:(not compiled: .+)|(?:(\S+\.go) )?([\w.]+)(, whole)?) -->\n$`)
	blocks := regexp.MustCompile("(?s)(<!-- [^\n]* -->\n)?```go\n(.*?)```\n")
	found := 0
	for _, page := range pages(t) {
		for _, block := range blocks.FindAllStringSubmatch(read(t, page), -1) {
			found++
			text := block[2]
			where := comment.FindStringSubmatch(block[1])
			if where == nil {
				t.Errorf("%s: no comment says where this comes from:\n%s", page, text)
				continue
			}
			refused, file, name, whole := where[1], where[2], where[3], where[4] != ""
			if refused != "" {
				continue
			}
			if file == "" {
				file = "example_test.go"
			}
			if sources[file] == nil {
				sources[file] = snippets(t, file)
			}
			source, ok := sources[file][name]
			want := source.body
			if whole {
				want = source.whole
			}
			switch {
			case !ok:
				t.Errorf("%s: %s has no %s", page, file, name)
			case text != want:
				t.Errorf("%s: the snippet is not %s of %s\n%s:\n%s\n%s:\n%s", page, name, file, page, text, file, want)
			}
		}
	}

	if found < 15 {
		t.Errorf("%d snippets were found; there are more", found)
	}

	doc := regexp.MustCompile(`(?m)^// ?`).ReplaceAllString(read(t, "doc.go"), "")
	const name = "firstSteps"
	body := snippets(t, "example_test.go")[name].body
	if indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(body, "\t$1"); !strings.Contains(doc, indented) {
		t.Errorf("doc.go does not have the body of %s in example_test.go:\n%s", name, indented)
	}
}

// pages are the Markdown files of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && (name == ".git" || name == "node_modules" || name == "testdata" || name == "bin"):
			return filepath.SkipDir
		case filepath.Ext(name) == ".md":
			found = append(found, path)
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d pages, %v: %v", len(found), err, found)
	}
	return found
}

// A snippet is a declaration of a Go file.
type snippet struct {
	body  string // of a function: without its braces, one level of indentation and, of an example, the output
	whole string
}

// snippets returns the declarations of a file, methods as Type.Name.
func snippets(t *testing.T, file string) map[string]snippet {
	t.Helper()
	source := read(t, file)
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := func(from, to token.Pos) string { return source[set.Position(from).Offset:set.Position(to).Offset] }
	output := regexp.MustCompile(`(?is)\n\t// (unordered )?output:.*`)
	found := make(map[string]snippet)
	for _, declaration := range parsed.Decls {
		whole := text(declaration.Pos(), declaration.End()) + "\n"
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			body := output.ReplaceAllString(strings.TrimPrefix(text(d.Body.Lbrace+1, d.Body.Rbrace), "\n"), "\n")
			name := d.Name.Name
			if d.Recv != nil {
				of := d.Recv.List[0].Type
				name = strings.TrimPrefix(text(of.Pos(), of.End()), "*") + "." + name
			}
			found[name] = snippet{regexp.MustCompile(`(?m)^\t`).ReplaceAllString(body, ""), whole}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					found[s.Name.Name] = snippet{whole: whole}
				case *ast.ValueSpec:
					found[s.Names[0].Name] = snippet{whole: whole}
				}
			}
		}
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

// Links from the pages to files of the repository lead to a file and a heading that exist.
func TestLinks(t *testing.T) {
	links := regexp.MustCompile(`\]\(([^)\s]*)\)`)
	anchors := make(map[string]map[string]bool)
	for _, page := range pages(t) {
		text := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(read(t, page), "")
		for _, link := range links.FindAllStringSubmatch(text, -1) {
			target := link[1]
			if strings.Contains(target, "://") {
				continue
			}
			path, anchor, _ := strings.Cut(target, "#")
			file := page
			if path != "" {
				file = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %s: %v", page, target, err)
				continue
			}
			if anchor == "" {
				continue
			}
			if anchors[file] == nil {
				anchors[file] = headings(t, file)
			}
			if !anchors[file][anchor] {
				t.Errorf("%s: %s has no heading %s", page, file, anchor)
			}
		}
	}
}

// headings returns the anchors of a page, as GitHub makes them of its headings.
func headings(t *testing.T, page string) map[string]bool {
	t.Helper()
	text := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(read(t, page), "")
	found := make(map[string]bool)
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		plain := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading[1], "$1")
		plain = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(plain), "")
		found[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return found
}
