// Docs compares the documents of a repository with its files, checks their prose, and prints each fault.
//
//	go run ./docs DIR
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var faults int

func fault(format string, args ...any) {
	fmt.Printf(format+"\n", args...)
	faults++
}

func main() {
	if len(os.Args) != 2 || os.Chdir(os.Args[1]) != nil {
		fmt.Fprintln(os.Stderr, "usage: docs DIR")
		os.Exit(2)
	}
	checkSnippets()
	checkLinks()
	checkNames()
	checkAttributes()
	checkProse()
	if faults > 0 {
		os.Exit(1)
	}
}

// files returns the files of the repository with one of the extensions.
func files(extensions ...string) (found []string) {
	out, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		fault("git ls-files: %v", err)
	}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		if _, err := os.Stat(name); err == nil && slices.Contains(extensions, filepath.Ext(name)) {
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		fault("there are no files %v", extensions)
	}
	return found
}

func read(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		fault("%v", err)
	}
	return string(text)
}

var fenced = regexp.MustCompile("(?ms)^ *```.*?^ *```$")

// checkLinks checks that links lead to files and headings of the repository that exist.
func checkLinks() {
	links := regexp.MustCompile(`\]\(([^)\s]*)\)`)
	for _, page := range files(".md") {
		for _, link := range links.FindAllStringSubmatch(fenced.ReplaceAllString(read(page), ""), -1) {
			path, anchor, _ := strings.Cut(link[1], "#")
			file := page
			if path != "" {
				file = filepath.Join(filepath.Dir(page), path)
			}
			if strings.Contains(path, "://") {
				continue
			}
			if _, err := os.Stat(file); err != nil || anchor != "" && !slices.Contains(headings(file), anchor) {
				fault("%s: the link %s leads nowhere", page, link[1])
			}
		}
	}
}

// headings returns the anchors of a page, as GitHub makes them of its headings.
func headings(page string) (found []string) {
	link := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	mark := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(fenced.ReplaceAllString(read(page), ""), -1) {
		plain := mark.ReplaceAllString(strings.ToLower(link.ReplaceAllString(heading[1], "$1")), "")
		found = append(found, strings.ReplaceAll(plain, " ", "-"))
	}
	return found
}

// checkNames checks that the tests that the design pages name exist, and the Go files that pages and models name.
func checkNames() {
	test := regexp.MustCompile(`\b(?:Test|Fuzz|G\d+_)[A-Z]\w+(?:\.\.\.)?`)
	exist := make(map[string]bool)
	for _, name := range files(".go") {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "locktest/") {
			for _, name := range test.FindAllString(read(name), -1) {
				exist[name] = true
			}
		}
	}
	file := regexp.MustCompile(`(?:^|[\s(\x60])(([a-z]+)/[a-z_]+\.go)\b`) // in a directory of the repository
	found := 0
	for _, page := range files(".md", ".pml") {
		for _, match := range file.FindAllStringSubmatch(read(page), -1) {
			if _, err := os.Stat(match[2]); err != nil {
				continue
			}
			if _, err := os.Stat(match[1]); err != nil {
				fault("%s: %v", page, err)
			}
		}
		if strings.HasPrefix(page, "docs/design/") {
			for _, name := range test.FindAllString(read(page), -1) {
				if found++; !exist[name] && !strings.HasSuffix(name, "...") {
					fault("%s: there is no %s", page, name)
				}
			}
		}
	}
	if found == 0 {
		fault("the design pages name no tests")
	}
}
