package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// checkSnippets checks that the Go snippets of the pages are copies of code that the compiler sees. The comment above each snippet
// names its source, in one of these forms:
//
//	<!-- NAME -->               the body of a function in example_test.go
//	<!-- FILE NAME -->          the body of a function in a file
//	<!-- FILE NAME, whole -->   a function, method (Type.Name), type or constant
//	<!-- not compiled: WHY -->
func checkSnippets() {
	comment := regexp.MustCompile(`^<!-- (?:(not compiled: .+)|(?:(\S+\.go) )?([\w.]+)(, whole)?) -->\n$`)
	blocks := regexp.MustCompile("(?s)(<!-- [^\n]* -->\n)?```go\n(.*?)```\n")
	found := 0
	for _, page := range files(".md") {
		for _, block := range blocks.FindAllStringSubmatch(read(page), -1) {
			found++
			source := comment.FindStringSubmatch(block[1])
			if source == nil {
				fault("%s: no comment names the source of this snippet:\n%s", page, block[2])
				continue
			}
			if source[1] != "" {
				continue
			}
			file := source[2]
			if file == "" {
				file = "example_test.go"
			}
			if want := declaration(file, source[3], source[4] != ""); want != block[2] {
				fault("%s has this snippet:\n%s\n%s of %s is:\n%s", page, block[2], source[3], file, want)
			}
		}
	}
	if found == 0 {
		fault("the pages have no snippets")
	}
	indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(declaration("example_test.go", "firstSteps", false), "//\t$1")
	if doc := strings.ReplaceAll(read("doc.go"), "\n//\n", "\n\n"); !strings.Contains(doc, indented) {
		fault("doc.go does not have the body of firstSteps in example_test.go:\n%s", indented)
	}
}

// declaration returns the source of a declaration, or the body of a function without its indentation and expected output.
func declaration(file, name string, whole bool) string {
	source := read(file)
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, 0)
	if err != nil {
		fault("%v", err)
		return ""
	}
	text := func(from, to token.Pos) string { return source[set.Position(from).Offset:set.Position(to).Offset] }
	for _, decl := range parsed.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			full := d.Name.Name
			if d.Recv != nil {
				of := d.Recv.List[0].Type
				full = strings.TrimPrefix(text(of.Pos(), of.End()), "*") + "." + full
			}
			if full != name {
				continue
			}
			if !whole {
				body := strings.TrimPrefix(text(d.Body.Lbrace+1, d.Body.Rbrace), "\n")
				body = regexp.MustCompile(`(?is)\n\t// (unordered )?output:.*`).ReplaceAllString(body, "\n")
				return regexp.MustCompile(`(?m)^\t`).ReplaceAllString(body, "")
			}
		case *ast.GenDecl:
			names := func(spec ast.Spec) bool {
				t, isType := spec.(*ast.TypeSpec)
				v, isValue := spec.(*ast.ValueSpec)
				return isType && t.Name.Name == name || isValue && v.Names[0].Name == name
			}
			if len(d.Specs) == 0 || !names(d.Specs[0]) {
				continue
			}
		}
		return text(decl.Pos(), decl.End()) + "\n"
	}
	fault("%s has no %s", file, name)
	return ""
}
