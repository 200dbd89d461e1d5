package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"strconv"
	"strings"
)

// notOfAnEngine matches the names of files that log for programs, or not at all. All others are of the library or its engines.
var notOfAnEngine = regexp.MustCompile(`^(driver|fencing|locktest|metrics|cmd|examples|integration|tools)/`)

// checkAttributes compares the table of log attributes in docs/operations.md with the list by which tests judge what is logged, and
// with the calls that log; and that each text of a log in the table of alarms is one.
func checkAttributes() {
	table := pairs(read("docs/operations.md"), "(?m)^\\| `([a-z]+)` \\| ([a-zA-Z0-9.]+) \\| \\S")
	if list := pairs(read("locktest/logtest/logtest.go"), `(?m)^\t"(\w+)":\s+"([\w.]+)",`); len(table) == 0 || !maps.Equal(table, list) {
		fault("docs/operations.md lists the attributes %v, locktest/logtest %v", table, list)
	}
	unused, sources := maps.Clone(table), ""
	for _, name := range files(".go") {
		if strings.HasSuffix(name, "_test.go") || notOfAnEngine.MatchString(name) {
			continue
		}
		sources += read(name)
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			fault("%v", err)
			continue
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			for i, attr := range attributes(n) {
				literal, ok := attr.(*ast.BasicLit)
				if !ok && i%2 == 0 {
					fault("%v: the name of an attribute is not a literal", set.Position(attr.Pos()))
				}
				if ok && i%2 == 0 {
					name, _ := strconv.Unquote(literal.Value)
					if table[name] == "" {
						fault("%v: attribute %q is not in the table of docs/operations.md", set.Position(attr.Pos()), name)
					}
					delete(unused, name)
				}
			}
			return true
		})
	}
	for text := range pairs(read("docs/operations.md"), "(?m)^\\| log: `([^`]+)` \\| ([^|]+) \\|") {
		if !strings.Contains(sources, `"`+text) {
			fault("docs/operations.md has an alarm for %q, which nothing logs", text)
		}
	}
	if len(unused) > 0 {
		fault("no call logs these attributes of the table in docs/operations.md: %v", unused)
	}
}

// attributes returns the arguments of a call of a logger that name attributes and give their values. Only loggers have methods with
// these names and that many arguments.
func attributes(n ast.Node) []ast.Expr {
	before := map[string]int{"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "Log": 3}
	if call, ok := n.(*ast.CallExpr); ok {
		if method, ok := call.Fun.(*ast.SelectorExpr); ok && before[method.Sel.Name] > 0 && len(call.Args) > before[method.Sel.Name] {
			return call.Args[before[method.Sel.Name]:]
		}
	}
	return nil
}

// pairs returns what the two groups of an expression match in a text.
func pairs(text, expression string) map[string]string {
	found := make(map[string]string)
	for _, match := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
		found[match[1]] = match[2]
	}
	return found
}
